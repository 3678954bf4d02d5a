"""Slurm's weights that give the order of the replay, combined with the site's own."""

import math

import pytest
from slurm_factors import Submission, expected_order, site_factor

from pipeline.errors import UserError
from pipeline.sites.slurm_config import SlurmConfig, SlurmPartition
from pipeline.sites.slurm_settings import SlurmOrder, highest_priority, named_order, plan_settings

DAY, HOUR = 86_400.0, 3600.0
LIMIT = named_order("limit", 8 * HOUR)
PARTITIONS = (
    SlurmPartition("work", True, None, None, 1, 1, "n1", 8),
    SlurmPartition("long", False, 1800.0, 7200.0, 1, 1, "n1", 8),
)


def site(age: int = 0, max_age_s: float = 7 * DAY, **others: int) -> SlurmConfig:
    return SlurmConfig({}, weights={"Age": age, **others}, max_age_s=max_age_s, partitions=PARTITIONS)


def test_waiting_for_tau_is_worth_one_unit_of_the_score() -> None:
    found = plan_settings(LIMIT, site(), 2 * DAY)
    assert found.scale == 1000
    assert found.weight_age / (found.max_age_days * DAY) * LIMIT.tau_s == pytest.approx(found.scale)


def test_age_grows_for_twice_the_longest_wait_at_least() -> None:
    assert plan_settings(LIMIT, site(), 2 * DAY).max_age_days == 14
    assert plan_settings(LIMIT, site(), 20.1 * DAY).max_age_days == 41
    assert plan_settings(LIMIT, site(max_age_s=60 * DAY), 2 * DAY).max_age_days == 60


def test_a_second_of_waiting_keeps_its_points_next_to_other_weights() -> None:
    found = plan_settings(LIMIT, site(age=100_000, FairShare=1_000_000), 2 * DAY)
    assert found.scale == pytest.approx(100_000 / (7 * DAY) * LIMIT.tau_s)
    assert found.weight_age == pytest.approx(200_000, abs=1)  # twice the time, twice the weight
    assert "as many points as before" in found.reason


def test_a_scale_that_is_too_coarse_is_raised() -> None:
    found = plan_settings(LIMIT, site(age=1000, FairShare=1000), 2 * DAY)
    assert found.scale == 100
    assert "47.6" in found.reason


def test_without_age_the_largest_weight_sets_the_scale() -> None:
    found = plan_settings(LIMIT, site(QOS=50_000, FairShare=10_000), 2 * DAY)
    assert found.scale * math.log(365 * DAY / 60) == pytest.approx(50_000)


def test_priorities_that_exceed_32_bits_are_refused() -> None:
    assert highest_priority(plan_settings(LIMIT, site(FairShare=4_000_000_000), 2 * DAY, scale=1000)) < 2**32
    with pytest.raises(UserError, match=r"^PriorityWeight\*: expected priorities up to 4294967295"):
        plan_settings(LIMIT, site(FairShare=4_294_940_000), 2 * DAY, scale=1000)


def test_a_doubled_limit_costs_the_scale_times_ln_2() -> None:
    found = plan_settings(LIMIT, site(), 2 * DAY)
    short, long = (site_factor(found, Submission(1, limit, 4, ("work",))) for limit in (HOUR, 2 * HOUR))
    assert short - long == 693


def test_a_job_without_a_limit_has_that_of_its_partition_and_counts_by_the_longest() -> None:
    found = plan_settings(named_order("area", 8 * HOUR), site(), 2 * DAY)

    def factor(limit: float | None, *partitions: str) -> int:
        return site_factor(found, Submission(1, limit, 4, partitions))

    assert factor(None, "long") == factor(1800, "long")
    assert factor(None, "work") == factor(None) == factor(365 * DAY, "work")
    assert factor(None, "work", "long") == factor(None, "work")
    assert factor(10, "work") == factor(60, "work")


def test_the_largest_job_has_the_factor_1_and_the_smallest_the_largest() -> None:
    learned = SlurmOrder(8 * HOUR, 0.8, -0.3, 0.5, {"long": 0.7})
    found = plan_settings(learned, site(), 2 * DAY)
    jobs = [
        Submission(1, limit, cpus, (part,))
        for limit in (60, 365 * DAY) for cpus in (1, 16) for part in ("work", "long")
    ]  # fmt: skip
    factors = [site_factor(found, job) for job in jobs]
    assert min(factors) >= 1
    assert max(factors) <= found.most


def test_waiting_moves_a_job_forward_and_ties_go_to_the_first() -> None:
    found = plan_settings(LIMIT, site(), 2 * DAY)
    jobs = [
        Submission(5, 2 * HOUR, 1, waited_s=5.4 * HOUR),
        Submission(6, HOUR, 1),
        Submission(7, 2 * HOUR, 1, waited_s=5.6 * HOUR),
        Submission(8, HOUR, 1),
    ]  # doubling the limit costs 8 h * ln 2 = 5.545 h
    assert expected_order(found, jobs) == [7, 6, 8, 5]
