"""The jobs of a journal, played in both orders."""

import re
from pathlib import Path

import numpy as np
import pytest
from builders import REPOSITORY
from fastapi import FastAPI

from pipeline.errors import UserError
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.serving.guard import server_of
from pipeline.steering.journal import Journal, rows
from pipeline.steering.replay import MOST_JOBS, VERDICT_S, replay_waits, verdicts
from pipeline.steering.replay import read_recorded as replayed
from pipeline.steering.slurm import PATIENCE_S


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


def test_a_verdict_that_takes_too_long_is_given_up_queue_by_queue(tmp_path: Path) -> None:
    recorded(tmp_path, 400)
    assert list(verdicts(tmp_path, "sjf", 1, most_s=0.0)) == [
        "work: 400 jobs waited 5 s in the mean",
        "work: cannot tell: 400 jobs could not be played within 0 s",
    ]


def test_a_play_ends_when_its_time_is_over_and_the_newest_jobs_are_played(tmp_path: Path) -> None:
    recorded(tmp_path, MOST_JOBS + 100)
    first, wait, *_ = verdicts(tmp_path, "sjf", 1)
    assert first == f"work: {MOST_JOBS} jobs waited 5 s in the mean"
    assert wait.endswith(": better")
    nodes, jobs = replayed(tmp_path, rows(tmp_path))
    calls = []

    def give_up(share: float) -> None:
        calls.append(share)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        list(replay_waits(jobs, nodes[0], [HEURISTICS["sjf"]], 1, on_progress=give_up))
    assert len(calls) == 1
    assert calls[0] < 0.5


def test_the_unit_waits_for_as_long_as_a_controller_in_shadow_may_take_to_stop() -> None:
    unit = (REPOSITORY / "docs" / "operate" / "steer-slurm.service").read_text()
    (stop_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert float(stop_s) >= 3 * PATIENCE_S + VERDICT_S + 15  # a tick's three commands, the verdict, the process's end
    stopped_by_force_s = 10  # `docker stop`; Kubernetes waits for 30, and no manifest says otherwise
    assert (server_of(FastAPI()).config.timeout_graceful_shutdown or 0) < stopped_by_force_s
    manifests = [*(REPOSITORY / "docs" / "operate").rglob("*.yaml")]
    assert not [path for path in manifests if re.search("GracePeriod|stop_grace", path.read_text())]
