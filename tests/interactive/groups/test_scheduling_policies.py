"""A policy by the name that a user gives."""

import json
from pathlib import Path

import numpy as np
import pytest
from group_models import drawn, write_controller
from group_rows import shared

from pipeline.core import storage
from pipeline.errors import UserError
from pipeline.interactive.groups.scheduling import policy_by_name
from pipeline.problems.groups.agents.networks.q_network import controller
from pipeline.problems.groups.env.evaluation.play import trajectory
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.heuristics.names import RULES

PARAMS = shared()
ROW = PARAMS.groups_scenario("shared")
CLUSTER = cluster_of(ROW)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_a_policy(name: str) -> None:
    (jobs,) = drawn(PARAMS, 60, 1)
    course = trajectory(policy_by_name(name, PARAMS, "shared"), jobs, CLUSTER)
    assert (course.share.sum(axis=1) <= CLUSTER.capacity).all() == (name != "undivided")


def test_a_rule_is_as_it_was_tuned(capsys: pytest.CaptureFixture[str]) -> None:
    (jobs,) = drawn(PARAMS, 60, 1)
    assert trajectory(policy_by_name("fixed", PARAMS, "shared"), jobs, CLUSTER).share[0].tolist() == [[4, 3], [4, 3]]
    assert "fixed: not tuned for scenario 'shared'" in capsys.readouterr().err
    place = storage.results_folder("heuristics", "shared") / "chosen.json"
    place.parent.mkdir(parents=True)
    knobs = {"fixed_0": 0.75, "fixed_1": 0.25, "fixed_order": 1.0}
    place.write_text(json.dumps({"knobs": knobs, "best": {}, "validation": {}}))
    assert trajectory(policy_by_name("fixed", PARAMS, "shared"), jobs, CLUSTER).share[0].tolist() == [[6, 5], [2, 1]]
    assert capsys.readouterr().err == ""


def test_a_model_directory_is_its_controller() -> None:
    network = write_controller(PARAMS, Path("models/mine/policy"))
    control = controller(network, CLUSTER, configurations_of(ROW))
    (jobs,) = drawn(PARAMS, 120, 1)
    for folder in ("models/mine", "models/mine/policy"):
        course = trajectory(policy_by_name(folder, PARAMS, "shared"), jobs, CLUSTER)
        same = trajectory(lambda groups, rows, view, draws: control(view, draws), jobs, CLUSTER)
        np.testing.assert_array_equal(course.share, same.share)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "equals",
            r"unknown policy 'equals': expected a model directory or a heuristic; there .*did you mean 'equal'\?",
        ),
        ("mine", r"unknown policy 'mine': .*; did you mean 'models/mine'\?"),
        ("models", r"models: not a model directory"),
    ],
)
def test_an_unknown_policy_is_refused_with_the_nearest(name: str, said: str) -> None:
    write_controller(PARAMS, Path("models/mine/policy"))
    with pytest.raises(UserError, match=rf"^{said}"):
        policy_by_name(name, PARAMS, "shared")


def test_a_model_of_another_cluster_is_refused() -> None:
    write_controller(PARAMS, Path("models/mine/policy"))
    with pytest.raises(UserError, match=r"^model of agent 'mine': trained with interval 5.0, the scenario has 4.0$"):
        policy_by_name("models/mine", shared(interval=4.0), "shared")
