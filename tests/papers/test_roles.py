"""Who plays whom where agents are trained at one load each, and where DeepRM2 has a DeepRM under equal conditions."""

from collections.abc import Mapping
from typing import Any

import pytest
from papers_evidence import agent, curve, evidence

from pipeline.config import Agent
from pipeline.papers import durations, figures, learning, loads, objectives, withheld
from pipeline.papers.evidence import Evidence
from pipeline.papers.roles import Roles
from pipeline.papers.verdicts import NO, PARTLY, YES, Verdict, judged

LOADS = (70, 90, 100, 110, 130)
SMALL = {"jobsets": 5, "episodes": 4}
AGENTS = {
    "joint": agent(),
    "at_70": agent(loads=[70], updates=1000),
    "at_110": agent(loads=[110], updates=1000),
    "at_130": agent(loads=[130], updates=1000),
    "at_130_again": agent(loads=[130], updates=1000, seed=2),
    "time_130": agent(loads=[130], updates=1000, objective="completion_time"),
    "little": agent(loads=[100], updates=500, **SMALL),
    "little_deep": agent("cnn", loads=[100], updates=500, **SMALL),
    "little_70": agent(loads=[70], updates=250, **SMALL),
    "little_deep_70": agent("cnn", loads=[70], updates=250, **SMALL),
}


def made(**given: Any) -> Evidence:
    return evidence(AGENTS, loads=LOADS, **given)


def verdict(claims: Any, words: str, *given: object) -> Verdict:
    (claim,) = [claim for claim in claims if words in claim.text]
    ((_, found),) = judged([claim], *given)
    return found


def roles(**agents: Agent) -> Roles:
    return Roles("made", setting="online", agents=agents)


def test_at_a_load_stand_the_agents_of_the_largest_budget_that_were_trained_there_alone() -> None:
    found = made().roles
    assert found.at("slowdown", "mlp", 130) == ["at_130", "at_130_again"]
    assert found.at("slowdown", "mlp", 70) == ["at_70"]
    assert found.at("slowdown", "mlp", 90) == []
    assert found.lead("slowdown", "mlp", 90) == "joint"
    assert found.lead("slowdown", "cnn", 70) == "little_deep_70"


def test_over_loads_each_agent_of_the_largest_budget_stands_at_its_own() -> None:
    assert made().roles.each_at_its_load("slowdown", "mlp") == {70: "at_70", 110: "at_110", 130: "at_130"}


def test_one_agent_at_one_load_is_no_line_over_loads() -> None:
    assert roles(joint=agent(), alone=agent(loads=[70], updates=9000)).each_at_its_load("slowdown", "mlp") == {}


@pytest.mark.parametrize(
    ("first", "rival"),
    [
        ({"jobsets": 5, "episodes": 4}, "alike"),
        ({"jobsets": 4, "episodes": 5}, "joint"),  # as many episodes, and yet other conditions
    ],
)
def test_the_rival_of_a_second_was_trained_under_equal_conditions(first: Mapping[str, int], rival: str) -> None:
    found = roles(joint=agent(), alike=agent(loads=[100], **first), deep=agent("cnn", loads=[100], **SMALL))
    assert found.rival("deep") == rival


def drawn_loads(shown: Any) -> set[str]:
    return {str(line.get_label()) for line in shown.drawing.axes[0].get_lines()}


def test_each_paper_has_a_figure_over_loads_with_its_own_agents() -> None:
    first, second = loads.shown(made())
    assert (first.figure, second.figure) == ("loads_made_deeprm", "loads_made_deeprm2")
    rules = {"random", "sjf", "packer", "tetris"}
    assert drawn_loads(first) == rules | {f"at_{load} (trained at {load} %)" for load in (70, 110, 130)}
    assert drawn_loads(second) == rules | {f"{name} (trained at 100 %)" for name in ("little", "little_deep")}
    assert {claim.paper for claim, _ in first.verdicts} == {"DeepRM, Figure 4"}
    assert {claim.paper for claim, _ in second.verdicts} == {"DeepRM2, Figure 3"}


@pytest.mark.parametrize(
    ("words", "changed", "word", "said"),
    [
        ("than Tetris at higher", {}, YES, "the agent trained there below tetris at 2 of 2 loads"),
        ("than Tetris at higher", {"at_110": 9.0}, PARTLY, "at 1 of 2 loads, above at 1"),
        (
            "than Tetris at higher",
            {"at_110": 9.0, "at_130": 9.0},
            NO,
            "over all 5 loads, below tetris and above it at: ",
        ),
        ("than Tetris at higher", {"joint": 9.0}, YES, "at_70 5 and 0, at_110 5 and 0, at_130 5 and 0"),
        ("comparable to", {}, YES, "the agent trained there below sjf at 3 of 3 loads"),
        ("comparable to", {"at_70": 9.0}, PARTLY, "at_70: recipe ours, 1000 updates on load 70; at_110: "),
        ("DeepRM2 is below", {"little_deep": 1.3}, YES, "little_deep below little at 5 of 5 loads"),
        ("DeepRM2 is below", {"little_deep": 1.6}, PARTLY, "little_deep below little at 0 of 5 loads"),
    ],
)
def test_claims_over_loads_ask_the_agents_of_each_load(words: str, changed: Any, word: str, said: str) -> None:
    found = verdict(loads.CLAIMS, words, made(slowdown=changed))
    assert found.agrees == word, found.found
    assert said in found.found


@pytest.mark.parametrize(
    ("changed", "word", "said"),
    [
        ({"time_130": 1.7}, YES, "another seed, at_130_again: 2.80, below 4 of these 4"),
        ({"time_130": 1.7, "at_130_again": 1.95}, PARTLY, "another seed, at_130_again: 3.25, below 2 of these 4"),
        ({"time_130": 1.7, "joint": 1.0}, YES, "at load 130 at_130 2.80, time_130 3.00"),
    ],
)
def test_every_seed_must_be_best_on_its_objective(changed: Any, word: str, said: str) -> None:
    found = verdict(objectives.CLAIMS[130], "trained for slowdown", made(slowdown=changed), 130)
    assert found.agrees == word, found.found
    assert said in found.found


def test_at_70_the_second_meets_the_one_under_equal_conditions() -> None:
    found = verdict(objectives.CLAIMS[70], "lower slowdown", made(slowdown={"little_deep_70": 1.3}), 70)
    assert found.found.startswith("at load 70 little_deep_70 2.00, little_70 2.20")


def test_claims_about_learning_at_a_load_are_asked_of_the_agent_trained_there() -> None:
    short = curve(mean_return={1: 1, 2: 2}, best_return={1: 2, 2: 3}, slowdown={1: 3, 2: 2}, validation={0: 3, 2: 2})
    found = learning.shown(made(curves=dict.fromkeys(AGENTS, short)))
    claims = {shown.figure: [claim.text for claim, _ in shown.verdicts] for shown in found}
    asked = {figure for figure, texts in claims.items() if any("better than Tetris" in text for text in texts)}
    assert asked == {"learning_at_70"}
    assert {figure for figure, texts in claims.items() if any("fewer epochs" in text for text in texts)} == {
        "learning_little_deep"
    }
    assert all(texts for texts in claims.values())
    (sooner,) = [verdict for shown in found for claim, verdict in shown.verdicts if "fewer epochs" in claim.text]
    assert sooner.found.endswith("(updates of 20 episodes each)")
    assert "little after update 2" in sooner.found


def test_single_jobs_are_shown_of_the_agents_that_the_paper_is_about() -> None:
    assert [shown.figure for shown in withheld.shown(made())] == ["withheld_at_110"]
    assert [shown.figure for shown in durations.shown(made())] == ["durations_little", "durations_little_deep"]


def test_all_of_it_is_drawn() -> None:
    found = figures.figures_of_pools([made()])
    assert {shown.figure for shown in found if shown.drawing is not None} >= {"objectives_made_70", "withheld_at_110"}
    figures.table(found)
