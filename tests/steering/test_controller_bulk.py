"""A thousand jobs wait: all get their place, a tick takes less than a second, and all is taken back."""

import random

import pytest
from steered import Steered

from benchmarks.slurm.loopback import why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
JOBS, SEED, LONG_S = 1000, 23, 240.0
SECOND_MS = 1000.0


def test_a_thousand_jobs_are_put_in_order_a_part_in_each_tick(alone: Steered) -> None:
    """Others use this machine, too: the quickest of the ticks tells what a tick takes."""
    alone.busy()
    rng = random.Random(SEED)
    limits = [rng.randint(1, 600) for _ in range(JOBS)]
    limit_of = {alone.waits(limit): limit for limit in limits}
    controller = alone.steer()
    alone.slurm.until(lambda: len(alone.in_order()) == JOBS, "factors of all", LONG_S)
    assert [limit_of[job] for job in alone.in_order()] == sorted(limits)
    ticks = [row for row in alone.journal("tick") if row["wanted"]]
    assert max(len(row["wanted"]) for row in ticks) == 200
    assert min(sum(row["ms"]) for row in ticks if len(row["wanted"]) == 200) < SECOND_MS
    controller.terminate()
    alone.ended(controller)
    assert not alone.in_order()
