"""Pictures of a jobset on many machines: what is said of them, and what cannot be drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_builders import random_problem
from machine_rows import few
from readable import faults

from pipeline.core import storage
from pipeline.core.types import keys
from pipeline.errors import UserError
from pipeline.interactive.machines.showing import MOST_LANES, SHOWING, dominant, drawn_machines, watch
from pipeline.interactive.showing.drawing import Window
from pipeline.interactive.showing.show import Picture, ShowRequest, draw, queued
from pipeline.problems.machines.env.nouns import Jobs, Machines
from pipeline.problems.machines.env.workload.source import draw as draw_jobsets
from pipeline.problems.machines.heuristics.rules import HEURISTICS

KEY = keys(1, np.array([0]), np.array([0]))
HEAD = "jobset,job,arrival,duration,cpu,memory,nodes"
# On three machines, shortest first: both short ones at 0 on machine 0, `wide` on both others; then `long`.
JOBS = f"{HEAD}\nday,long,0,20,4,1,1\nday,short,0,10,2,1,1\nday,other,0,10,2,1,1\nday,wide,0,12,4,1,2\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def show(jobs: str | None = None, policy: str = "sjf", names: tuple[str, ...] = (), **changes: Any) -> Picture:
    asked = ShowRequest(None if jobs is None else Path(jobs), "few")._replace(**changes)
    return draw(SHOWING, few(), asked, [policy, "fcfs"], names)


def test_a_job_table_is_drawn_the_same_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("jobs.csv").write_text(JOBS)
    picture = show("jobs.csv")
    assert picture.content.startswith(b"\x89PNG")
    assert picture.title == "jobs.csv, jobset day, on the cluster of scenario few: 4 jobs"
    assert picture.halves == [
        "sjf: mean slowdown 1.12, worst 1.5, mean wait 2.5",  # long waits for 10
        "fcfs: mean slowdown 1.21, worst 1.8, mean wait 2.5",  # wide does, for the machine of short and other
    ]
    assert show("jobs.csv") == picture
    monkeypatch.setattr("pipeline.interactive.showing.show.png", lambda _: b"")
    assert show("jobs.csv", names=("a", "b")).halves[1].startswith("b: ")


def test_a_picture_can_be_read_in_grey(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("jobs.csv").write_text(JOBS)
    found: list[str] = []
    monkeypatch.setattr("pipeline.interactive.showing.show.png", lambda figure: found.extend(faults(figure)))
    show("jobs.csv")
    assert found == []


def test_a_test_jobset_is_drawn_as_it_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.interactive.showing.show.png", lambda _: b"")
    params = few()
    draw_jobsets(params, "few", lambda done, note="": None).write(storage.jobsets_folder("few"))
    picture = show(load=120, jobset="1")
    assert picture.title == "Scenario few, load 120 %, test jobset 1: 20 jobs"
    with pytest.raises(UserError, match="scenario 'few': choose a load by --load; there are: 60, 120"):
        show()
    with pytest.raises(UserError, match="scenario 'few': unknown load 50; there are: 60, 120"):
        show(load=50)
    with pytest.raises(UserError, match="scenario 'few', load 60: unknown test jobset 'x'; there are: 0 to 2"):
        show(load=60, jobset="x")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"policy": "sjff"}, "unknown policy 'sjff': .*did you mean 'sjf'"),
        ({"load": 60}, "--load: not in scenario 'few': only policies of pooled clusters use it"),
        ({"jobset": "night"}, "jobs.csv: unknown jobset 'night'; there are: day"),
        ({"begin": 99}, "time 99 to 30: nothing to draw; the jobset runs from 0 to 30"),
        ({"begin": 5, "end": 5}, "time 5 to 5: nothing to draw"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    with pytest.raises(UserError, match=said) as caught:
        show("jobs.csv", **changes)
    assert "\n" not in str(caught.value)


def test_too_many_jobs_for_one_picture_are_drawn_in_parts() -> None:
    Path("long.csv").write_text("\n".join([HEAD, *(f"0,{k},{k},1,1,1,1" for k in range(2000))]))
    with pytest.raises(UserError, match=r"2,000 jobs are too many for one picture .*: choose a part by "):
        show("long.csv")
    assert show("long.csv", begin=100, end=120).content


def test_no_job_is_on_two_machines_too_few_and_the_queue_adds_up() -> None:
    for seed in range(10):
        problem = random_problem(np.random.default_rng(seed), 0, 4)
        jobs, machines = problem.episodes[0], problem.machines._replace(measured=None)
        trace = watch("sjf", HEURISTICS["sjf"], jobs, machines, KEY)
        for job in np.flatnonzero(~np.isnan(trace.start)).tolist():
            assert len(set(trace.machines(job).tolist())) == jobs.nodes[job]
        times, queue = queued(jobs.arrival, trace, Window(0.0, np.inf))
        assert (queue >= 0).all()
        never = np.isnan(trace.start).sum()
        assert queue[-2 if never else -1] == never
        assert queue[-1] == 0
        assert (np.diff(times) > 0).all()


def test_of_many_machines_the_busiest_are_drawn() -> None:
    rng = np.random.default_rng(3)
    problem = random_problem(rng, 0, MOST_LANES + 20)
    jobs, machines = problem.episodes[0], problem.machines._replace(time_limit=np.inf)
    trace = watch("sjf", HEURISTICS["sjf"], jobs, machines, KEY)
    lanes = drawn_machines(machines, [trace], Window(0, trace.end)).tolist()
    assert len(lanes) == MOST_LANES
    assert lanes == sorted(lanes)
    used = {int(k) for job in range(len(jobs.arrival)) for k in trace.machines(job)}
    assert used <= set(lanes) or len(used) > MOST_LANES


# What is drawn


def test_a_machine_is_drawn_by_the_resource_that_is_wanted_most_of_those_it_has() -> None:
    machines = Machines(np.array([[4000, 1000], [4000, 0]]), np.zeros(2, dtype=int), 4, 0, 1.0, 1e6)
    ones = np.ones(1)
    jobs = Jobs(ones, ones, ones, np.array([[1000, 900]]), np.ones(1, dtype=int), np.ones(1, dtype=np.uint64))
    assert dominant(jobs, machines).tolist() == [1, 0]


def test_any_problem_has_a_dominant_resource_on_each_machine() -> None:
    for seed in range(20):
        problem = random_problem(np.random.default_rng(seed), 0, 4)
        chosen = dominant(problem.episodes[0], problem.machines)
        assert (problem.machines.capacity[np.arange(4), chosen] > 0).all()
