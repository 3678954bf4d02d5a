"""Estimates: what is told of a job, and that telling it changes no job."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.core.config import AtOnce, Counts, Params, PoolLog, Synthetic
from pipeline.core.config.params import check_params
from pipeline.core.logs.predictions import predict_run_times
from pipeline.core.logs.registry import read
from pipeline.core.logs.windows import periods
from pipeline.errors import UserError
from pipeline.interactive.pool.scheduling import job_columns
from pipeline.interactive.scheduling.user_jobs import read_user_jobs
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.workload.source import DrawnSource, LogSource, source
from pipeline.problems.pool.env.workload.synthetic import check_estimates, estimated

NO_LOG = Path("no/log")


def asked(params: Params, noise: float, policies_know: str = "estimates", **settings: object) -> Params:
    """The online scenario alone, with few jobsets at one load."""
    own = {"loads": (90,), "jobsets": Counts(train=4, validation=2, test=3), "policies_know": policies_know, **settings}
    online = params.scenarios["online"].model_copy(update=own)
    workload = params.workload.model_copy(update={"estimate_noise": noise})
    return params.model_copy(update={"workload": workload, "scenarios": {"online": online}})


def jobsets(params: Params) -> list[JobSet]:
    origin = source(params, "online", NO_LOG)
    assert isinstance(origin, DrawnSource)
    return [*origin.split("train")[90], *origin.split("test")[90], origin.fresh(90, 5)]


def several(duration: int, count: int = 40_000) -> JobSet:
    return JobSet(np.zeros(count, dtype=int), np.full(count, duration), np.ones((count, 1), dtype=int))


def test_half_of_the_jobs_are_told_less_and_two_thirds_lie_within_a_factor() -> None:
    jobs = estimated(several(10_000), 0.7, 1_000_000, np.random.default_rng(1))
    assert jobs.estimate is not None
    factor = np.log(jobs.estimate / 10_000)
    assert (factor < 0).mean() == pytest.approx(0.5, abs=0.01)
    assert (np.abs(factor) < 0.7).mean() == pytest.approx(0.683, abs=0.01)


def test_estimates_are_whole_steps_from_one_to_the_horizon() -> None:
    jobs = estimated(several(6, 2000), 1.5, 20, np.random.default_rng(1))
    assert jobs.estimate is not None
    assert (jobs.estimate.min(), jobs.estimate.max()) == (1, 20)
    assert jobs.estimate.dtype == np.int64


def test_without_noise_the_truth_is_told() -> None:
    jobs = estimated(several(6, 50), 0.0, 20, np.random.default_rng(1))
    assert jobs.requested.tolist() == jobs.duration.tolist()


def test_the_jobs_are_the_same_whatever_is_told_of_them(params: Params) -> None:
    plain = jobsets(asked(params, 0.0, "durations"))
    for noise in (0.3, 1.0):
        for known, other in zip(plain, jobsets(asked(params, noise)), strict=True):
            assert known.estimate is None
            assert other.estimate is not None
            assert all(np.array_equal(*columns) for columns in zip(known[:3], other[:3], strict=True))


def test_only_a_scenario_that_tells_estimates_has_them(params: Params) -> None:
    assert all(jobs.estimate is None for jobs in jobsets(asked(params, 1.0, "durations")))


def test_estimates_are_drawn_alike_every_time_and_apart_for_every_jobset(params: Params) -> None:
    one, same = jobsets(asked(params, 0.5)), jobsets(asked(params, 0.5))
    assert [jobs.requested.tolist() for jobs in one] == [jobs.requested.tolist() for jobs in same]
    factors = {tuple((jobs.requested[:8] / jobs.duration[:8]).tolist()) for jobs in one}
    assert len(factors) == len(one)


def test_estimates_do_not_repeat_the_draws_that_made_the_jobs(params: Params) -> None:
    """More noise moves estimates further in the same direction: one draw a job, whatever the noise."""
    little, much = (jobsets(asked(params, noise)) for noise in (0.5, 2.0))
    for one, other in zip(little, much, strict=True):
        assert ((one.requested > one.duration) <= (other.requested >= one.duration)).all()
        assert ((one.requested < one.duration) <= (other.requested <= one.duration)).all()


def test_estimates_that_there_are_not_are_refused(params: Params) -> None:
    with pytest.raises(UserError, match=r"^params.yaml: scenarios.online.policies_know: estimates need a log, or "):
        source(asked(params, 0.0), "online", NO_LOG)
    check_estimates(asked(params, 0.1))
    check_estimates(asked(params, 0.0, "durations"))


def test_estimates_are_refused_where_jobs_are_placed_ahead(params: Params) -> None:
    raw = params.model_dump(mode="json", exclude_none=True)
    raw["scenarios"]["online"] |= {"policies_know": "estimates", "place_ahead": True}
    with pytest.raises(
        UserError, match=r"^p: scenarios.online: .*policies_know: where jobs are placed ahead, expected "
    ):
        check_params(raw, "p")


def test_settings_that_tell_durations_are_written_as_before(params: Params) -> None:
    assert isinstance(params.workload, Synthetic)
    assert "estimate_noise" not in params.workload.model_dump()
    assert "policies_know" not in params.scenarios["online"].model_dump()
    noisy = asked(params, 0.5)
    assert noisy.workload.model_dump()["estimate_noise"] == 0.5
    assert noisy.scenarios["online"].model_dump()["policies_know"] == "estimates"


def log(folder: Path) -> Path:
    """Jobs of two hours, an hour apart; of every three the first asks for one hour, the next for four, one for none."""
    lines = ["; MaxProcs: 4"]
    for k in range(60):
        estimate = (3600, 4 * 3600, -1)[k % 3]
        lines.append(f"{k + 1} {3600 * k} 0 7200 1 -1 100 1 {estimate} -1 1 1 1 -1 1 -1 -1 -1")
    path = folder / "small.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def windows(params: Params, path: Path, policies_know: str, **settings: object) -> LogSource:
    own = asked(params, 0.0, policies_know, **settings)
    swf = PoolLog(name="swf", path=str(path), window=6, capacity=4)
    origin = source(own.model_copy(update={"workload": swf}), "online", path)
    assert isinstance(origin, LogSource)
    return origin


def test_windows_of_a_log_tell_what_its_users_said(params: Params, tmp_path: Path) -> None:
    origin = windows(params, log(tmp_path), "estimates")
    (jobs, *_) = origin.split("train")[origin.load]
    assert jobs.duration.tolist() == [2] * 6
    assert jobs.estimate is not None
    assert jobs.estimate.tolist() == [1, 4, 2, 1, 4, 2]
    fresh = origin.fresh(0, 1)
    assert sorted(fresh.requested.tolist()) == [1, 1, 2, 2, 4, 4]
    assert "run times known to policies: 20 jobs (33.3%) run longer, 20 (33.3%) in steps" in origin.notes
    assert "estimate unknown: its run time taken (20 rows)" in origin.notes


def test_windows_of_a_log_tell_what_is_predicted_from_its_training_period(params: Params, tmp_path: Path) -> None:
    path = log(tmp_path)
    workload = PoolLog(name="swf", path=str(path), window=6, capacity=4)
    predicted = predict_run_times(read(path, "swf"), np.arange(periods(60, workload)["train"][1]))
    origin = windows(params, path, "predictions")
    (jobs, *_) = origin.split("test")[origin.load]
    assert jobs.estimate is not None
    assert set(jobs.estimate.tolist()) <= set(np.ceil(predicted / 3600.0).astype(int).tolist())
    plain = windows(params, path, "estimates").split("test")[origin.load][0]
    assert plain.duration.tolist() == jobs.duration.tolist()
    assert np.abs(jobs.requested - jobs.duration).sum() < np.abs(plain.requested - plain.duration).sum()


def test_a_recipe_has_no_predictions(params: Params) -> None:
    with pytest.raises(
        UserError, match=r"^params.yaml: scenarios.online.policies_know: predictions need a log, found "
    ):
        check_estimates(asked(params, 0.5, "predictions"))


def test_a_log_without_estimates_is_refused_where_they_are_to_be_told(params: Params, tmp_path: Path) -> None:
    path = log(tmp_path)
    path.write_text(path.read_text().replace(" 14400 -1 ", " -1 -1 ").replace(" 3600 -1 1", " -1 -1 1"))
    expected = "^params.yaml: scenarios.online: policies_know: the log has no estimates; expected durations$"
    with pytest.raises(UserError, match=expected):
        windows(params, path, "estimates")


def test_windows_that_wait_all_at_once_tell_estimates_too(params: Params, tmp_path: Path) -> None:
    origin = windows(params, log(tmp_path), "estimates", arrivals=AtOnce(name="at_once", jobs=3))
    assert origin.split("test")[origin.load][0].requested.tolist() == [1, 4, 2]


def test_a_log_tells_its_durations_unless_asked_for_estimates(params: Params, tmp_path: Path) -> None:
    origin = windows(params, log(tmp_path), "durations")
    assert all(jobs.estimate is None for jobs in origin.split("train")[origin.load])
    assert not any("estimates" in note for note in origin.notes)


def test_of_a_users_log_the_beginning_teaches_and_a_table_has_none(params: Params, tmp_path: Path) -> None:
    row = asked(params, 0.0, "predictions").pool_scenario("online").model_copy(update={"resources": {"cpu": 4}})
    workload = PoolLog(name="swf", path="log.swf", window=6, capacity=4)
    columns = job_columns(params.model_copy(update={"workload": workload}), row)
    found = read_user_jobs(log(tmp_path), columns)
    assert found.jobs.estimate is not None
    assert (found.jobs.estimate != found.jobs.duration).any()
    assert found.notes[-1].startswith("run times are predicted from the first 36 jobs")
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("jobset,job,arrival,duration,cpu\n1,1,0,2,1\n")
    with pytest.raises(UserError, match=r"jobs.csv: a table has no past to predict run times from \(policies_know: "):
        read_user_jobs(jobs, columns)


def test_a_users_table_tells_its_estimates_where_the_scenario_says_so(params: Params, tmp_path: Path) -> None:
    row = asked(params, 0.0).pool_scenario("online").model_copy(update={"resources": {"cpu": 4}})
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("jobset,job,arrival,duration,cpu,estimate\n1,1,0,2,1,5\n1,2,0,3,1,1\n1,3,0,3,1,3\n")
    found = read_user_jobs(jobs, job_columns(params, row), rows=2)
    assert found.jobs.estimate is not None
    assert (found.jobs.duration.tolist(), found.jobs.estimate.tolist(), list(found.notes)) == ([2, 3, 3], [5, 1, 3], [])
    jobs.write_text(jobs.read_text().replace(",5\n", ",600\n").replace(",1\n1,3", ",\n1,3"))
    known = row.model_copy(update={"policies_know": "durations"})  # so that it may be anything
    found = read_user_jobs(jobs, job_columns(params, known))
    assert (found.jobs.estimate, list(found.notes)) == (
        None,
        [f"{jobs}: estimate is not used (policies_know: durations)"],
    )
    jobs.write_text("jobset,job,arrival,duration,cpu\n1,1,0,2,1\n")
    with pytest.raises(UserError, match=r"jobs.csv: columns: missing estimate \(policies_know: estimates\)$"):
        read_user_jobs(jobs, job_columns(params, row))


@pytest.mark.parametrize("estimate", ["0", "2.5", "21", "x"])
def test_an_estimate_that_no_policy_can_be_told_is_refused(params: Params, tmp_path: Path, estimate: str) -> None:
    row = asked(params, 0.0).pool_scenario("online").model_copy(update={"resources": {"cpu": 4}, "horizon": 20})
    (tmp_path / "jobs.csv").write_text(f"jobset,job,arrival,duration,cpu,estimate\n1,1,0,2,1,{estimate}\n")
    with pytest.raises(UserError, match=r"jobs.csv: estimate: .*(row|line) "):
        read_user_jobs(tmp_path / "jobs.csv", job_columns(params, row))
