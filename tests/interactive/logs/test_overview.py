"""Expected numbers are worked by hand from logs of a few jobs."""

from pathlib import Path

import numpy as np
import pytest
from readable import faults

from pipeline.comparing.plots import png
from pipeline.core.logs import swf
from pipeline.core.logs.trace import Dropped, MachineTable, Trace
from pipeline.core.storage.files import check_table
from pipeline.core.types import ANY_KIND
from pipeline.interactive.logs import overview as tracing

HPC2N = Path(__file__).parents[4] / "shared" / "traces" / "HPC2N-2002-2.2-cln.first15000.swf.gz"
DAY = 86_400


def log(submit: list[float], run: list[float], cpu: list[int] | None = None, **changed: object) -> Trace:
    """Return a log of jobs that want whole cores, of one machine of 10, without estimates, waits and users."""
    jobs, run_s = len(submit), np.array(run, dtype=float)
    demand = 1000 * np.array(cpu or [1] * jobs)[:, None]
    trace = Trace(
        id=np.arange(1, jobs + 1),
        submit_s=np.array(submit, dtype=float),
        wait_s=np.full(jobs, np.nan),
        run_s=run_s,
        estimate_s=run_s,
        demand=demand,
        nodes=np.ones(jobs, dtype=np.int64),
        user=np.full(jobs, -1),
        kinds=np.full(jobs, ANY_KIND),
        partition=np.zeros(jobs, dtype=np.int64),
        group=np.zeros(jobs, dtype=np.int64),
        resources=("cpu",),
        kind_names=("",),
        has_estimates=False,
        machines=MachineTable(np.array([[10_000]]), np.array([0]), ("cpu",)),
        dropped=(),
        repaired=(),
        units=("cores",),
        rows=jobs,
    )
    return trace._replace(**changed)  # type: ignore[arg-type]


def test_an_overview_counts_everything() -> None:
    trace = log([0, DAY, 2 * DAY], [1, 1, 1], [1, 11, 10], user=np.array([4, -1, 4]), rows=5)
    found = tracing.overview(trace._replace(dropped=(Dropped("run time 0", 2, 7),))).set_index("what")["value"]
    assert found.to_dict() == {
        "rows of the log": 5,
        "rows dropped": 2,
        "jobs": 3,
        "days from first to last arrival": 2,
        "users": 1,
        "machines": 1,
        "kinds of machines": 1,
        "jobs that its machines could not run": 1,
    }


def test_an_overview_does_not_know_what_the_log_does_not_say() -> None:
    found = tracing.overview(log([0, 1], [1, 1], machines=None)).set_index("what")["value"]
    unknown = ["users", "machines", "kinds of machines", "jobs that its machines could not run"]
    assert found[found.isna()].index.tolist() == unknown


def test_load_is_work_over_span_and_capacity() -> None:
    # 3 cores for 20 s on 2 nodes, and 8 cores for 10 s, in 40 s: 200 / 40 = 5 of 10 cores.
    trace = log([0, 40], [20, 10], [3, 8], nodes=np.array([2, 1]))
    (row,) = tracing.load(trace).itertuples(index=False)
    assert tuple(row) == ("cpu", "cores", 5, 10, 0.5)


def test_load_needs_machines_and_a_span() -> None:
    (row,) = tracing.load(log([0, 40], [20, 20], machines=None)).itertuples(index=False)
    assert row.wanted == 1
    assert np.isnan([row.capacity, row.load]).all()
    (row,) = tracing.load(log([5, 5], [20, 20])).itertuples(index=False)
    assert row.capacity == 10
    assert np.isnan([row.wanted, row.load]).all()


def test_distributions_of_what_the_log_says() -> None:
    trace = log([0, 1, 3, 7, 17], [1, 2, 3, 4, 10], [1, 1, 1, 1, 6])
    found = tracing.distributions(trace).set_index("what")
    assert found.index.tolist() == ["run time", "gap between arrivals", "cpu on each node", "nodes"]
    # Between the fourth of five sorted values and the fifth: 60 and 96 percent of the way from 4 to 10.
    assert found.loc["run time"].tolist() == ["s", 5, 1, 3, 4, pytest.approx(7.6), pytest.approx(9.76), 10]
    assert found.loc["gap between arrivals", ["jobs", "median", "max"]].tolist() == [4, 3, 10]
    assert found.loc["cpu on each node", ["unit", "min", "mean", "max"]].tolist() == ["cores", 1, 2, 6]


def test_distributions_of_estimates_and_known_waits() -> None:
    trace = log([0, 1], [10, 20], estimate_s=np.array([40.0, 25.0]), has_estimates=True, wait_s=np.array([np.nan, 6]))
    found = tracing.distributions(trace).set_index("what")
    assert found.loc["run time / estimate", ["min", "mean", "max"]].tolist() == [0.25, pytest.approx(0.525), 0.8]
    assert found.loc["wait", ["jobs", "min", "max"]].tolist() == [1, 6, 6]


def test_a_log_of_one_job_has_no_gap() -> None:
    found = tracing.distributions(log([5], [10]))
    assert "gap between arrivals" not in set(found["what"])
    assert tracing.gaps(log([5], [10])).empty


def test_users_with_most_jobs_come_first_and_the_unknown_one_not_at_all() -> None:
    trace = log([0] * 8, [1] * 8, user=np.array([5, 3, 3, -1, 9, 9, 9, 5]))
    found = tracing.users(trace, most=2)
    assert found.to_numpy().tolist() == [[9, 3, 0.375], [3, 2, 0.25]]  # of two users with two jobs the lower number


def test_the_longest_gaps_come_first() -> None:
    trace = log([0, DAY, DAY + 10, DAY + 40], [1] * 4)
    assert tracing.gaps(trace, most=2).to_numpy().tolist() == [[0, DAY, 2], [1 + 10 / DAY, 30, 4]]


def test_the_quarantine_tells_what_was_dropped_then_what_was_repaired() -> None:
    trace = log([0], [1], dropped=(Dropped("run time 0", 3, 7),), repaired=(Dropped("sorted", 1, 0),), rows=4)
    found = tracing.quarantine(trace)
    assert found.to_numpy().tolist() == [["dropped", "run time 0", 3, 0.75, 7], ["repaired", "sorted", 1, 0.25, 0]]


def test_what_jobs_hold_is_averaged_over_equal_spans() -> None:
    # Four spans of 10 s. 2 cores in [0, 15), after a wait of 5 s 4 cores in [25, 45), 1 core in [40, 41): at the end.
    trace = log([0, 20, 40], [15, 20, 1], [2, 4, 1], wait_s=np.array([np.nan, 5, 0]))
    found = tracing.over_time(trace, spans=4)
    assert found["begin_days"].tolist() == [0, 10 / DAY, 20 / DAY, 30 / DAY]
    assert found["arrivals"].tolist() == [1, 0, 1, 1]
    assert found["cpu"].tolist() == [2, 1, 2, 4]


def test_jobs_that_arrive_at_once_are_shown_until_the_longest_has_run() -> None:
    found = tracing.over_time(log([7, 7], [10, 20]), spans=2)
    assert found["begin_days"].tolist() == [0, 10 / DAY]
    assert (found["arrivals"].tolist(), found["cpu"].tolist()) == ([2, 0], [2, 1])


def test_shares_say_what_is_not_exceeded() -> None:
    found = tracing.shares(log([0] * 4, [8, 1, 4, 2], [1, 2, 3, 4]), steps=4)
    assert found["share"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert (found["run_s"].tolist(), found["cpu"].tolist()) == ([1, 1, 2, 4, 8], [1, 1, 2, 3, 4])
    assert found["estimate_s"].isna().all()


LOGS = {
    "one job": log([5], [10]),
    "at once": log([5, 5], [10, 20]),
    "no machines": log([5, 9], [10, 20], machines=None),
    "nothing wanted": log([5, 9], [10, 20])._replace(demand=np.zeros((2, 1), dtype=np.int64)),
    "estimates": log([5, 9], [10, 20], has_estimates=True, user=np.array([0, 1])),
    "quarantine": log([5, 9], [1, 2], dropped=(Dropped("run time 0", 1, 1),), rows=3),
}


@pytest.mark.parametrize("kind", LOGS)
def test_every_table_keeps_to_its_schema_and_every_figure_is_drawn(kind: str) -> None:
    tables = tracing.tables(LOGS[kind])
    frames = {name: check_table(frame, schema, name) for name, (frame, schema) in tables.items()}
    once = {name: png(figure) for name, figure in tracing.figures(kind, frames).items()}
    assert list(once) == ["arrivals", "run_times", "demands", "load"]
    if kind == "estimates":  # with all that a figure may show
        assert once == {name: png(figure) for name, figure in tracing.figures(kind, frames).items()}


def test_figures_can_be_read_in_grey_and_have_titles_and_named_axes() -> None:
    frames = {name: frame for name, (frame, _) in tracing.tables(LOGS["estimates"]).items()}
    drawn = tracing.figures("mine", frames)
    assert {name: list(faults(figure, ["cores"])) for name, figure in drawn.items()} == {name: [] for name in drawn}
    assert [line.get_label() for line in drawn["run_times"].axes[0].lines] == ["run time", "its user's estimate"]
    assert drawn["run_times"].axes[0].get_xlabel() == "Time (seconds)"


def test_the_load_of_hpc2n_is_the_published_one() -> None:
    if not HPC2N.exists():
        pytest.skip(f"the trace files stand beside the project, and {HPC2N} is not there")
    trace = swf.read(HPC2N)
    cpu, memory = tracing.load(trace)["load"]
    assert (cpu, memory) == (pytest.approx(0.596, abs=5e-4), pytest.approx(0.298, abs=5e-4))
    held = tracing.over_time(trace)
    assert held["arrivals"].sum() == 15_000
    assert (held["cpu"] <= 240.0001).all()  # its own history had no more
