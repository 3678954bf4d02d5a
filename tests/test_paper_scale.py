"""The papers at their scale: the patch still turns params.yaml into that run, and the run goes through."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import REPOSITORY
from repositories import Folder, copied
from ruamel.yaml import YAML

from pipeline.config import Agent, Params, load_params

PATCH = REPOSITORY / "docs" / "results" / "paper-scale" / "params.diff"
SCALE = (1000, 100, 20)  # updates, jobsets, episodes: DeepRM section 4.1


def budget(agent: Agent) -> tuple[int, int, int]:
    part = agent.finetune
    return part.updates, part.jobsets, part.episodes


@pytest.fixture
def patched(tmp_path: Path, environment: dict[str, str]) -> Folder:
    folder = copied(tmp_path / "copy", environment)
    folder.git("init", "--quiet")
    folder.git("apply", str(PATCH))
    return folder


@pytest.fixture
def rows(patched: Folder) -> Params:
    return load_params(patched.root / "params.yaml")


def test_the_patch_gives_params_that_pass_the_check(patched: Folder) -> None:
    said = patched.run(sys.executable, "-m", "pipeline", "check")
    assert said.startswith("params.yaml: as it should be; scenarios bernoulli, offline; agents deeprm_70, ")


def test_deeprm_is_trained_as_the_paper_says(rows: Params) -> None:
    found = [row for row in rows.agents.values() if budget(row) == SCALE]
    assert {(row.finetune.loads, row.objective, row.finetune.seed) for row in found} == {
        *(((load,), "slowdown", None) for load in (70, 110, 130, 184)),
        *(((130,), "slowdown", seed) for seed in (2, 3)),
        ((130,), "completion_time", None),
    }
    assert len(found) == 7
    recipe = rows.recipes["paper"]
    for row in found:
        assert row.network.model_dump() == {"name": "mlp", "hidden": 20, "clock": False}
        assert row.pretrain.model_dump() == {"name": "none", "seed": row.finetune.seed}
        assert row.finetune.recipe == "paper"
    assert (recipe.jobsets, recipe.baseline, recipe.optimizer, recipe.learning_rate) == (
        "fixed",
        "decision",
        "rmsprop",
        0.001,
    )


def test_the_loads_end_at_the_largest_that_bernoulli_reaches(rows: Params) -> None:
    scenario = rows.scenarios["bernoulli"]
    assert (scenario.arrivals.name, scenario.loads[-1]) == ("bernoulli", 184)
    assert {10, 70, 90, 100, 110, 130} < set(scenario.loads)


def test_deeprm2_meets_deeprm_under_equal_conditions(rows: Params) -> None:
    pairs: dict[str, list[str]] = {}
    for row in rows.agents.values():
        if row.scenario == "bernoulli" and budget(row) != SCALE:
            pairs.setdefault(f"{row.objective} {row.finetune}", []).append(row.network.name)
    assert len(pairs) == 3
    assert all(sorted(networks) == ["cnn", "mlp"] for networks in pairs.values())


def shrunk(path: Path) -> None:
    """Make the run one of minutes: three updates of 4 x 3, few jobsets."""
    file = YAML()
    raw: dict[str, Any] = file.load(path)
    for scenario in raw["scenarios"].values():
        scenario["jobsets"] = {"train": 6, "validation": 3, "test": 4}
    for agent in raw["agents"].values():
        agent["finetune"] |= {"updates": 3, "jobsets": 4, "episodes": 3, "validate_every": 2}
        if agent["pretrain"]["name"] == "clone":
            agent["pretrain"] |= {"jobsets": 4, "epochs": 1}
    raw["evaluation"]["resamples"] = 100
    file.dump(raw, path)


@pytest.mark.slow
def test_the_run_goes_through_with_a_small_budget(patched: Folder) -> None:
    shrunk(patched.root / "params.yaml")
    patched.dvc("repro")
    claims = pd.read_csv(patched.root / "reports" / "papers.csv")
    assert set(claims["agrees"]) <= {"yes", "partly", "no", "cannot be told"}
    metrics = json.loads((patched.root / "reports" / "metrics.json").read_text())
    assert metrics.keys() == {"bernoulli", "offline"}
