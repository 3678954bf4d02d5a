"""`show`: a picture of one jobset under two policies, or one line that gives the reason why not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import jobset

from pipeline.core import storage
from pipeline.core.types import Observation
from pipeline.interactive.pool import scheduling, showing
from pipeline.problems.pool.env.storage import write_jobsets
from pipeline.problems.pool.heuristics.scores import HEURISTICS

HEAD = "jobset,job,arrival,duration,cpu,memory"
# Ten units of each resource. Shortest first: b at 0, c and a at 1. First come, first served: a at 0, c at 1, b at 3.
JOBS = f"{HEAD}\n0,a,0,3,6,2\n0,b,0,1,6,2\n0,c,1,2,4,8\n"
UNITS = {"cpu": 10, "memory": 10}

Command = Callable[..., Any]


def show(command: Command, *words: object, policy: str = "sjf", out: str = "out.png") -> Any:
    return command("show", *words, "--scenario", "online", "--policy", policy, "--against", "fcfs", "--out", out)


@pytest.fixture
def jobsets(place: Path) -> None:
    """Test jobsets of two loads: one of 10 %, two of 90 %."""
    one, two = jobset((0, 2, 6, 1), (0, 1, 6, 1)), jobset((1, 1, 1, 1))
    write_jobsets(storage.jobsets_folder("online"), "test", {10: [one], 90: [one, two]}, UNITS)


def test_a_job_table_is_drawn_the_same_twice(command: Command) -> None:
    Path("jobs.csv").write_text(JOBS)
    outcome = show(command, "jobs.csv", out="new/folder/out.png")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines() == [
        "new/folder/out.png: jobs.csv, jobset 0, on the cluster of scenario online: 3 jobs",
        "  sjf: mean slowdown 1.11, makespan 4, 0 steps not work-conserving (0 %), 0 jobs withheld",
        "  fcfs: mean slowdown 2.00, makespan 4, 0 steps not work-conserving (0 %), 0 jobs withheld",
    ]
    first = Path("new/folder/out.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert show(command, "jobs.csv").code == 0
    assert Path("out.png").read_bytes() == first


@pytest.mark.usefixtures("jobsets")
def test_a_test_jobset_is_drawn(command: Command) -> None:
    outcome = show(command, "--load", 90)
    assert outcome.code == 0
    assert outcome.err.splitlines()[:2] == [
        "out.png: Scenario online, load 90 %, test jobset 0: 2 jobs",
        "  sjf: mean slowdown 1.25, makespan 3, 0 steps not work-conserving (0 %), 0 jobs withheld",
    ]


class Recorder:
    """SJF that stores what it knows of the end of arrivals and of the load."""

    def __init__(self) -> None:
        self.told: list[float] = []
        self.loads: list[float] = []

    def __call__(self, view: Observation, draws: np.ndarray) -> np.ndarray:
        self.told += view.to_end.tolist()
        self.loads += view.load.tolist()
        return HEURISTICS["sjf"](view, draws)


@pytest.mark.usefixtures("jobsets")
def test_a_policy_is_told_when_arrivals_end_of_the_scenarios_jobsets_and_not_of_a_users(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("jobs.csv").write_text(JOBS)
    monkeypatch.setattr("pipeline.interactive.showing.show.png", lambda _: b"")
    player = Recorder()
    for module in (showing, scheduling):
        monkeypatch.setattr(module, "policy_for", lambda *_: (player, True))
    assert show(command, "--load", 90).code == 0
    assert (player.told[0], set(player.loads)) == (50, {90.0})
    player.told.clear()
    player.loads.clear()
    assert show(command, "jobs.csv").code == 0
    assert command("schedule", "jobs.csv", "--scenario", "online", "--policy", "sjf", "--out", "out.csv").code == 0
    assert len(player.told) > 2
    assert set(player.told) == {np.inf}
    assert np.isnan(player.loads).all()
    player.told.clear()
    player.loads.clear()
    assert show(command, "jobs.csv", "--arrivals-end", 9, "--load", 72.5).code == 0
    assert (player.told[0], set(player.loads)) == (9, {72.5})
    outcome = show(command, "jobs.csv", "--arrivals-end", 1)
    assert outcome.err == "error: jobs.csv: --arrivals-end: expected a step after the last arrival, in step 1, got 1\n"


@pytest.mark.usefixtures("jobsets")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "scenario 'online': choose a load by --load; there are: 10, 90"),
        ("--load 20", "scenario 'online': unknown load 20; there are: 10, 90"),
        ("--load 90 --jobset 2", "scenario 'online', load 90: unknown test jobset '2'; there are: 0 to 1"),
        ("--load 90 --jobset x", "scenario 'online', load 90: unknown test jobset 'x'; there are: 0 to 1"),
        ("--load 90 --jobset 1 --from 9", "time 9 to 2: nothing to draw; the jobset runs from 1 to 2"),
        ("--load 90 --jobset 1 --from 1 --to 1", "time 1 to 1: nothing to draw; the jobset runs from 1 to 2"),
        ("two.csv", "two.csv: choose a jobset by --jobset; there are: day, night"),
        ("two.csv --jobset noon", "two.csv: unknown jobset 'noon'; there are: day, night"),
        (
            "--load 90 --arrivals-end 50",
            "--arrivals-end is for your own jobs; of a scenario's jobsets policies know the",
        ),
        ("none.csv", "none.csv: no such file"),
        (
            "long.csv",
            "1,000 jobs in 5,000 steps are too many for one picture (at most 600 in 400 steps); the jobset ",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(command: Command, words: str, said: str) -> None:
    Path("two.csv").write_text(f"{HEAD}\nday,a,0,1,1,1\nnight,a,0,1,1,1\n")
    Path("long.csv").write_text("\n".join([HEAD, *(f"0,{k},0,5,10,10" for k in range(1000))]))
    outcome = show(command, *words.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {said}")
    assert outcome.err.count("\n") == 1
    assert not Path("out.png").exists()


def test_a_part_of_a_long_jobset_is_drawn(command: Command) -> None:
    Path("long.csv").write_text("\n".join([HEAD, *(f"0,{k},0,5,10,10" for k in range(1000))]))
    assert show(command, "long.csv", "--from", 100, "--to", 160).code == 0
    assert Path("out.png").exists()


@pytest.mark.parametrize(
    ("policy", "out", "said"),
    [
        ("sjff", "out.png", "unknown policy 'sjff': expected a model directory or a heuristic; there are: easy, "),
        ("models", "out.png", "models: not a model directory: "),
        ("sjf", "out.pdf", "out.pdf: expected a name that ends in .png"),
    ],
)
def test_an_unknown_policy_or_kind_of_picture_is_refused(command: Command, policy: str, out: str, said: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    Path("models").mkdir()
    outcome = show(command, "jobs.csv", policy=policy, out=out)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {said}")
    assert not Path(out).exists()
