"""A thousand jobs wait: all get their place, a tick takes less than a second, and all is taken back."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from steered import Steered, steered

from pipeline.slurm.configuration import Cluster
from pipeline.slurm.loopback import slurm, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
JOBS, SEED, LONG_S = 1000, 23, 240.0
SECOND_MS = 1000.0


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Steered]:
    with slurm(Cluster(nodes=4, cpus=1)) as cluster, steered(cluster, tmp_path / "steering") as found:
        yield found


def test_a_thousand_jobs_are_put_in_order_a_part_in_each_tick(one: Steered) -> None:
    """Others use this machine, too: the quickest of the ticks tells what a tick takes."""
    one.busy()
    rng = random.Random(SEED)
    limits = [rng.randint(1, 600) for _ in range(JOBS)]
    limit_of = {one.waits(limit): limit for limit in limits}
    controller = one.steer()
    one.slurm.until(lambda: len(one.in_order()) == JOBS, "factors of all", LONG_S)
    assert [limit_of[job] for job in one.in_order()] == sorted(limits)
    ticks = [row for row in one.journal("tick") if row["wanted"]]
    assert max(len(row["wanted"]) for row in ticks) == 200
    assert min(sum(row["ms"]) for row in ticks if len(row["wanted"]) == 200) < SECOND_MS
    controller.terminate()
    one.ended(controller)
    assert not one.in_order()
