"""Streams small enough to work by hand: what is measured, how the backlog grows, who bears the slowdown."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from builders import TINY, tiny_jobset

from pipeline.comparing.statistics import summary
from pipeline.core.config import Evaluation, Streaming
from pipeline.core.schemas import STREAM_SUMMARY, empty
from pipeline.core.schemas.tables import STREAM_BACKLOG, STREAM_FAIRNESS
from pipeline.errors import UserError
from pipeline.problems.pool.comparison import stream_summary
from pipeline.problems.pool.env.evaluation.metrics import Span, measured_part, span_of
from pipeline.problems.pool.env.evaluation.play import (
    backlog,
    score,
    stream_results,
    utilisation,
)
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, JobSet, Schedule, batch
from pipeline.problems.pool.env.tables import JOB_RESULTS, JOBSET_RESULTS
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.results import Results

STEP_LIMIT = 10
LOAD, JOBSET = np.array([70, 130]), np.array([0, 4])
SPAN = Span(first=2, after=4, capacity=(2, 4))
SETTINGS = Evaluation(resamples=200, confidence=0.9)


def played() -> tuple[JobBatch, Schedule]:
    """One episode that ended, and one cut at step 10: a job still runs, and one never started."""
    ended = JobSet(
        arrival=np.array([0, 1, 2, 3, 4]),
        duration=np.array([2, 3, 1, 4, 1]),
        demand=np.array([[1, 1], [2, 2], [1, 0], [2, 2], [1, 1]]),
    )
    was_cut = JobSet(np.array([2, 3, 3]), np.array([2, 8, 1]), np.array([[2, 2], [1, 2], [2, 0]]))
    schedule = Schedule(
        start=np.array([0, 2, 5, 6, 10, 3, 5, -1]),
        finish=np.array([2, 5, 6, 10, 11, 5, -1, -1]),
        withheld=np.array([0, 1, 2, 3, 4, 5, 6, 7]),
        steps=np.array([11, 10]),
        withheld_steps=np.array([3, 0]),
        used=np.array([8.0, 9.0]),
    )
    return batch([ended, was_cut]), schedule


def results(span: Span = SPAN) -> Results:
    return stream_results("sjf", LOAD, JOBSET, *played(), STEP_LIMIT, span)


def test_only_jobs_that_arrive_in_the_measured_steps_are_told_of() -> None:
    table = JOB_RESULTS.validate(results().jobs)
    assert table["jobset"].tolist() == [0, 0, 4, 4, 4]
    assert table["job"].tolist() == [2, 3, 0, 1, 2]  # numbered as in their jobset
    assert table["withheld"].tolist() == [2, 3, 5, 6, 7]
    assert table["slowdown"].tolist() == [4 / 1, 7 / 4, 3 / 2, 1.0, 7 / 1]
    assert table["unfinished"].tolist() == [False, False, False, True, True]
    assert table.index.tolist() == list(range(5))


def test_metrics_of_a_jobset_are_those_of_its_measured_jobs() -> None:
    first, second = JOBSET_RESULTS.validate(results().jobsets).to_dict("records")
    assert (first["jobs"], second["jobs"]) == (2, 3)
    assert first["mean_slowdown"] == first["p50_slowdown"] == pytest.approx((4 + 1.75) / 2)
    assert (first["worst_slowdown"], second["worst_slowdown"]) == (4, 7)
    assert (first["longest_wait"], second["longest_wait"]) == (3, 7)  # 7: never started, up to the cut
    assert second["p99_slowdown"] == pytest.approx(1.5 + 0.98 * 5.5)
    assert first["completion_time"] == pytest.approx((4 + 7) / 2)
    assert (first["unfinished"], second["unfinished"]) == (0, 2)
    assert (first["makespan"], second["makespan"]) == (11, 10)  # of the whole episode
    assert first["not_work_conserving"] == pytest.approx(3 / 11)


def test_utilisation_is_that_of_the_measured_steps_whoever_runs_in_them() -> None:
    # In steps 2 and 3, a job of 2 / 2 and 2 / 4 units runs: both steps of the first episode, one of the second.
    assert results().jobsets["utilisation"].tolist() == [0.75, 0.375]
    # In steps 5 to 8, the first has a step of (1 / 2 + 0) / 2 and three of 0.75; the second a job that is cut, of 0.5.
    assert utilisation(*played(), SPAN._replace(first=5, after=9)).tolist() == [2.5 / 4, 0.5]


def test_a_job_that_starts_as_it_arrives_does_not_wait() -> None:
    table = STREAM_BACKLOG.validate(results().others["backlog"])
    first, second = table[table["jobset"] == 0], table[table["jobset"] == 4]
    assert first["step"].tolist() == [0, 1, 2, 3]  # 3: the last that is measured
    assert first["waiting"].tolist() == [0, 1, 1, 2]
    assert first["in_system"].tolist() == [1, 2, 2, 3]
    assert second["waiting"].tolist() == [0, 0, 1, 2]
    assert second["in_system"].tolist() == [0, 0, 1, 3]


def test_growth_is_the_slope_of_jobs_waiting_over_the_measured_steps() -> None:
    about = ("sjf", LOAD, JOBSET, *played())
    assert results().others["backlog"]["growth"].unique().tolist() == [100.0]  # 1, 2 in both
    longer = backlog(*about, SPAN._replace(first=1, after=5)).drop_duplicates("jobset")
    assert longer["growth"].tolist() == pytest.approx([70.0, 70.0])  # 1, 1, 2, 3 and 0, 1, 2, 2: 3.5 / 5 each
    one_step = backlog(*about, SPAN._replace(first=2, after=3))
    assert one_step["growth"].unique().tolist() == [0.0]


def test_what_finishes_in_the_measured_steps_is_told_by_100_steps() -> None:
    # Of the first stream's jobs, which finish at 2, 5, 6, 10 and 11, two end in steps 2 to 5; of the second's one.
    table = backlog("sjf", LOAD, JOBSET, *played(), SPAN._replace(after=6)).drop_duplicates("jobset")
    assert table["finished"].tolist() == [50.0, 25.0]


def test_the_backlog_of_a_long_stream_is_told_at_twelve_steps() -> None:
    table = backlog("sjf", LOAD, JOBSET, *played(), SPAN._replace(after=2501))
    assert table.groupby("jobset").size().tolist() == [12, 12]
    assert table["step"].tolist()[:3] == [0, 227, 455]
    assert table["step"].max() == 2500
    assert table["in_system"].tolist()[11::12] == [0, 2]  # the two unfinished jobs never leave


def test_fairness_tells_how_jobs_fare_by_their_length() -> None:
    # Measured durations 1, 4 at load 70 and 2, 8, 1 at load 130: a quarter of all five are 1, half 2, three quarters 4.
    table = STREAM_FAIRNESS.validate(results().others["fairness"])
    assert table[["load", "length"]].to_numpy().tolist() == [[70, 1], [70, 3], [130, 1], [130, 2], [130, 4]]
    assert table["shortest"].tolist() == table["longest"].tolist() == [1, 4, 1, 2, 8]
    assert table["jobs"].tolist() == [1] * 5
    assert table["mean_slowdown"].tolist() == [4, 1.75, 7, 1.5, 1]
    assert table["share"].tolist() == pytest.approx([4 / 5.75, 1.75 / 5.75, 7 / 9.5, 1.5 / 9.5, 1 / 9.5])
    assert table["longest_wait"].tolist() == [3, 3, 7, 1, 2]  # 7: never started, up to the cut
    assert table["unfinished"].tolist() == [0, 0, 1, 0, 1]


def test_a_jobset_without_a_measured_job_is_refused_with_its_name() -> None:
    with pytest.raises(UserError, match=r"jobset 4 of load 130: expected a job that arrives in a step of \[0, 2\)"):
        measured_part(LOAD, JOBSET, *played(), SPAN._replace(first=0, after=2))


def test_only_a_stream_has_a_span() -> None:
    assert span_of(TINY) is None
    stream = TINY.model_copy(update={"arrivals": Streaming(name="poisson", steps=12, measured=(3, 9))})
    assert span_of(stream) == Span(3, 9, (4, 4))


def test_a_stream_is_an_overload_where_arrivals_end_with_the_measured_steps() -> None:
    ends, goes_on = (Streaming(name="poisson", steps=steps, measured=(3, 9)) for steps in (9, 12))
    found = [TINY.model_copy(update={"arrivals": arrivals}).overload for arrivals in (ends, goes_on, TINY.arrivals)]
    assert found == [True, False, False]


JOBSETS = {load: [tiny_jobset(load, 0, number) for number in range(4)] for load in (80, 200)}
BOTH = {name: HEURISTICS[name] for name in ("fcfs", "sjf")}
tiny_score = partial(score, BOTH, JOBSETS, Cluster.of(TINY), 60, 5)


def test_a_stream_that_is_over_early_has_the_measured_jobs_of_one_that_is_played_on() -> None:
    span = Span(3, 9, (4, 4))
    whole, early = (
        score(BOTH, JOBSETS, Cluster.of(TINY)._replace(measured=measured), 60, 5, measured=span)
        for measured in (None, (3, 9))
    )
    for name, done in early.items():
        pd.testing.assert_frame_equal(done.jobs.drop(columns="withheld"), whole[name].jobs.drop(columns="withheld"))
        pd.testing.assert_frame_equal(done.others["fairness"], whole[name].others["fairness"])
        assert (done.jobsets["makespan"] < whole[name].jobsets["makespan"]).all()


def by_job(done: Results) -> pd.DataFrame:
    return done.jobs.set_index(["load", "jobset", "job"])


def test_jobs_that_are_not_measured_are_played_all_the_same() -> None:
    everything, some = tiny_score(), tiny_score(measured=Span(3, 9, (4, 4)))
    for name, done in some.items():
        every, kept = by_job(everything[name]), by_job(done)
        assert 0 < len(kept) < len(every)
        pd.testing.assert_frame_equal(kept, every.loc[kept.index])
        assert done.jobsets["makespan"].tolist() == everything[name].jobsets["makespan"].tolist()


def test_a_stream_that_is_measured_whole_has_the_tables_of_any_scenario() -> None:
    everything, whole = tiny_score(), tiny_score(measured=Span(0, 12, (4, 4)))
    for name, done in whole.items():
        pd.testing.assert_frame_equal(done.jobs, everything[name].jobs, check_exact=True)
        rest = done.jobsets.columns.drop("utilisation")
        pd.testing.assert_frame_equal(done.jobsets[rest], everything[name].jobsets[rest], check_exact=True)
        assert set(done.others) == {"backlog", "fairness"}
        assert not everything[name].others


def test_measured_over_the_whole_episode_utilisation_is_what_the_simulator_counts() -> None:
    everything = tiny_score()["sjf"].jobsets
    longest = int(everything["makespan"].max())
    found = tiny_score(measured=Span(0, longest, (4, 4)))["sjf"].jobsets
    np.testing.assert_allclose(found["utilisation"] * longest, everything["utilisation"] * everything["makespan"])


def test_overload_is_shown_by_a_backlog_that_grows() -> None:
    # A job of two steps that fills the cluster arrives in every step: every other one is left waiting.
    def stream(every: int) -> JobSet:
        arrival = np.arange(0, 40, every)
        return JobSet(arrival, np.full(len(arrival), 2), np.full((len(arrival), 1), 4))

    cluster, span = Cluster((4,), 6, 3, 6, False), Span(10, 30, (4,))
    done = score(BOTH, {50: [stream(4)], 200: [stream(1)]}, cluster, 200, 5, measured=span)["fcfs"]
    growth = done.others["backlog"].groupby("load")["growth"].mean()
    assert growth[50] == 0
    assert growth[200] == pytest.approx(50, rel=0.02)


def judged() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Two policies on two jobsets of a load: jobset, backlog and fairness tables."""
    rows = [
        ("sjf", 0, 10, 3.0, 20.0, 30.0, 70, 0.5, 1, 4.0),
        ("sjf", 1, 12, 5.0, 40.0, 90.0, 50, 0.7, 0, 0.0),
        ("hold", 0, 10, 2.0, 10.0, 11.0, 8, 0.6, 0, -1.0),
        ("hold", 1, 12, 4.0, 30.0, 33.0, 6, 0.6, 0, -3.0),
    ]
    names = ["policy", "jobset", "jobs", "mean_slowdown", "p99_slowdown", "worst_slowdown", "longest_wait"]
    frame = pd.DataFrame(rows, columns=[*names, "utilisation", "unfinished", "growth"])
    frame = frame.assign(load=80, p50_slowdown=1.0, makespan=50, finished=40.0)
    frame = frame.assign(completion_time=9.0, not_work_conserving=0.0)
    jobsets = JOBSET_RESULTS.validate(frame[list(JOBSET_RESULTS.columns)])
    looks = pd.concat([frame.assign(step=step, waiting=3, in_system=5) for step in (0, 50)], ignore_index=True)
    lengths = pd.DataFrame(
        [("sjf", 1, 2.0, 9), ("sjf", 2, 6.0, 70), ("hold", 1, 3.0, 5), ("hold", 2, 3.5, 8)],
        columns=["policy", "length", "mean_slowdown", "longest_wait"],
    ).assign(load=80, shortest=1, longest=2, jobs=11, share=0.5, unfinished=0)
    return (
        jobsets,
        STREAM_BACKLOG.validate(looks[list(STREAM_BACKLOG.columns)]),
        STREAM_FAIRNESS.validate(lengths[list(STREAM_FAIRNESS.columns)]),
    )


def summed_up(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return STREAM_SUMMARY.validate(stream_summary(*judged(), "streams", SETTINGS, rng))


def test_the_summary_averages_over_jobsets() -> None:
    sjf, hold = summed_up().to_dict("records")
    assert (sjf["scenario"], sjf["policy"], hold["policy"], sjf["load"], sjf["n"]) == ("streams", "sjf", "hold", 80, 2)
    assert (sjf["jobs"], sjf["never_started"]) == (22, 1)
    assert (sjf["slowdown"], hold["slowdown"]) == (4.0, 3.0)
    assert (sjf["p99_slowdown"], sjf["mean_longest_wait"], sjf["worst_slowdown"]) == (30.0, 60.0, 90.0)
    assert (sjf["longest_wait"], hold["longest_wait"]) == (70, 8)
    assert sjf["utilisation"] == pytest.approx(0.6)
    assert (sjf["growth"], hold["growth"], sjf["finished"]) == (2.0, -2.0, 40.0)
    assert not sjf["overload"]
    assert [sjf[f"slowdown_length_{length}"] for length in (1, 2)] == [2.0, 6.0]
    assert np.isnan(sjf["slowdown_length_3"])


def test_intervals_are_over_jobsets_and_those_of_slowdown_are_the_ones_of_every_summary() -> None:
    found = summed_up()
    jobsets = judged()[0].assign(unbounded_slowdown=1.0)
    usual = summary(jobsets, "streams", SETTINGS, np.random.default_rng(1))
    columns = ["slowdown", "slowdown_low", "slowdown_high"]
    pd.testing.assert_frame_equal(found[columns], usual[columns], check_exact=True)
    # Of two jobsets a resample has either twice or both, so that the interval reaches from one to the other.
    assert found[["growth_low", "growth_high"]].to_numpy().tolist() == [[0.0, 4.0], [-3.0, -1.0]]
    assert found[["p99_slowdown_low", "p99_slowdown_high"]].to_numpy().tolist() == [[20.0, 40.0], [10.0, 30.0]]
    waits = found[["mean_longest_wait_low", "mean_longest_wait_high"]]
    assert waits.to_numpy().tolist() == [[50.0, 70.0], [6.0, 8.0]]


def test_a_scenario_that_is_no_stream_has_no_summary() -> None:
    jobsets = judged()[0]
    found = stream_summary(
        jobsets, empty(STREAM_BACKLOG), empty(STREAM_FAIRNESS), "online", SETTINGS, np.random.default_rng(1)
    )
    assert STREAM_SUMMARY.validate(found).empty
