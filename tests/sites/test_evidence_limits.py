"""The report on overestimated limits."""

import numpy as np
import pytest
from queue_builders import Job, period, queue

from pipeline.core.schemas.tables import LIMITS
from pipeline.sites.evidence import limits_table


def test_users_are_listed_by_the_processor_time_that_they_reserve_in_vain() -> None:
    """User 1: 20 jobs of 60 to 1,200 s, limits of 2 h, 2 processors; user 2: 10 exact ones; user 3 has too few."""
    jobs = [Job(at, 60.0 * (at + 1), 2, limit=7_200, user=1) for at in range(20)]
    jobs += [Job(20 + at, 600, 1, limit=600, user=2) for at in range(10)]
    jobs += [Job(30 + at, 10, 1, limit=86_400, user=3) for at in range(9)] + [Job(50, 1, limit=9e9, user=0)] * 10
    one = period(queue([8], *jobs))
    found = limits_table(one._replace(user=np.where(one.user == 0, -1, one.user)))  # -1: unknown
    LIMITS.validate(found)
    assert found["user"].tolist() == [1, 2]
    assert found["jobs"].tolist() == [20, 10]
    first = found.iloc[0]
    assert (first["limit_s"], first["run_s"]) == (7_200, 630)
    assert first["used"] == pytest.approx(630 / 7_200)
    assert first["suggested_s"] == pytest.approx(1.2 * 60 * 19)
    assert first["in_vain_h"] == pytest.approx(2 * sum(7_200 - 60 * (k + 1) for k in range(20)) / 3_600)
    assert found.iloc[1][["used", "suggested_s", "in_vain_h"]].tolist() == [1.0, 600.0, 0.0]


def test_jobs_of_a_warm_up_do_not_count() -> None:
    jobs = [Job(at, 60, 1, limit=120, user=1) for at in range(20)]
    assert limits_table(period(queue([8], *jobs), first=8))["jobs"].tolist() == [12]
    none = limits_table(period(queue([8], *jobs), first=11))
    assert len(none) == 0
    LIMITS.validate(none)


def test_a_limit_of_a_year_is_none() -> None:
    jobs = [Job(at, 60, 1, limit=365 * 86_400, user=1) for at in range(20)]
    assert len(limits_table(period(queue([8], *jobs)))) == 0
