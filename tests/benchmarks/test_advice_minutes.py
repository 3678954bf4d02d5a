"""The benchmark of site advice: what it writes is what the commands read."""

from pathlib import Path

import numpy as np
import pytest
from commands import Command, command, place

from benchmarks.advice_minutes import LOAD, commands, drawn, write_site

__all__ = ["command", "place"]  # fixtures


def test_drawn_jobs_have_the_load_and_keep_their_limits() -> None:
    jobs = drawn(2_000, 20, 4)
    span = np.ptp(jobs.submit)
    assert (jobs.run * jobs.cpus).sum() / (span * 80) == pytest.approx(LOAD, rel=0.01)
    assert (jobs.run <= 60 * jobs.limit).all()
    assert set(jobs.cpus[jobs.cpus > 4] % 4) == {0}


@pytest.mark.parametrize(
    ("pool", "machines"), [(False, "machines: 5\n"), (True, "machines: [{count: 1, has: {cpu: 40.0}}]\n")]
)
def test_every_job_is_imported_and_fits_the_site(command: Command, place: Path, pool: bool, machines: str) -> None:
    write_site(place, drawn(3_000, 5, 8), 5, 8)
    dump, site, *_ = commands(5, 8, pool)
    assert command(*dump).out.startswith("3,000 jobs of ")
    done = command(*site)
    assert done.code == 0
    assert machines in done.out + Path("params.yaml").read_text()
