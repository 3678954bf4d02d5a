"""Where points stand: seeds of a setting together, the mark by validation, and no other choice."""

import numpy as np
import pandas as pd
import pytest

from pipeline.core.config import Params
from pipeline.core.storage.results import Chosen
from pipeline.farming import sweep_table
from pipeline.farming.grid import Point
from pipeline.farming.sweep_table import EVERY, Played, Saved

LOADS, JOBSETS = (50, 90), 40


def jobsets(policy: str, mean: float, noise: float, seed: int) -> pd.DataFrame:
    drawn = np.random.default_rng(seed).normal(mean, noise, (len(LOADS), JOBSETS))
    return pd.DataFrame(
        {"load": load, "jobset": jobset, "policy": policy, "mean_slowdown": drawn[place, jobset], "unfinished": 0}
        for place, load in enumerate(LOADS)
        for jobset in range(JOBSETS)
    )


def points(params: Params, means: dict[str, list[float]], validation: dict[str, list[float]]) -> pd.DataFrame:
    """The table of settings, each with a mean on test jobsets and a cost on validation for each seed."""
    chosen = Chosen(knobs={}, best={50: "sjf", 90: "tetris"}, validation={})
    rules = pd.concat([jobsets("sjf", 2.0, 0.1, 1), jobsets("tetris", 2.0, 0.1, 2)])
    saved, played = [], {}
    for setting, found in means.items():
        for seed, mean in enumerate(found, 1):
            name = f"{setting}-{seed}"
            saved.append(Saved(Point(setting, seed if len(found) > 1 else None, {}), name, "", params))
            frame = pd.concat([rules, jobsets("deeprm", mean, 0.1, 10 + seed)], ignore_index=True)
            played[name] = Played(frame, chosen, validation[setting][seed - 1])
    return sweep_table.table(saved, "deeprm", played)


def test_seeds_together_are_their_mean_and_less_sure_than_one_of_them(params: Params) -> None:
    means, validation = (
        {"rate=1": [1.6, 2.0, 2.4], "rate=2": [1.9, 1.9, 1.9]},
        {"rate=1": [3.0] * 3, "rate=2": [2.0] * 3},
    )
    table = points(params, means, validation).set_index(["setting", "seed"])
    assert list(table.loc["rate=1"].index) == ["1", "2", "3", EVERY]
    width = table["difference_high"] - table["difference_low"]
    assert table.loc[("rate=1", EVERY), "difference"] == pytest.approx(
        table.loc["rate=1"].iloc[:3]["difference"].mean()
    )
    assert table.loc[("rate=1", "1"), "difference"] == pytest.approx(-0.2, abs=0.03)
    assert width[("rate=1", EVERY)] > 5 * width[("rate=1", "2")]  # its seeds are far apart
    assert width[("rate=2", EVERY)] < width[("rate=1", EVERY)] / 5


def test_the_mark_goes_by_validation_and_not_by_the_test(params: Params) -> None:
    table = points(params, {"a": [1.5, 1.5], "b": [2.5, 2.5]}, {"a": [9.0, 1.0], "b": [4.0, 4.0]})
    marked = table[table["lowest_validation"]]
    assert marked[["setting", "seed"]].to_numpy().tolist() == [["b", EVERY]]  # the mean of a's seeds is 5
    alone = points(params, {"a": [2.5], "b": [1.5]}, {"a": [1.0], "b": [4.0]})
    assert alone.loc[alone["lowest_validation"], "setting"].tolist() == ["a"]
    assert set(alone["seed"]) == {""}
