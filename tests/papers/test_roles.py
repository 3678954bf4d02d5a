"""Who plays whom where agents are trained at one load each, and where DeepRM2 has a DeepRM under equal conditions."""

from collections.abc import Mapping
from typing import Any

import pytest
from papers_cases import once
from papers_evidence import agent, curve, evidence, falling

from pipeline.core.config import Agent
from pipeline.papers import figures, job_lengths, learning, means
from pipeline.papers.evidence import Evidence
from pipeline.papers.roles import Roles
from pipeline.papers.rules import NO, YES
from pipeline.papers.verdicts import Finding, judged

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
    return once(evidence, agents=AGENTS, loads=LOADS, **given)


def verdict(claims: Any, words: str, part: str, evidence: Evidence) -> Finding:
    (claim,) = [claim for claim in claims if words in claim.text]
    (found,) = [found for _, one, found in judged([claim], evidence) if part in one.text]
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
    return {str(line.get_label()) for axes in shown.drawing.axes for line in axes.get_lines()}


def test_each_paper_has_a_figure_over_loads_with_its_own_agents() -> None:
    first, second = means.loads(made())
    assert (first.figure, second.figure) == ("loads_made_deeprm", "loads_made_deeprm2")
    rules = {"random", "sjf", "packer", "tetris"}
    assert drawn_loads(first) == rules | {f"at_{load} (trained at {load} %)" for load in (70, 110, 130)}
    assert drawn_loads(second) == rules | {f"{name} (trained at 100 %)" for name in ("little", "little_deep")}
    assert {claim.paper for claim, *_ in first.verdicts} == {"DeepRM, Figure 4"}
    assert {claim.paper for claim, *_ in second.verdicts} == {"DeepRM2, Figure 3"}


@pytest.mark.parametrize(
    ("words", "part", "changed", "word", "said"),
    [
        ("than Tetris at higher", "", {}, YES, "at load 110 at_110 2.60, tetris 3.00: 13.3 % below tetris"),
        ("than Tetris at higher", "", {"at_110": 9.0}, NO, "at load 130 at_130 2.80, tetris 3.20"),
        ("than Tetris at higher", "", {"joint": 9.0}, YES, "at load 130 at_130 2.80"),
        ("comparable to", "nowhere worse than SJF", {}, YES, "; at load 110 at_110 2.60, sjf 3.10"),
        (
            "comparable to",
            "nowhere worse than SJF",
            {"at_70": 9.0},
            NO,
            "at_70: recipe ours, 1000 updates on load 70; at_",
        ),
        ("comparable to", "often better than SJF", {"at_70": 9.0}, YES, "at load 70 at_70 9.70, sjf 2.70"),
        ("DeepRM2 is below", "DeepRM2 below DeepRM", {"little_deep": 1.3}, YES, "little_deep below little at 5 of 5"),
        ("DeepRM2 is below", "DeepRM2 below DeepRM", {"little_deep": 1.6}, NO, "little_deep below little at 0 of 5"),
    ],
)
def test_claims_over_loads_ask_the_agents_of_each_load(
    words: str, part: str, changed: Any, word: str, said: str
) -> None:
    found = verdict(means.LOAD_CLAIMS, words, part, made(slowdown=changed))
    assert found.word == word, found.found
    assert said in found.found


@pytest.mark.parametrize(
    ("part", "changed", "word", "said"),
    [
        ("below SJF", {}, YES, "; at load 130 at_130_again 2.80, sjf 3.30"),
        ("below SJF", {"at_130_again": 2.5}, NO, "; at load 130 at_130_again 3.80, sjf 3.30"),
        ("below DeepRM trained for", {"time_130": 1.7, "joint": 1.0}, YES, "at load 130 at_130 2.80, time_130 3.00"),
    ],
)
def test_every_seed_must_be_best_on_its_objective(part: str, changed: Any, word: str, said: str) -> None:
    found = verdict(means.OBJECTIVE_CLAIMS[130], "trained for slowdown", part, made(slowdown=changed))
    assert found.word == word, found.found
    assert said in found.found


def test_at_70_the_second_meets_the_one_under_equal_conditions() -> None:
    found = verdict(means.OBJECTIVE_CLAIMS[70], "lower slowdown", "", made(slowdown={"little_deep_70": 1.3}))
    assert found.found.startswith("at load 70 little_deep_70 2.00, little_70 2.20")


def test_claims_about_learning_at_a_load_are_asked_of_the_agent_trained_there() -> None:
    short = curve(validation={0: 3, 2: 2}, slowdown=falling(10, 20))
    found = learning.shown(made(curves=dict.fromkeys(AGENTS, short)))
    claims = {shown.figure: [claim.text for claim, *_ in shown.verdicts] for shown in found}
    asked = {figure for figure, texts in claims.items() if any("better than Tetris" in text for text in texts)}
    assert asked == {"learning_at_70"}
    assert {figure for figure, texts in claims.items() if any("fewer epochs" in text for text in texts)} == {
        "learning_little_deep"
    }
    assert all(texts for texts in claims.values())
    sooner = [verdict for shown in found for claim, _, verdict in shown.verdicts if "fewer epochs" in claim.text]
    assert len(sooner) == 2
    assert all("(of 20 episodes each), little in updates " in verdict.found for verdict in sooner)


def test_single_jobs_are_shown_of_the_agents_that_the_paper_is_about() -> None:
    assert [shown.figure for shown in job_lengths.withheld(made())] == ["withheld_at_110"]
    assert [shown.figure for shown in job_lengths.durations(made())] == ["durations_little", "durations_little_deep"]


def test_all_of_it_is_drawn() -> None:
    found = figures.figures([made()])
    assert {shown.figure for shown in found if shown.drawing is not None} >= {"objectives_made_70", "withheld_at_110"}
    figures.table(found)
