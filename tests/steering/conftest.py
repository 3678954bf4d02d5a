"""A cluster for one test alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from steered import Steered, steered

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Steered]:
    """A slurmctld that is killed forgets its last seconds, and then of other tests, too."""
    with slurm(Cluster(nodes=4, cpus=1)) as found, steered(found, tmp_path / "steering") as of:
        yield of
