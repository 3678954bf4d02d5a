"""The grid of a sweep: what is written after --set and --seeds, and what of it is refused."""

import re
from typing import Any

import pytest
from builders import REPOSITORY

from pipeline.core.config import Params, raw_params
from pipeline.errors import UserError
from pipeline.farming.grid import agents_about, checked, grid, known_keys, seeds, settings

RATE = "recipes.ours.learning_rate"


@pytest.fixture(scope="module")
def raw() -> dict[str, Any]:
    return raw_params(REPOSITORY / "params.yaml")


def test_each_setting_has_each_seed_and_seeds_are_those_of_a_training(raw: dict[str, Any]) -> None:
    points = grid(settings([f"{RATE}=0.001,0.003", "agents.deeprm.finetune.updates=10,20"]), seeds("4..6"), ["deeprm"])
    assert len(points) == 2 * 2 * 3
    assert [point.title for point in points[:3]] == [
        f"learning_rate=0.001 updates=10 seed={seed}" for seed in (4, 5, 6)
    ]
    assert points[4].values == {
        RATE: 0.001,
        "agents.deeprm.finetune.updates": 20,
        "agents.deeprm.pretrain.seed": 5,
        "agents.deeprm.finetune.seed": 5,
    }
    params = checked(raw, points[4])
    assert (params.agents["deeprm"].finetune.updates, params.agents["deeprm"].finetune.seed) == (20, 5)
    assert (params.seed, params.agents["deeprm2"].finetune.seed) == (raw["seed"], None)  # jobsets stay as they are
    assert "seed" not in raw["agents"]["deeprm"]["finetune"]


def test_a_name_changes_with_what_is_around_it_and_git_takes_it() -> None:
    point = grid({"network": ["a..b/c d"]}, [3], [])[0]
    assert point.name("one") != point.name("two")
    assert re.fullmatch(r"network-a.b-c-d-seed-3-[0-9a-f]{6}", point.name("one"))


def test_keys_of_one_last_word_are_told_apart() -> None:
    (point,) = grid({"recipes.ours.clip": [1.0], "recipes.ppo.clip": [2.0]}, [], [])
    assert point.title == "recipes.ours.clip=1.0 recipes.ppo.clip=2.0"


def test_a_sweep_is_about_those_whose_rows_it_changes(params: Params) -> None:
    ours = [name for name, row in params.agents.items() if row.finetune.recipe == "ours"]
    assert agents_about(params, [RATE], []) == ours
    assert agents_about(params, [RATE], ["deeprm2"]) == ["deeprm2"]
    assert agents_about(params, ["agents.controller.objective"], []) == ["controller"]
    assert agents_about(params, ["scenarios.shares.levels"], []) == ["controller", "allocator"]
    assert agents_about(params, ["evaluation.confidence"], []) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["recipes"], "--set recipes: expected KEY=VALUE"),
        (["recipes.ours.clip= "], "expected KEY=VALUE"),
        (["a=1", "a=2"], "--set a is given twice"),
        (["a=1,2,1"], "--set a: 1 is given twice"),
        (["a=[1"], "expected values with commas"),
        (["a={b: 1}"], "give the keys of a mapping one by one"),
    ],
)
def test_what_is_no_setting_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        settings(words)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5..1", "--seeds 5..1: an empty range; the first is above the last: write 1..5"),
        ("1..5000", "5000 seeds; at most 1000"),
        ("one", "expected a range, as 1..5"),
        ("-1", "expected a range, as 1..5"),
        ("", "expected a range, as 1..5"),
        ("1,2,1", "a seed is given twice"),
    ],
)
def test_what_is_no_range_of_seeds_is_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        seeds(text)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        (
            "agents.deeprm.finetune.learning_rate=0.1",
            "no such key; did you mean 'recipes.ours.learning_rate', of the recipe that it learns by?",
        ),
        ("recipes.ours.learning_rte=0.1", "no such key; did you mean 'recipes.ours.learning_rate'?"),
        ("agents.deprm.finetune.updates=1", "agents has no 'deprm'; there are: "),
        ("agents.deprm.finetune.updates=1", "did you mean 'deeprm'?"),
        ("seeed.x=1", "params.yaml has no 'seeed'"),
        ("seed.x=1", "seed is no mapping of keys"),
        (f"{RATE}=fast", "learning_rate=fast: params.yaml: recipes.ours.learning_rate: "),
    ],
)
def test_a_key_that_is_not_there_is_refused_with_the_one_that_may_be_meant(
    raw: dict[str, Any], word: str, says: str
) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        checked(raw, grid(settings([word]), [], [])[0])


def test_more_points_than_anybody_means_are_refused() -> None:
    with pytest.raises(UserError, match="1500 points; at most 1000"):
        grid({"a": list(range(50)), "b": list(range(30))}, [], [])


def test_keys_are_there_to_be_completed() -> None:
    assert {RATE, "evaluation.confidence"} <= set(known_keys(REPOSITORY / "params.yaml"))
