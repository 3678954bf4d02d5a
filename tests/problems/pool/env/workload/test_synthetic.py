"""The synthetic workload holds what it promises: load, durations, demands."""

from collections.abc import Sequence

import numpy as np
import pytest
from pydantic import ValidationError

from pipeline.core.config import AtOnce, Demand, Params, PoolScenario, Streaming, Synthetic
from pipeline.core.config.records import first_error
from pipeline.errors import UserError
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.workload.synthetic import check_synthetic, draw_jobset, load_of_one, units

# Least and most units: of a job's dominant resource, and of each other one.
PRESETS = {"code": (10, (5, 10), (1, 2)), "text": (20, (5, 10), (1, 2))}
STEPS = 50


@pytest.fixture(scope="module")
def workload(params: Params) -> Synthetic:
    assert isinstance(params.workload, Synthetic)
    return params.workload


POISSON = Streaming(name="poisson", steps=STEPS)


def scenario(
    params: Params, capacity: int = 10, resources: Sequence[str] = ("cpu", "memory"), **changes: object
) -> PoolScenario:
    own = {"resources": dict.fromkeys(resources, capacity), "arrivals": POISSON, **changes}
    return params.scenarios["online"].model_copy(update=own)


def drawn(workload: Synthetic, demand: Demand, of: PoolScenario, load: int, jobsets: int) -> list[JobSet]:
    rng = np.random.default_rng(1)
    return [draw_jobset(workload, demand, of, load, rng) for _ in range(jobsets)]


def all_jobs(jobsets: list[JobSet]) -> JobSet:
    """The jobs of several jobsets in one."""
    return JobSet(*(np.concatenate([jobs[k] for jobs in jobsets]) for k in range(3)))


@pytest.fixture(scope="module")
def many(params: Params, workload: Synthetic) -> JobSet:
    """Some 14,000 jobs at 130 % load."""
    return all_jobs(drawn(workload, params.demands["code"], scenario(params), load=130, jobsets=400))


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("arrivals", ["poisson", "bernoulli"])
@pytest.mark.parametrize("load", [30, 90])
def test_the_load_that_is_drawn_is_the_load_that_was_asked_for(
    params: Params, workload: Synthetic, preset: str, arrivals: str, load: int
) -> None:
    each, steps, jobsets = PRESETS[preset][0], 2_000, 5_000 // load
    of = scenario(params, each, arrivals=Streaming(name=arrivals, steps=steps))
    jobs = all_jobs(drawn(workload, params.demands[preset], of, load, jobsets))
    held = (jobs.duration[:, None] * jobs.demand).sum(axis=0)
    assert 100 * held / (each * steps * jobsets) == pytest.approx(load, rel=0.02)


def test_a_job_a_step_loads_the_cluster_as_reckoned_by_hand(params: Params, workload: Synthetic) -> None:
    # E[duration] = 0.8 * 2 + 0.2 * 12.5 = 4.1; E[demand] = (7.5 + 1.5) / 2 = 4.5 units of 10, or of 20.
    assert workload.mean_duration == pytest.approx(4.1)
    assert load_of_one(workload, params.demands["code"], scenario(params, 10)) == pytest.approx(184.5)
    assert load_of_one(workload, params.demands["text"], scenario(params, 20)) == pytest.approx(92.25)


def test_a_job_is_as_likely_to_want_each_resource_most(params: Params, workload: Synthetic) -> None:
    # Of three resources: (7.5 + 1.5 + 1.5) / 3 = 3.5 units of 10.
    of = scenario(params, 10, ["cpu", "memory", "disk"])
    assert load_of_one(workload, params.demands["code"], of) == pytest.approx(100 * 4.1 * 0.35)
    jobs = all_jobs(drawn(workload, params.demands["code"], of, load=100, jobsets=200))
    much = jobs.demand >= 5
    assert (much.sum(axis=1) == 1).all()
    assert much.mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_four_jobs_of_five_are_short(many: JobSet) -> None:
    short = many.duration <= 3
    assert short.mean() == pytest.approx(0.8, abs=0.01)


def test_durations_are_uniform_within_short_and_long(many: JobSet) -> None:
    steps, counts = np.unique(many.duration, return_counts=True)
    assert steps.tolist() == [1, 2, 3, 10, 11, 12, 13, 14, 15]
    share = counts / len(many.duration)
    assert share[:3] == pytest.approx([0.8 / 3] * 3, abs=0.015)
    assert share[3:] == pytest.approx([0.2 / 6] * 6, abs=0.008)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_one_resource_is_wanted_much_and_the_other_little(params: Params, workload: Synthetic, preset: str) -> None:
    each, much, little = PRESETS[preset]
    jobs = all_jobs(drawn(workload, params.demands[preset], scenario(params, each), load=90, jobsets=200))
    dominant, other = jobs.demand.max(axis=1), jobs.demand.min(axis=1)
    assert np.unique(dominant).tolist() == list(range(much[0], much[1] + 1))
    assert np.unique(other).tolist() == list(range(little[0], little[1] + 1))
    assert (jobs.demand[:, 0] > jobs.demand[:, 1]).mean() == pytest.approx(0.5, abs=0.03)
    share = np.unique(dominant, return_counts=True)[1] / len(dominant)
    assert share == pytest.approx([1 / 6] * 6, abs=0.025)


def test_which_resource_is_wanted_most_has_nothing_to_do_with_duration(many: JobSet) -> None:
    cpu = many.demand[:, 0] > many.demand[:, 1]
    assert many.duration[cpu].mean() == pytest.approx(many.duration[~cpu].mean(), abs=0.25)


def test_poisson_arrivals_are_spread_over_the_steps_and_may_share_one(many: JobSet) -> None:
    counts = np.bincount(many.arrival, minlength=STEPS)
    assert len(counts) == STEPS
    assert counts == pytest.approx(np.full(STEPS, len(many.arrival) / STEPS), rel=0.25)


def test_a_step_has_several_poisson_arrivals_and_at_most_one_bernoulli_arrival(
    params: Params, workload: Synthetic
) -> None:
    most = {}
    for name in ("poisson", "bernoulli"):
        of = scenario(params, arrivals=POISSON.model_copy(update={"name": name}))
        jobsets = drawn(workload, params.demands["code"], of, load=150, jobsets=20)
        most[name] = max(int(np.bincount(jobs.arrival).max()) for jobs in jobsets)
        assert all((np.diff(jobs.arrival) >= 0).all() for jobs in jobsets)
    assert most["bernoulli"] == 1
    assert most["poisson"] > 1


BURSTS = Streaming(name="bursts", steps=STEPS, size=5.0)


def test_bursts_keep_the_load_that_was_asked_for(params: Params, workload: Synthetic) -> None:
    # A jobset has about 976 jobs, with a deviation of sqrt(976 * (2 * 5 - 1)) = 94: 0.015 of the mean over 40.
    of = scenario(params, arrivals=BURSTS.model_copy(update={"steps": 2_000}))
    jobsets = drawn(workload, params.demands["code"], of, 90, 40)
    held = sum((jobs.duration[:, None] * jobs.demand).sum(axis=0) for jobs in jobsets)
    assert 100 * held / (10 * 2_000 * 40) == pytest.approx(90, rel=0.05)
    assert all((np.diff(jobs.arrival) >= 0).all() for jobs in jobsets)


def test_a_burst_has_a_geometric_number_of_jobs_all_in_one_step(params: Params, workload: Synthetic) -> None:
    # At 2 % a burst comes every 461 steps, so that hardly two meet: P(1) = 1 / 5, P(2) = 4 / 5 * 1 / 5.
    of = scenario(params, arrivals=BURSTS.model_copy(update={"steps": 100_000}))
    jobsets = drawn(workload, params.demands["code"], of, 2, 20)
    many = np.concatenate([np.unique(jobs.arrival, return_counts=True)[1] for jobs in jobsets])
    assert len(many) == pytest.approx(20 * 100_000 * (2 / 184.5) / 5, rel=0.06)  # about 4,336
    assert many.mean() == pytest.approx(5, rel=0.05)
    assert (many == 1).mean() == pytest.approx(0.2, abs=0.025)
    assert (many == 2).mean() == pytest.approx(0.16, abs=0.025)


def test_bursts_of_one_job_are_as_uneven_as_poisson_arrivals_and_larger_ones_more(
    params: Params, workload: Synthetic
) -> None:
    # The variance of the jobs in a step, over their mean: 2 * size - 1 for a geometric size.
    for size in (1.0, 3.0):
        of = scenario(params, arrivals=BURSTS.model_copy(update={"size": size, "steps": 60_000}))
        (jobs,) = drawn(workload, params.demands["code"], of, 90, 1)
        counts = np.bincount(jobs.arrival, minlength=60_000)
        assert counts.mean() == pytest.approx(90 / 184.5, rel=0.05)
        assert counts.var() / counts.mean() == pytest.approx(2 * size - 1, rel=0.08)


@pytest.mark.parametrize("arrivals", ["poisson", "bernoulli"])
def test_a_jobset_without_jobs_is_drawn_again(params: Params, workload: Synthetic, arrivals: str) -> None:
    of = scenario(
        params, arrivals=POISSON.model_copy(update={"name": arrivals, "steps": 3})
    )  # 97 % of these would be empty
    jobsets = drawn(workload, params.demands["code"], of, load=2, jobsets=50)
    assert min(len(jobs.arrival) for jobs in jobsets) == 1


@pytest.mark.parametrize("arrivals", ["poisson", "bernoulli", "bursts"])
def test_a_jobset_without_a_measured_job_is_drawn_again(params: Params, workload: Synthetic, arrivals: str) -> None:
    size = 2.0 if arrivals == "bursts" else None
    own = {"name": arrivals, "steps": 30, "size": size, "measured": (10, 12)}  # 98 % have none in these two steps
    of = scenario(params, arrivals=POISSON.model_copy(update=own))
    jobsets = drawn(workload, params.demands["code"], of, load=2, jobsets=50)
    assert all(np.isin(jobs.arrival, [10, 11]).any() for jobs in jobsets)
    assert any((jobs.arrival < 10).any() for jobs in jobsets)


def test_what_is_measured_of_it_does_not_change_a_jobset(params: Params, workload: Synthetic) -> None:
    measured = scenario(params, arrivals=POISSON.model_copy(update={"measured": (10, 40)}))
    plain, stream = (drawn(workload, params.demands["code"], of, 90, 3) for of in (scenario(params), measured))
    for one, other in zip(plain, stream, strict=True):
        assert one.arrival.tolist() == other.arrival.tolist()
        assert one.demand.tolist() == other.demand.tolist()


@pytest.mark.parametrize("measured", [[-1, 10], [10, 10], [20, 10], [0, 51]])
def test_measured_steps_that_there_are_not_are_refused(params: Params, measured: list[int]) -> None:
    raw = params.scenarios["online"].model_dump()
    raw["arrivals"]["measured"] = measured
    with pytest.raises(ValidationError) as told:
        PoolScenario.model_validate(raw)
    assert first_error(told.value, raw, "params.yaml") == (
        f"params.yaml: arrivals: measured: expected [first, after] with 0 <= first < after <= steps 50, got {measured}"
    )


def test_a_stream_that_is_played_after_its_arrivals_is_refused(params: Params) -> None:
    raw = params.scenarios["streams"].model_dump() | {"step_limit": 6001}
    with pytest.raises(ValidationError) as told:
        PoolScenario.model_validate(raw)
    assert first_error(told.value, raw, "params.yaml") == (
        "params.yaml: top level: step_limit: expected at most arrivals.steps 6000, because jobs arrive as long "
        "as a stream is played; got 6001"
    )


def test_a_scenario_says_what_is_measured_of_it(params: Params) -> None:
    assert scenario(params).measured is None
    assert scenario(params, arrivals=AtOnce(name="at_once", jobs=30)).measured is None
    assert scenario(params, arrivals=Streaming(name="poisson", steps=50, measured=(0, 50))).measured == (0, 50)


def test_where_all_jobs_are_measured_records_of_params_say_nothing_of_it() -> None:
    assert POISSON.model_dump() == {"name": "poisson", "steps": STEPS}
    assert "measured" in POISSON.model_copy(update={"measured": (0, 9)}).model_dump()


def test_all_jobs_wait_from_the_start_where_they_arrive_at_once(params: Params, workload: Synthetic) -> None:
    of = scenario(params, arrivals=AtOnce(name="at_once", jobs=30))
    (jobs,) = drawn(workload, params.demands["code"], of, load=100, jobsets=1)
    assert jobs.arrival.tolist() == [0] * 30


@pytest.mark.parametrize(
    ("share", "capacity", "expected"),
    [((0.5, 1.0), 10, (5, 10)), ((0.1, 0.2), 10, (1, 2)), ((0.05, 0.1), 20, (1, 2)), ((0.25, 0.5), 10, (3, 5))],
)
def test_whole_units_lie_inside_the_range_of_shares(
    share: tuple[float, float], capacity: int, expected: tuple[int, int]
) -> None:
    assert units(share, capacity) == expected


def test_a_share_of_no_whole_unit_is_refused() -> None:
    with pytest.raises(UserError, match=r"no whole unit lies within 0.05-0.09 of 10 units; give more units"):
        units((0.05, 0.09), 10)


def checked(params: Params, of: PoolScenario) -> None:
    check_synthetic(params.model_copy(update={"scenarios": {"mine": of}, "agents": {}}))


@pytest.mark.parametrize(("preset", "most", "reachable"), [("code", "184.50", 184), ("text", "92.25", 92)])
def test_a_load_beyond_bernoulli_is_refused_with_the_most_it_reaches(
    params: Params, preset: str, most: str, reachable: int
) -> None:
    of = scenario(params, PRESETS[preset][0], demand=preset, arrivals=Streaming(name="bernoulli", steps=STEPS))
    with pytest.raises(UserError) as told:
        checked(params, of.model_copy(update={"loads": (50, reachable + 1)}))
    assert str(told.value).startswith(f"params.yaml: scenarios.mine.loads: {reachable + 1} % cannot be reached")
    assert str(told.value).endswith(f"the largest reachable load is {most} %; use poisson arrivals")
    checked(params, of.model_copy(update={"loads": (50, reachable)}))


def test_poisson_reaches_every_load(params: Params) -> None:
    of = scenario(params, loads=(50, 1000))
    checked(params, of)
    with pytest.raises(UserError, match="1000 % cannot be reached"):
        checked(params, of.model_copy(update={"arrivals": Streaming(name="bernoulli", steps=STEPS)}))


def test_a_job_longer_than_the_horizon_is_refused(params: Params) -> None:
    with pytest.raises(UserError, match=r"mine\.horizon: expected at least the longest job's 15 steps, got 14"):
        checked(params, scenario(params, horizon=14))
    checked(params, scenario(params, horizon=15))


def test_a_scenarios_own_workload_is_the_one_that_is_checked(params: Params, workload: Synthetic) -> None:
    shorter = workload.model_copy(update={"long": (10, 12)})
    checked(params, scenario(params, horizon=12, workload=shorter))
    with pytest.raises(UserError, match=r"mine\.horizon: expected at least the longest job's 12 steps, got 11"):
        checked(params, scenario(params, horizon=11, workload=shorter))


def test_a_demand_of_no_whole_unit_is_refused_with_its_scenario(params: Params) -> None:
    with pytest.raises(
        UserError, match=r"scenarios\.mine: demand 'text': no whole unit lies within 0\.05-0\.1 of 9 units"
    ):
        checked(params, scenario(params, 9, demand="text"))


def test_the_params_of_the_repository_can_be_drawn(params: Params, workload: Synthetic) -> None:
    check_synthetic(params)
    for of in params.scenarios_of(PoolScenario).values():
        jobs = draw_jobset(workload, params.demands[of.demand], of, max(of.loads), np.random.default_rng(1))
        assert 0 < jobs.duration.max() <= of.horizon
        assert (jobs.demand.max(axis=0) <= list(of.resources.values())).all()
