"""The jobs of a journal, played in both orders."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.steering.journal import Journal
from pipeline.steering.shadow import verdicts


def recorded(folder: Path, count: int, limit: int | None = None) -> None:
    """A journal of one node with four CPUs, whose jobs take it whole: long and short ones, and more than it can do."""
    journal, rng = Journal(folder), np.random.default_rng(3)
    journal.add("pool", 0.0, partitions=["work"], machines={"n1": {"cpu": 4.0, "memory": 1.0, "gpu": 0.0}})
    for k, run in enumerate(rng.choice([1, 100], count)):
        journal.add(
            "ran",
            500.0,
            job=k,
            partition="work",
            eligible=40.0 * k,
            start=40.0 * k + 5,
            end=40.0 * k + 5 + float(run),
            limit_s=float(run if limit is None else limit),
            nodes=1,
            units={"cpu": 4.0, "memory": 0.5, "gpu": 0.0},
        )
    journal.close()


def test_shortest_first_is_better_where_limits_tell_run_times(tmp_path: Path) -> None:
    recorded(tmp_path, 400)
    first, wait, slowdown = verdicts(tmp_path, "sjf", 1)
    assert first == "work: 400 jobs waited 5 s in the mean"
    assert wait.startswith("work: mean wait, s: sjf ")
    assert wait.endswith("%): better")
    assert slowdown.startswith("work: bounded slowdown: sjf ")
    assert slowdown.endswith("%): better")


def test_where_all_limits_are_one_nothing_can_be_told(tmp_path: Path) -> None:
    recorded(tmp_path, 400, limit=100)
    assert [line.rpartition(": ")[2] for line in verdicts(tmp_path, "sjf", 1)][1:] == ["cannot tell", "cannot tell"]


def test_too_few_jobs_say_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, 199)
    assert list(verdicts(tmp_path, "sjf", 1)) == [
        "work: cannot tell: 199 jobs that its nodes hold have ended; expected 200"
    ]


def test_a_model_is_not_replayed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--mode shadow: expected a heuristic, .* got 'models/m'"):
        list(verdicts(tmp_path, "models/m", 1))
