"""Deepk8s's claims, judged on tables whose answer is known: they hold, they do not, they cannot be told."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from machine_rows import AGENT, DAGGER_RECIPE, PPO_RECIPE, rows
from papers_evidence import OURS, curve

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.comparing.statistics import comparison
from pipeline.config import MachinesAgent, Params, check_params
from pipeline.papers import deepk8s, deepk8s_learning
from pipeline.papers.deepk8s import HEURISTICS, compared
from pipeline.papers.evidence import Evidence, Gap
from pipeline.papers.figures import figures_of_machines, gathered, table
from pipeline.papers.roles import Roles, roles_of
from pipeline.papers.verdicts import (
    CANNOT,
    NO,
    PARTLY,
    YES,
    CannotTellError,
    Claim,
    Verdict,
    below_by,
    below_by_at_most,
    judged,
    nearly,
)
from pipeline.problems.machines.tables import TABLES
from pipeline.schemas import PAPERS
from pipeline.stages import papers

LOADS = (50, 110)
UPS = (-0.05, 0.05, 0.0, 0.0)  # of the jobsets, about their load's mean
SLOWDOWN = {"fcfs": 1.60, "random": 1.58, "sjf": 1.55, "tetris": 1.54, "ppo": 1.40, "a3c": 1.41, "dagger": 1.55}
COMPLETION = {"fcfs": 120.0, "random": 110.0, "sjf": 100.0, "tetris": 101.0, "ppo": 99.7, "a3c": 99.8, "dagger": 100.0}
# Completion times of the short task, which runs for 10, and of the long one, which runs for 100.
TASKS = dict.fromkeys(SLOWDOWN, (20.0, 110.0)) | {"ppo": (15.0, 130.0)}
BY = {"ppo": {"episodes": 4}, "a3c": {"workers": 2}, "dagger": {"teacher": "sjf"}}
UPDATES = {"ppo": 2000, "a3c": 8000, "dagger": 1000}
CURVES = {
    "ppo": {0: 3.0, 500: 1.6, 1000: 1.42, 2000: 1.40},
    "a3c": {0: 3.0, 1000: 2.0, 4000: 1.6, 6000: 1.43, 8000: 1.41},
    "dagger": {0: 3.0, 250: 2.0, 500: 1.56, 1000: 1.55},
}
LEVELS = {"fcfs": 1.6, "random": 1.58, "sjf": 1.55, "tetris": 1.54, "saf": 1.5}

ByLoad = Mapping[int, float]


def learner(algorithm: str, loads: Sequence[int] = (110,), **changes: Any) -> MachinesAgent:
    """An agent of the scenario "few"; changes are those of its row."""
    part = {name: AGENT["finetune"][name] for name in ("jobsets", "validate_every")}
    part |= {"name": algorithm, "recipe": "r", "loads": list(loads), "updates": UPDATES[algorithm], **BY[algorithm]}
    part |= changes.pop("finetune", {})
    return MachinesAgent.model_validate_json(json.dumps({**AGENT, **changes, "finetune": part}))


ALL = {name: learner(name) for name in BY}


def by_load(value: float | ByLoad) -> ByLoad:
    return value if isinstance(value, Mapping) else dict.fromkeys(LOADS, value)


def jobset_table(
    slowdown: Mapping[str, float | ByLoad],
    completion: Mapping[str, float | ByLoad],
    makespan: Mapping[str, float | ByLoad],
) -> pd.DataFrame:
    """Results of jobsets with those means."""
    lines = []
    for policy, value in slowdown.items():
        for load, mean in by_load(value).items():
            done, whole = by_load(completion[policy])[load], by_load(makespan.get(policy, 1000.0))[load]
            for jobset, up in enumerate(UPS):
                slow = [mean + up] * 5
                lines.append((policy, load, jobset, 2, *slow, 1.0, 1.0, 1.0, done + up, done, whole, 0.5, 0))
    return TABLES.jobsets.validate(pd.DataFrame(lines, columns=list(TABLES.jobsets.columns)))


def job_table(tasks: Mapping[str, tuple[float, float]], long: float = 100.0) -> pd.DataFrame:
    """Results of jobs: in each jobset a short task and a long one."""
    lines = []
    for policy, took in tasks.items():
        for load in LOADS:
            for jobset, up in enumerate(UPS):
                for job, (run, time) in enumerate(zip((10.0, long), took, strict=True)):
                    finish = 3.0 + time + up
                    lines.append((policy, load, jobset, job, 3.0, run, 3.0, finish, 0.0, 1.5, 1.5, 0, False))
    return TABLES.jobs.validate(pd.DataFrame(lines, columns=list(TABLES.jobs.columns)))


def evidence(
    agents: Mapping[str, MachinesAgent] | None = None,
    slowdown: Mapping[str, float | ByLoad] | None = None,
    completion: Mapping[str, float | ByLoad] | None = None,
    makespan: Mapping[str, float | ByLoad] | None = None,
    tasks: Mapping[str, tuple[float, float]] | None = None,
    curves: Mapping[str, Mapping[int, float]] | None = None,
    long: float = 100.0,
) -> Evidence:
    """The evidence of the scenario "few", in which every claim holds unless told."""
    roles = Roles("few", "machines", dict(ALL if agents is None else agents))
    there = (*HEURISTICS, *roles.agents)
    slow = {name: ({**SLOWDOWN, **(slowdown or {})}).get(name, 1.4) for name in there}
    took = {name: ({**COMPLETION, **(completion or {})}).get(name, 99.7) for name in there}
    spent = {name: ({**TASKS, **(tasks or {})}).get(name, (15.0, 130.0)) for name in compared(roles)}
    lines = {name: curve(validation=({**CURVES, **(curves or {})}).get(name, {0: 2.0})) for name in roles.agents}
    levels = dict.fromkeys(roles.agents, LEVELS)
    results = jobset_table(slow, took, makespan or {})
    return gathered(OURS, roles, results, job_table(spent, long), lines, levels, dict.fromkeys(LOADS, "tetris"))


def verdict(claims: Sequence[Claim], words: str, made: Evidence) -> Verdict:
    """Judge the one claim whose text has those words."""
    (claim,) = [claim for claim in claims if words in claim.text]
    ((_, found),) = judged([claim], made)
    return found


def gap(low: float, high: float) -> Gap:
    return Gap("ppo", "sjf", 50, 4, 1.4, 1.5, (low + high) / 2, low, high, 0)


# Words


@pytest.mark.parametrize(
    ("spans", "word"),
    [
        ([(-0.04, 0.04)], YES),
        ([(-0.04, 0.04), (0.06, 0.07)], PARTLY),
        ([(0.06, 0.07)], NO),
        ([(-0.07, -0.06)], NO),
        ([(0.04, 0.06)], CANNOT),
    ],
)
def test_nearly_equal_means_that_the_whole_interval_is_within_the_bound(
    spans: list[tuple[float, float]], word: str
) -> None:
    assert nearly([gap(*span) for span in spans]) == word


@pytest.mark.parametrize(
    ("span", "at_least", "at_most"),
    [
        ((-0.12, -0.08), YES, YES),
        ((-0.2, -0.15), YES, NO),
        ((-0.2, -0.1), YES, CANNOT),
        ((-0.06, -0.02), NO, YES),
        ((-0.1, -0.05), CANNOT, YES),
        ((0.1, 0.2), NO, YES),
    ],
)
def test_how_far_below_is_judged_by_the_whole_interval(span: tuple[float, float], at_least: str, at_most: str) -> None:
    assert below_by([gap(*span)], 0.075) == at_least
    assert below_by_at_most([gap(*span)], 0.135) == at_most


# Slowdown


@pytest.mark.parametrize(
    ("words", "changed", "word"),
    [
        ("FCFS has the highest", {}, YES),
        ("FCFS has the highest", {"fcfs": 1.57}, PARTLY),  # below random, which stays above the others
        ("FCFS has the highest", {"fcfs": 1.4, "random": 1.5}, NO),
        ("FCFS has the highest", dict.fromkeys(HEURISTICS, 1.5), CANNOT),
        ("at least 7.5 %", {}, YES),
        ("at least 7.5 %", {"ppo": {50: 1.40, 110: 1.50}}, PARTLY),
        ("at least 7.5 %", {"tetris": 1.45}, PARTLY),
        ("at least 7.5 %", {"ppo": 1.53}, NO),  # at most 4.4 % below
        ("at most 13.5 %", {}, YES),
        ("at most 13.5 %", {"fcfs": 2.0}, PARTLY),  # 30 % below that one
        ("at most 13.5 %", {"ppo": 1.2}, NO),  # at least 22.1 % below
        ("nearly equal in result", {}, YES),
        ("nearly equal in result", {"a3c": {50: 1.41, 110: 1.6}}, PARTLY),
        ("nearly equal in result", {"a3c": 1.6}, NO),
        ("nearly equal in result", {"a3c": 1.3}, NO),
        ("nearly equal in result", {"a3c": 1.4737}, CANNOT),  # 1.40 is 5 % below
        ("is 1.325", {}, CANNOT),
        ("is 1.325", {"ppo": 1.325}, CANNOT),
    ],
)
def test_claims_about_slowdown(words: str, changed: dict[str, float | ByLoad], word: str) -> None:
    found = verdict(deepk8s.OF_SLOWDOWN, words, evidence(slowdown=changed))
    assert found.agrees == word, found.found


def test_all_four_differences_are_told_with_their_mean() -> None:
    found = verdict(deepk8s.OF_SLOWDOWN, "at least 7.5 %", evidence()).found
    # 0.20 / 1.60, 0.18 / 1.58, 0.15 / 1.55, 0.14 / 1.54; their mean is 10.7 %.
    for said in ("fcfs 12.5 % below", "random 11.4 % below", "sjf 9.7 % below", "tetris 9.1 % below"):
        assert found.count(said) == len(LOADS)
    assert "on average 10.7 % below (n = 4 jobsets); at load 110" in found
    assert "90 % intervals" in found
    assert found.endswith("Ours: ppo: recipe r, 2000 updates on load 110")


def test_another_agent_of_the_same_kind_is_told_but_the_first_is_judged() -> None:
    made = evidence({"ppo": learner("ppo"), "again": learner("ppo")}, slowdown={"again": 1.50})
    found = verdict(deepk8s.OF_SLOWDOWN, "at least 7.5 %", made)
    assert found.agrees == YES
    assert "also trained by ppo, again: so far below in 0 of these 8" in found.found


def test_the_size_of_the_gain_on_sjf_is_told_to_a_hundredth_of_a_percent() -> None:
    found = verdict(deepk8s.OF_COMPLETION, "0.2 % below SJF", evidence(completion={"ppo": {50: 99.75, 110: 100.1}}))
    assert "; -0.25 % at load 50, +0.10 % at load 110; yes means" in found.found
    assert found.agrees == PARTLY


def test_the_authors_values_stand_beside_ours() -> None:
    slow = verdict(deepk8s.OF_SLOWDOWN, "is 1.325", evidence()).found
    assert slow.startswith("ppo: 1.400 (1.")
    assert "at load 110; theirs, 1.325, is of a log" in slow
    assert "99.7 (" in verdict(deepk8s.OF_COMPLETION, "is 94.116", evidence()).found


# Completion time and makespan


@pytest.mark.parametrize(
    ("words", "changed", "word"),
    [
        ("lowest mean completion time", {}, YES),
        ("lowest mean completion time", {"sjf": 99.0}, PARTLY),
        ("lowest mean completion time", {"ppo": 130.0}, NO),
        ("lowest mean completion time", {"ppo": {50: 99.7, 110: 130.0}}, PARTLY),
        ("0.2 % below SJF", {}, YES),  # 0.3 %
        ("0.2 % below SJF", {"ppo": {50: 99.7, 110: 90.0}}, PARTLY),
        ("0.2 % below SJF", {"ppo": 90.0}, PARTLY),
        ("0.2 % below SJF", {"ppo": 100.2}, NO),
        ("0.2 % below SJF", {"ppo": 100.0}, CANNOT),
        ("is 94.116", {"ppo": 94.116}, CANNOT),
    ],
)
def test_claims_about_completion_time(words: str, changed: dict[str, float | ByLoad], word: str) -> None:
    found = verdict(deepk8s.OF_COMPLETION, words, evidence(completion=changed))
    assert found.agrees == word, found.found


@pytest.mark.parametrize(
    ("words", "changed", "word"),
    [
        ("Short tasks are faster", {}, YES),
        ("Short tasks are faster", {"sjf": (14.0, 110.0)}, PARTLY),
        ("Short tasks are faster", {"ppo": (21.0, 130.0)}, NO),
        ("Short tasks are faster", {"ppo": (20.0, 130.0)}, CANNOT),
        ("Long tasks are slower", {}, YES),
        ("Long tasks are slower", {"fcfs": (20.0, 140.0)}, PARTLY),
        ("Long tasks are slower", {"ppo": (15.0, 105.0)}, NO),
        ("Long tasks are slower", {"ppo": (15.0, 110.0)}, CANNOT),
    ],
)
def test_claims_about_short_and_long_tasks(words: str, changed: dict[str, tuple[float, float]], word: str) -> None:
    found = verdict(deepk8s.OF_COMPLETION, words, evidence(tasks=changed))
    assert found.agrees == word, found.found


def test_tasks_are_told_apart_at_their_mean_run_time() -> None:
    made = evidence()
    assert made.long == 55.0  # of 10 and 100
    assert made.mean(deepk8s.short(made), 50, "ppo").value == pytest.approx(15.0)
    found = made.gap(deepk8s.long(made), 50, "ppo", "sjf")
    assert (found.mean, found.mean_against) == pytest.approx((130.0, 110.0))
    assert found.difference == pytest.approx(2 / 11)
    assert "tasks of more than 55: " in verdict(deepk8s.OF_COMPLETION, "Long tasks", made).found


def test_without_long_tasks_the_claims_about_them_are_left_open() -> None:
    made = evidence(long=10.0)
    found = verdict(deepk8s.OF_COMPLETION, "Long tasks", made)
    assert (found.agrees, found.found) == (CANNOT, "at load 50 there are no long tasks (they are told apart at 10)")
    _, completion = deepk8s.shown(made)
    assert completion.drawing is not None
    assert len(completion.drawing.axes) == 2  # short, and all


@pytest.mark.parametrize(
    ("makespan", "word"),
    [
        ({}, YES),
        ({"fcfs": 1040.0}, YES),
        ({"fcfs": 1060.0}, PARTLY),
        ({"fcfs": 1.0, "random": 2.0, "sjf": 4.0, "tetris": 8.0, "ppo": 16.0}, NO),
    ],
)
def test_makespans_are_nearly_equal_within_five_percent(makespan: dict[str, float | ByLoad], word: str) -> None:
    found = verdict(deepk8s.OF_COMPLETION, "makespan", evidence(makespan=makespan))
    assert found.agrees == word, found.found


def test_the_largest_difference_of_makespans_is_told() -> None:
    found = verdict(deepk8s.OF_COMPLETION, "makespan", evidence(makespan={"fcfs": {50: 1000.0, 110: 1030.0}}))
    assert "the largest of 20 differences, at load 110 fcfs 1030.00, random 1000.00: 3.0 % above" in found.found


# Learning


@pytest.mark.parametrize(
    ("words", "changed", "word"),
    [
        ("about 1,000", {}, YES),
        ("about 1,000", {"ppo": {0: 3.0, 600: 1.4, 2000: 1.4}}, PARTLY),
        ("about 1,000", {"ppo": {0: 3.0, 100: 1.4, 2000: 1.4}}, NO),
        ("much later than PPO", {}, YES),
        ("much later than PPO", {"a3c": {0: 3.0, 1500: 1.41, 8000: 1.41}}, PARTLY),  # later, not much
        ("much later than PPO", {"a3c": {0: 3.0, 6000: 2.0, 8000: 2.0}}, PARTLY),  # at another level
        ("much later than PPO", {"a3c": {0: 3.0, 500: 2.0, 8000: 2.0}}, NO),
        ("DAgger converges first", {}, YES),
        ("DAgger converges first", {"dagger": {0: 3.0, 100: 1.55, 1000: 1.55}}, PARTLY),  # first, but sooner
        ("DAgger converges first", {"ppo": {0: 3.0, 100: 1.4, 2000: 1.4}}, PARTLY),  # before A3C only
        ("DAgger converges first", {"dagger": {0: 3.0, 8000: 1.55}}, NO),
        ("only as good as SJF", {}, YES),
        ("only as good as SJF", {"dagger": {0: 3.0, 500: 1.45}}, NO),  # 6.5 % below
        ("only as good as SJF", {"dagger": {0: 3.0, 500: 1.65}}, NO),
    ],
)
def test_claims_about_learning(words: str, changed: dict[str, dict[int, float]], word: str) -> None:
    found = verdict(deepk8s_learning.CLAIMS, words, evidence(curves=changed))
    assert found.agrees == word, found.found


def test_a_run_that_is_shorter_than_the_papers_cannot_tell() -> None:
    short = {name: learner(name, finetune={"updates": 400}) for name in BY}
    curves = {name: {0: 3.0, place: 1.4, 400: 1.4} for name, place in (("ppo", 100), ("a3c", 200), ("dagger", 50))}
    made = evidence(short, curves=curves)
    words = {claim.text.split()[0]: found.agrees for claim, found in judged(deepk8s_learning.CLAIMS[:3], made)}
    assert words == {"PPO": CANNOT, "A3C": YES, "DAgger": PARTLY}


def test_what_is_found_of_learning_tells_updates_and_their_size() -> None:
    found = verdict(deepk8s_learning.CLAIMS, "much later", evidence()).found
    assert "ppo after update 1000 of 2000 (of 8 episodes each), a3c after update 6000 of 8000 (of 2" in found
    assert "a3c: best validation 1.410, 1.400 of ppo: 0.7 % above" in found
    said = verdict(deepk8s_learning.CLAIMS, "only as good", evidence()).found
    assert said.startswith("best validation of dagger 1.550, sjf 1.550: equal; taught by sjf")


def test_agents_validated_at_other_loads_are_not_compared() -> None:
    made = evidence({**ALL, "a3c": learner("a3c", loads=[50])})
    found = verdict(deepk8s_learning.CLAIMS, "much later", made)
    assert (found.agrees, found.found) == (CANNOT, "ppo and a3c were validated at other loads")
    (shown,) = deepk8s_learning.shown(made)
    assert shown.drawing is not None
    labels = {str(drawn.get_label()) for drawn in shown.drawing.axes[0].get_lines()}
    assert labels >= {"ppo", "dagger"}
    assert "a3c" not in labels


# Who is there


@pytest.mark.parametrize(
    ("missing", "open_ones"),
    [
        ("ppo", {"at least", "at most", "nearly equal in result", "1.325", "lowest", "0.2 %", "94.116", "makespan"}),
        ("a3c", {"nearly equal in result", "much later"}),
        ("dagger", {"DAgger converges first", "DAgger ends"}),
    ],
)
def test_claims_about_an_algorithm_that_nobody_learns_by_are_left_open(missing: str, open_ones: set[str]) -> None:
    made = evidence({name: agent for name, agent in ALL.items() if name != missing})
    rows = table(figures_of_machines([made]))
    for words in open_ones:
        (row,) = rows[rows["claim"].str.contains(words, regex=False)].to_dict("records")
        assert row["agrees"] == CANNOT
    reason = f"no agent of scenario few has finetune {missing} and objective slowdown"
    assert (rows["found"] == reason).any()
    assert rows.loc[rows["claim"].str.startswith("FCFS"), "agrees"].item() == YES


def test_no_event_driven_scenario_with_an_agent_for_slowdown_leaves_all_claims_open() -> None:
    rows = PAPERS.validate(table(figures_of_machines([])))
    assert len(rows) == 15
    assert set(rows["agrees"]) == {CANNOT}
    assert set(rows["found"]) == {"no agent of an event-driven scenario has objective slowdown"}


def test_agents_for_other_objectives_are_not_asked() -> None:
    made = evidence({"hasty": learner("ppo", objective="completion_time"), **ALL})
    assert compared(made.roles) == [*HEURISTICS, *ALL]
    assert "hasty" not in made.policies
    assert made.roles.lead_by("ppo") == "ppo"
    with pytest.raises(CannotTellError, match="policy hasty was not scored in scenario few"):
        made.gap(deepk8s.short(made), 50, "hasty", "sjf")


def with_agents(**agents: dict[str, Any]) -> Params:
    """params.yaml without agents on many machines but for these, and with two scenarios more of that kind."""
    loaded = rows()
    machines = {name for name, row in loaded["scenarios"].items() if row["problem"] == "machines"}
    loaded["scenarios"]["other"] = loaded["scenarios"]["few"]
    loaded["recipes"] |= {"clipped": PPO_RECIPE, "taught": DAGGER_RECIPE}
    loaded["agents"] = {n: row for n, row in loaded["agents"].items() if row["scenario"] not in machines} | agents
    return check_params(loaded, "params.yaml")


def test_every_scenario_of_machines_with_an_agent_for_slowdown_has_roles() -> None:
    hasty = {**AGENT, "scenario": "other", "objective": "completion_time"}
    (roles,) = [roles for roles in roles_of(with_agents(mine=AGENT, hasty=hasty)) if roles.setting == "machines"]
    assert (roles.scenario, list(roles.agents)) == ("few", ["mine"])
    assert "machines" not in {roles.setting for roles in roles_of(with_agents(hasty=hasty))}


# Figures


def test_every_figure_is_drawn_and_names_its_scenario() -> None:
    found = figures_of_machines([evidence()])
    assert [shown.figure for shown in found] == [
        "deepk8s_slowdown_few",
        "deepk8s_completion_few",
        "deepk8s_learning_few",
    ]
    for shown, again in zip(found, figures_of_machines([evidence()]), strict=True):
        assert shown.drawing is not None
        assert again.drawing is not None
        assert png(shown.drawing) == png(again.drawing)
    assert len(PAPERS.validate(table(found))) == 15


def test_bars_show_the_means_of_every_policy_at_every_load() -> None:
    slow, took = (shown.drawing for shown in deepk8s.shown(evidence()))
    assert slow is not None
    assert took is not None
    assert [axes.get_title(loc="left") for axes in slow.axes] == ["Load 50", "Load 110"]
    widths = [bar.get_width() for bar in slow.axes[0].patches]
    np.testing.assert_allclose(widths, [value - 1 for value in SLOWDOWN.values()])
    short, long, _ = took.axes
    assert short.get_title(loc="left") == "Short tasks (at most 55)"
    heights = [bar.get_height() for bar in long.patches]
    assert sorted(set(np.round(heights, 6))) == [110.0, 130.0]
    assert len(heights) == len(LOADS) * len(SLOWDOWN)


def test_learning_is_drawn_beside_the_papers_heuristics_on_validation() -> None:
    (shown,) = deepk8s_learning.shown(evidence())
    assert shown.drawing is not None
    (axes,) = shown.drawing.axes
    lines = {str(drawn.get_label()): list(np.asarray(drawn.get_ydata())) for drawn in axes.get_lines()}
    assert lines["ppo"] == list(CURVES["ppo"].values())
    assert {text.get_text() for text in axes.texts} == set(HEURISTICS)
    assert deepk8s_learning.shown(evidence({}))[0].drawing is None


@pytest.mark.filterwarnings("error")
def test_the_stage_judges_every_event_driven_scenario_by_its_own_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    params = with_agents(mine=AGENT, yours={**AGENT, "scenario": "other"})
    params = params.model_copy(
        update={
            "scenarios": {**params.machines_scenarios},
            "agents": {name: params.agents[name] for name in ("mine", "yours")},
            "evaluation": OURS.evaluation,
        }
    )
    for scenario, agent, slow in (
        ("few", "mine", 1.40),
        ("other", "yours", 1.70),
    ):  # of "machines", where nobody learns, none
        store(scenario, agent, slow)
    papers.run(params)
    drawn = {path.stem for path in (tmp_path / "reports" / "papers").iterdir()}
    kinds = ("slowdown", "completion", "learning")
    assert drawn == {f"deepk8s_{kind}_{scenario}" for kind in kinds for scenario in ("few", "other")}
    table_of = storage.read_table(tmp_path / "reports" / "papers.csv", PAPERS)
    at_least = table_of[table_of["claim"].str.contains("at least 7.5 %", regex=False)]
    assert dict(zip(at_least["figure"], at_least["agrees"], strict=True)) == {
        "deepk8s_slowdown_few": YES,
        "deepk8s_slowdown_other": NO,
    }


def store(scenario: str, agent: str, slow: float) -> None:
    """Write results of the heuristics, and of an agent, as the stages before this one do."""
    heuristics = {name: SLOWDOWN[name] for name in HEURISTICS}
    folder = storage.results_folder("heuristics", scenario)
    tasks = job_table({name: TASKS[name] for name in HEURISTICS})
    storage.write_results(folder, [tasks], [jobset_table(heuristics, COMPLETION, {})], TABLES)
    levels = {name: dict.fromkeys(LOADS, LEVELS[name]) for name in HEURISTICS}
    storage.write_chosen(scenario, storage.Chosen(knobs={}, best=dict.fromkeys(LOADS, "tetris"), validation=levels))
    means = {f"{agent}_pretrained": 3.0, agent: slow}
    jobs, jobsets = job_table(dict.fromkeys(means, (15.0, 130.0))), jobset_table(means, dict.fromkeys(means, 99.7), {})
    storage.write_results(storage.results_folder("agents", agent), [jobs], [jobsets], TABLES)
    storage.write_curve(storage.curve_file(agent, "finetune"), [(0, {"validation": 3.0}), (2, {"validation": 1.4})])


def test_a_gap_of_means_has_the_interval_of_the_comparison() -> None:
    made = evidence()
    results = jobset_table(SLOWDOWN, COMPLETION, {})
    references = {"sjf": dict.fromkeys(LOADS, "sjf")}
    whole = comparison(results, "few", references, OURS.evaluation, np.random.default_rng(OURS.seed))
    row = whole[(whole["load"] == "110") & (whole["policy"] == "ppo")].iloc[0]
    found = made.gap("mean_slowdown", 110, "ppo", "sjf")
    assert (found.low, found.high) == pytest.approx((row["difference_low"], row["difference_high"]))
