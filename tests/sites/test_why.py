"""`why`: the reasons for a job's start, each computed by hand, and priorities as in the replay."""

from collections.abc import Callable

import numpy as np
import pytest
from queue_builders import Job, period, queue

from pipeline.core.config import Multifactor
from pipeline.core.config.evaluation import Quota
from pipeline.sites.learned import score_of
from pipeline.sites.orders import MULTIFACTOR, ORDERS, order_of
from pipeline.sites.queue import Period
from pipeline.sites.replay import Order
from pipeline.sites.slurm_settings import SlurmOrder
from pipeline.sites.why import Why, why

HOUR = 3_600.0
SLURM = Multifactor(age=1000, age_days=7.0, fair_share=2000, half_life_days=7.0, job_size=500, favor_small=True)


def by_name(name: str) -> Callable[[Period], Order]:
    return lambda log: order_of(name, log.queue, log.slurm)


def asked(log: Period, job: int | None = 1, order: str = "limit_8h") -> Why:
    """Return the reasons for a job, in hours."""
    found = why(log, job, by_name(order), lambda place: f"job {place}", 1)
    return found._replace(wait=found.wait / HOUR, changed={what: at / HOUR for what, at in found.changed.items()})


def hours(cpus: int, *jobs: tuple[float, float, int, float], user: tuple[int, ...] = (), **more: object) -> Period:
    """Make a period of jobs (submission, run time, CPUs, limit), in hours, on one machine."""
    users = user or (0,) * len(jobs)
    rows = [
        Job(at * HOUR, run * HOUR, size, limit=limit * HOUR, user=one)
        for (at, run, size, limit), one in zip(jobs, users, strict=True)
    ]
    return period(queue([cpus], *rows, **more))  # type: ignore[arg-type]


def test_a_shorter_limit_would_have_put_the_job_before_the_one_that_overtakes_it() -> None:
    """Job 0 holds four of five CPUs until hour 10; job 2 comes an hour after job 1, with an eighth of its limit.

    ln(24 / 3) = 2.08 exceeds the 1 / 8 that job 1 gains by its extra hour of waiting; so does ln(4 / 3) = 0.29. A limit
    of 2 hours, however, puts job 1 first. Job 3 fits on the fifth CPU at once.
    """
    found = asked(hours(5, (0, 10, 4, 10), (1, 2, 2, 24), (2, 3, 4, 3), (2.5, 1, 1, 96)))
    assert (found.job, found.wait) == ("job 1", 12)
    assert (found.higher, found.lower, found.passed) == (1, 1, 0)
    assert found.changed == {
        "the first place in the queue": 9, "no job 2": 9, "a limit of 2 h": 9, "a limit of 4 h": 12,
        "a limit of 8 h": 12, "a limit of 12 h": 12,
    }  # fmt: skip
    assert (found.submitted.rank, found.submitted.waiting) == (1, 1)
    assert found.submitted.terms == {"score": -np.log(24 * HOUR), "wait": 0, "fair-share": 0}
    assert found.started.terms["wait"] == 1.5
    assert found.started.priority == pytest.approx(-np.log(24 * HOUR) + 1.5)


def test_a_job_that_would_delay_a_reservation_waits_and_is_named() -> None:
    """Job 1 needs all five CPUs and gets them at hour 10; job 2 fits on the free one if it ends before."""
    found = asked(hours(5, (0, 10, 4, 10), (1, 1, 5, 1), (2, 1, 1, 12)), 2)
    assert (found.wait, found.higher, found.passed) == (9, 1, 0)
    assert (
        found.changed["no job 1"]
        == found.changed["a limit of 8 h"]
        == found.changed["the first place in the queue"]
        == 0
    )
    short = asked(hours(5, (0, 10, 4, 10), (1, 1, 5, 1), (2, 1, 1, 8)), 2)
    assert (short.wait, short.higher, short.passed) == (0, 0, 1)
    assert (short.started.rank, short.started.waiting) == (2, 2)


def test_quotas_and_tiers_are_named_where_a_site_has_them() -> None:
    rows = ((0, 5, 1, 5), (1, 1, 1, 2))
    assert "the first place and no quotas" not in asked(hours(5, *rows)).changed
    found = asked(hours(5, *rows, quotas=[Quota(each="user", jobs=1)]))
    assert (found.wait, found.changed["the first place in the queue"]) == (4, 4)
    assert found.changed["the first place and no quotas"] == 0
    one, two, three = Job(0, HOUR), Job(1, HOUR, partition=0), Job(2, HOUR, partition=1)
    tiers = asked(period(queue([1], one, two, three, members=[[0], [0]], tier=[1, 2])))
    assert tiers.wait == pytest.approx(2, abs=0.001)
    assert tiers.changed["the highest tier for its partition"] == pytest.approx(1, abs=0.001)


def crowded(slurm: Multifactor | None) -> Period:
    """Sixty jobs of one CPU each on a machine with one CPU, so that the first of the queue starts when it is free."""
    rng = np.random.default_rng(5)
    rows = [
        Job(at, float(rng.uniform(600, 9_000)), limit=float(rng.uniform(10_000, 90_000)), user=int(rng.integers(3)))
        for at in np.sort(rng.uniform(0, 90_000, 60))
    ]
    return period(queue([1], *rows))._replace(slurm=slurm)


@pytest.mark.parametrize("name", [*ORDERS, MULTIFACTOR, "learned"])
def test_every_job_is_first_when_it_starts_on_a_single_processor(name: str) -> None:
    log = crowded(SLURM if name == MULTIFACTOR else None)
    learned = SlurmOrder(8 * HOUR, 0.7, 0.1, 0.3)
    order = by_name(name) if name != "learned" else lambda log: score_of(learned, log)
    found = [why(log, job, order, str, 1) for job in (3, 17, 30, 44, 59)]
    assert {one.started.rank for one in found} == {1}
    assert max(one.submitted.rank for one in found) > 1
    for one in found:
        if one.started.terms:
            assert sum(one.started.terms.values()) == pytest.approx(one.started.priority)
    if name == MULTIFACTOR:
        assert min(one.started.terms["fair-share"] for one in found) > 0


def test_without_a_job_the_one_that_waits_longest_is_explained_in_the_whole_log() -> None:
    """The first half of the log ends 31 days before the second begins."""
    month = 31 * 24.0
    rows = ((0, 2, 1, 2), (1, 1, 1, 1), (month, 9, 1, 9), (month + 1, 1, 1, 1))
    found = asked(hours(1, *rows), None)
    assert (found.job, found.wait) == ("job 3", 8)
