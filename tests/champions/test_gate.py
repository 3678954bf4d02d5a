"""The gate: who passes and who is refused for what, and how often it errs where the truth is known."""

from importlib import util
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY

from pipeline.champions.gate import GATE, Trial, holm, judged, verdict
from pipeline.champions.lines import PolicyRef
from pipeline.core.config import Params
from pipeline.core.config.evaluation import Gate
from pipeline.core.storage.files import check_table

REPEATS = 12  # docs/results/gate/measure.py has 400


def results(factors: dict[str, float], tail: float = 1.0, jobsets: int = 100, unfinished: int = 0) -> pd.DataFrame:
    """What policies had at two loads: the champion's results times a factor, give or take a little."""
    rng, found = np.random.default_rng(3), []
    for load in (70, 130):
        base = rng.lognormal(1.0, 0.3, jobsets)
        for name, factor in {"champion": 1.0, **factors}.items():
            luck = rng.normal(1.0, 0.05, jobsets) if name != "champion" else 1.0
            columns = {"policy": name, "load": load, "jobset": np.arange(jobsets), "cost": base * factor * luck}
            worse = name != "champion"
            frame = pd.DataFrame(columns).assign(unfinished=0, tail=3 * base * (tail if worse else 1.0))
            frame.loc[frame.index[0], "unfinished"] = unfinished * worse
            found.append(frame)
    return pd.concat(found, ignore_index=True)


def rules_of(params: Params) -> Gate:
    return params.rules.model_copy(update={"fewer": {}})


def judge(params: Params, frame: pd.DataFrame, **refused: str) -> pd.DataFrame:
    names = [name for name in frame["policy"].unique() if name != "champion"]
    found = judged(frame, Trial("online", "champion", names, "cost", "tail", refused), rules_of(params), 500, seed=1)
    return check_table(found[list(GATE.columns)], GATE, "gate")


def failed(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows.loc[~rows["passed"], "rule"]))


def test_a_better_candidate_passes_every_rule(params: Params) -> None:
    rows = judge(params, results({"mine": 0.95}))
    assert failed(rows) == []
    assert rows["rule"].tolist() == ["jobsets", "better", "load", "load", "tail", "unfinished"]
    better = rows.set_index("rule").loc["better"]
    assert better["difference"] == pytest.approx(-0.05, abs=0.01)
    assert better["p"] == pytest.approx(1 / 501)


def test_a_candidate_exactly_at_the_margin_is_not_better(params: Params) -> None:
    costs = pd.DataFrame(
        {"policy": ["champion", "mine"] * 100, "jobset": np.repeat(range(100), 2), "cost": [1.0, 0.75] * 100}
    )
    frame = costs.assign(load=70, tail=1.0, unfinished=0)
    rules = rules_of(params).model_copy(update={"margin": 0.25})
    rows = judged(frame, Trial("online", "champion", ["mine"], "cost", "tail"), rules, 500, seed=1)
    better = rows.set_index("rule").loc["better"]
    assert (better["difference"], better["p"]) == (-0.25, 1.0)


def test_a_better_mean_with_a_worse_tail_is_refused_for_the_tail(params: Params) -> None:
    rows = judge(params, results({"mine": 0.9}, tail=1.1))
    assert failed(rows) == ["tail"]
    (reason,) = rows.loc[~rows["passed"], "reason"]
    assert reason == "+10.0 % in the 99th percentile, at most +10.0 %; +5.0 % is allowed"


def test_too_few_jobsets_unfinished_jobs_and_a_rollback_are_reasons(params: Params) -> None:
    assert failed(judge(params, results({"mine": 0.9}, jobsets=99))) == ["jobsets"]
    assert failed(judge(params, results({"mine": 0.9}, unfinished=1))) == ["unfinished"]
    assert failed(judge(params, results({"mine": 0.9}), mine="it was rolled back")) == ["rolled back"]


@pytest.mark.parametrize("passed", [True, False])
def test_a_candidate_that_wins_every_window_is_refused_if_the_advice_is_against_it(
    params: Params, passed: bool
) -> None:
    trial = Trial("online", "champion", ["mine"], "cost", "tail", advice={"mine": (passed, "on the whole log")})
    rows = judged(results({"mine": 0.9}), trial, rules_of(params), 500, seed=1)
    seat = PolicyRef(policy="champion", digest="ab", verdict="")
    found = verdict(rows, seat, seat, {"mine": seat.model_copy(update={"policy": "mine"})})
    assert failed(rows) == ([] if passed else ["advice"])
    assert found.reasons["mine"][-1] == "on the whole log"
    assert (found.promote is not None, found.stays) == (passed, "" if passed else "champion")


def test_windows_that_loads_share_are_drawn_together(params: Params) -> None:
    frame = results({"mine": 0.95}, jobsets=200)
    rows = judge(params, frame.assign(unit=frame["jobset"] // 2))
    assert set(rows["n"]) == {100}


def test_the_more_candidates_the_more_each_must_show() -> None:
    assert holm([0.02]) == [0.02]
    assert holm([0.02, 0.5]) == [0.04, 0.5]
    assert holm([0.03, 0.03]) == [0.06, 0.06]
    assert holm([]) == []


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    """The simulation whose table stands in docs/how-to/gate.md."""
    spec = util.spec_from_file_location("gate_measure", REPOSITORY / "docs" / "results" / "gate" / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("case", "least", "most", "refused"),
    [
        ("equal", 0.0, 0.05, "better"),
        ("itself", 0.0, 0.0, "better"),
        ("at_margin", 0.0, 0.15, "better"),
        ("better", 0.8, 1.0, ""),
        ("worse_at_one", 0.0, 0.0, "load"),
        ("tail", 0.0, 0.0, "tail"),
    ],
)
def test_the_gate_errs_as_seldom_as_declared(
    params: Params, measure: ModuleType, case: str, least: float, most: float, refused: str
) -> None:
    found = measure.repeated(case, REPEATS, rules_of(params), resamples=200)
    assert least <= found["promoted"].mean() <= most
    if refused and case != "at_margin":
        assert found["refused"].str.contains(refused).all()
