"""The papers at their scale: the patch still turns params.yaml into that run, and the run completes."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from repositories import Folder, copied
from ruamel.yaml import YAML

from pipeline.core.config import Agent, Params, load_params
from pipeline.papers.figures import ALL

PATCH = REPOSITORY / "docs" / "results" / "paper-scale" / "params.diff"
sys.path.insert(0, str(PATCH.parent))
import experiments  # noqa: E402  beside the patch, for it is run there
import headlines  # noqa: E402

SCALE = (1000, 100, 20)  # updates, jobsets, episodes: DeepRM section 4.1
PAIR = (500, 100, 20)  # DeepRM2 section 4.2


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
    assert said.startswith("params.yaml: valid; scenarios bernoulli, offline; agents deeprm_70, ")


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
        if budget(row) == PAIR:
            pairs.setdefault(f"{row.objective} {row.finetune}", []).append(row.network.name)
    assert len(pairs) == 3
    assert {budget(row) for row in rows.agents.values() if row.scenario == "bernoulli"} == {SCALE, PAIR}
    assert all(sorted(networks) == ["cnn", "mlp"] for networks in pairs.values())


def test_every_headline_is_found_among_the_claims() -> None:
    texts = [claim.text for claim in ALL]
    starts = [start for headline in headlines.HEADLINES for start in headline.claims]
    assert [start for start in starts if not any(text.startswith(start) for text in texts)] == []


@pytest.mark.parametrize(
    ("seconds", "word"), [(0.6, "holds"), (0.7, "does not hold"), (4.0, "does not hold"), (None, "cannot be checked")]
)
def test_the_time_of_an_epoch_is_held_against_deeprms(seconds: float | None, word: str) -> None:
    rows = {"network": ["mlp", "cnn"], "seconds_an_update": [1.0, seconds], "agent": ["pair_deeprm", "pair_deeprm2"]}
    times = pd.DataFrame({**rows, "load": 100, "objective": "slowdown"})
    assert headlines.time_of_an_epoch(times)[0] == word


def test_a_headline_about_70_percent_is_answered_by_the_agent_trained_there() -> None:
    rows = [
        ("learning_deeprm_70", "DeepRM, Figure 6", "The gap between best and mean", "whole", "narrows", "yes"),
        ("learning_deeprm_130", "DeepRM, Figure 6", "The gap between best and mean", "whole", "does not", "no"),
    ]
    claims = pd.DataFrame(rows, columns=["figure", "paper", "claim", "part", "found", "verdict"])
    (headline,) = [some for some in headlines.HEADLINES if some.claims == ("The gap between best",)]
    assert headlines.answer(claims, headline, "deeprm_70") == ("holds", "narrows")


def test_parts_of_a_headline_that_differ_stand_apart() -> None:
    rows = [
        ("a", "p", "SJF is below Tetris", "below Tetris", "above", "no"),
        ("a", "p", "SJF is below Tetris", "below Random", "far below", "yes"),
    ]
    claims = pd.DataFrame(rows, columns=["figure", "paper", "claim", "part", "found", "verdict"])
    (headline,) = [some for some in headlines.HEADLINES if some.claims == ("SJF is below Tetris",)]
    said = "below Tetris: does not hold; the rest: holds"
    assert headlines.answer(claims, headline, "deeprm_70") == (said, "above")
    neither = claims.assign(verdict=["no", "partly"])
    said = "below Tetris: does not hold; below Random: holds in part"
    assert headlines.answer(neither, headline, "deeprm_70") == (said, "above")


@pytest.fixture(scope="module")
def each_jobset() -> pd.DataFrame:
    return pd.read_csv(PATCH.parent / "jobsets.csv.gz")


def test_published_means_are_those_of_the_jobsets_that_are_kept(each_jobset: pd.DataFrame) -> None:
    keys = ["scenario", "policy", "load"]
    published = pd.read_csv(PATCH.parent / "slowdown.csv").set_index(keys)
    found = each_jobset.groupby(keys)[["mean_slowdown", "completion_time"]].mean()
    assert (each_jobset.groupby(keys).size() == published["n"].reindex(found.index)).all()
    np.testing.assert_allclose(found["mean_slowdown"], published["slowdown"].reindex(found.index), rtol=2e-5)
    np.testing.assert_allclose(found["completion_time"], published["completion_time"].reindex(found.index), rtol=2e-5)


def test_published_intervals_of_every_way_of_counting_can_be_computed_again(params: Params) -> None:
    sums = pd.read_csv(PATCH.parent / "counted.csv.gz")
    published = pd.read_csv(PATCH.parent / "experiments.csv").set_index(["policy", "load", "counting"])
    for policy in ("tetris_code_0.5", "pair_deeprm2_100_greedy"):
        again = pd.DataFrame(experiments.measured(params, sums[sums["policy"] == policy]))
        again = again.set_index(["policy", "load", "counting"])
        assert len(again) == 33
        expected = published.loc[again.index, ["slowdown", "low", "high", "left_out"]]
        np.testing.assert_allclose(again[["slowdown", "low", "high", "left_out"]], expected, atol=3e-4)


def shrunk(path: Path) -> None:
    """Reduce the run to minutes: six updates of 4 x 3, few jobsets."""
    file = YAML()
    raw: dict[str, Any] = file.load(path)
    for scenario in raw["scenarios"].values():
        scenario["jobsets"] = {"train": 6, "validation": 3, "test": 4}
    for agent in raw["agents"].values():
        agent["finetune"] |= {"updates": 6, "jobsets": 4, "episodes": 3, "validate_every": 5}
        if agent["pretrain"]["name"] == "clone":
            agent["pretrain"] |= {"jobsets": 4, "epochs": 1}
    raw["evaluation"]["resamples"] = 100
    file.dump(raw, path)


def run_small(folder: Folder, environment: dict[str, str]) -> str:
    """Run the pipeline with a small budget and tracking; put its results on the page as the page describes."""
    for name in ("paper-scale", "paper-scale.md", "layout.py", "tables.py", "as_published.py"):
        source, target = PATCH.parents[1] / name, folder.root / "docs" / "results" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    shrunk(folder.root / "params.yaml")
    folder.run(sys.executable, "-m", "pipeline", "repro", PIPELINE_TRACKING="on")
    found = f"{folder.root}{os.pathsep}{environment['PYTHONPATH']}"  # the second entry is where compiled code is found
    for script in ("experiments.py", "make.py"):
        folder.run(sys.executable, f"docs/results/paper-scale/{script}", ".", PYTHONPATH=found)
    folder.run(sys.executable, "docs/results/tables.py", "write", "docs/results/paper-scale.md", PYTHONPATH=found)
    return (folder.root / "docs" / "results" / "paper-scale.md").read_text()


@pytest.mark.slow
def test_the_run_goes_through_with_a_small_budget_and_fills_its_page(
    patched: Folder, environment: dict[str, str]
) -> None:
    page = run_small(patched, environment)
    claims = pd.read_csv(patched.root / "reports" / "papers.csv")
    assert set(claims["verdict"]) <= set(headlines.WORDS)
    verdicts = sum(page.count(f"| {word} |") for word in headlines.WORDS.values())
    assert verdicts > 10  # one for all parts of a claim
    assert "n = 4)" in page
    times = pd.read_csv(patched.root / "docs" / "results" / "paper-scale" / "times.csv")
    assert (times["hours"] > 0).all()
    assert (times["seconds_an_update"] > 0).all()
    pictures = re.findall(r"\]\((paper-scale/.*?\.png)\)", page)
    assert [name for name in pictures if not (PATCH.parents[1] / name).parent.exists()] == []
    assert [name for name in pictures if not (patched.root / "docs" / "results" / name).exists()] == []
