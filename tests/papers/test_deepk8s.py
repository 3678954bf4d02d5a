"""Deepk8s's claims, judged on tables whose answer is known; every part's cases are in test_papers.py."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deepk8s_evidence import (
    ALL,
    COMPLETION,
    LEVELS,
    LOADS,
    SLOWDOWN,
    TASKS,
    VALIDATION,
    few,
    job_table,
    jobset_table,
    learner,
)
from machine_rows import AGENT, DAGGER_RECIPE, PPO_RECIPE, rows
from papers_cases import once
from papers_evidence import OURS
from readable import faults

from pipeline.comparing.plots import png
from pipeline.comparing.statistics import comparison
from pipeline.core import storage
from pipeline.core.config import MachinesScenario, Params, check_params
from pipeline.core.schemas.tables import PAPERS
from pipeline.papers import deepk8s
from pipeline.papers.deepk8s import HEURISTICS, policies_shown
from pipeline.papers.evidence import Evidence
from pipeline.papers.figures import figures, table
from pipeline.papers.roles import roles_of
from pipeline.papers.rules import NO, UNDECIDED, YES, CannotTellError
from pipeline.papers.verdicts import Claim, Finding, judged
from pipeline.problems.machines.env.tables import TABLES
from pipeline.stages import papers


def verdicts(claims: Sequence[Claim], words: str, made: Evidence) -> dict[str, Finding]:
    """Judge the parts of the one claim whose text has those words."""
    (claim,) = [claim for claim in claims if words in claim.text]
    return {part.text: found for _, part, found in judged([claim], made)}


def test_a_claim_about_each_heuristic_is_judged_for_each_apart_in_shares_of_its_mean() -> None:
    found = verdicts(deepk8s.OF_SLOWDOWN, "at least 7.5 %", few(slowdown={"sjf": 1.45}))
    assert {text: verdict.word for text, verdict in found.items()} == {
        "below FCFS": YES,
        "below Random": YES,
        "below SJF": NO,
        "below Tetris": YES,
    }
    said = found["below SJF"].found
    assert said.startswith("at load 50 ppo 1.40, sjf 1.45: 3.4 % below sjf (90 % interval ")
    assert said.endswith("n = 12 jobsets). Ours: ppo: recipe r, 2000 updates on load 110")


def test_one_load_refutes() -> None:
    found = verdicts(deepk8s.OF_COMPLETION, "lowest mean completion", few(completion={"fcfs": {50: 120.0, 110: 90.0}}))
    assert (found["below FCFS"].word, found["below SJF"].word) == (NO, YES)


def test_a_makespan_is_told_as_a_share_of_the_heuristics() -> None:
    found = verdicts(deepk8s.OF_COMPLETION, "makespan", few(makespan={"ppo": 1700.0, "random": 1250.0}))
    assert "ppo 1700.00, random 1250.00: 36.0 % above random" in found["PPO and Random"].found
    assert {verdict.word for verdict in found.values()} == {NO}


def test_the_size_of_the_gain_on_sjf_is_told_to_a_hundredth_of_a_percent() -> None:
    (found,) = verdicts(deepk8s.OF_COMPLETION, "0.2 % below SJF", once(few)).values()
    assert (found.word, "0.20 % below sjf" in found.found) == (YES, True)


def test_tasks_are_told_apart_at_their_mean_run_time() -> None:
    made = once(few)
    assert made.long == 55.0  # of 10 and 100
    assert made.mean(deepk8s.short(made), 50, "ppo").value == pytest.approx(15.0)
    found = made.gap(deepk8s.long(made), 50, "ppo", "sjf")
    assert (found.mean, found.mean_against) == pytest.approx((130.0, 110.0))
    assert found.difference == pytest.approx(2 / 11)
    said = verdicts(deepk8s.OF_COMPLETION, "Long tasks", made)["than under SJF"].found
    assert said.startswith("tasks of more than 55: at load 50 ppo 130.00, sjf 110.00: 18.2 % above sjf")


def test_without_long_tasks_the_claims_about_them_are_left_open() -> None:
    made = few(long=10.0)
    found = verdicts(deepk8s.OF_COMPLETION, "Long tasks", made)
    assert set(found.values()) == {Finding("at load 50 there are no tasks of more than 10", UNDECIDED)}
    _, completion, _ = deepk8s.shown(made)
    assert completion.drawing is not None
    assert len(completion.drawing.axes) == 2  # short, and all


def test_what_is_found_of_learning_tells_updates_and_their_size() -> None:
    found = verdicts(deepk8s.OF_LEARNING, "much later", once(few))["PPO sooner, by updates"].found
    assert found.startswith(
        "converged: ppo in updates 801 to 1000 of 2000 (of 8 episodes each), a3c in updates 4001 to 4800 of 8000 (of 2"
    )


def test_agents_validated_at_other_loads_are_not_drawn_together() -> None:
    shown = deepk8s.shown(few({**ALL, "a3c": learner("a3c", loads=[50])}))[-1]
    assert shown.drawing is not None
    labels = {str(drawn.get_label()) for drawn in shown.drawing.axes[0].get_lines()}
    assert labels >= {"ppo", "dagger"}
    assert "a3c" not in labels


# Who is there


@pytest.mark.parametrize(
    ("missing", "open_ones"),
    [
        ("ppo", {"at least", "at most", "nearly equal in result", "lowest", "0.2 %", "makespan"}),
        ("a3c", {"nearly equal in result", "much later"}),
        ("dagger", {"DAgger ends"}),
    ],
)
def test_claims_about_an_algorithm_that_nobody_learns_by_are_left_open(missing: str, open_ones: set[str]) -> None:
    made = few({name: agent for name, agent in ALL.items() if name != missing})
    found = table(deepk8s.shown(made))
    for words in open_ones:
        assert set(found.loc[found["claim"].str.contains(words, regex=False), "verdict"]) == {UNDECIDED}
    reason = f"no agent of scenario few has finetune {missing} and objective slowdown"
    assert (found["found"] == reason).any()
    assert set(found.loc[found["claim"].str.startswith("FCFS"), "verdict"]) == {YES}


def test_no_event_driven_scenario_with_an_agent_for_slowdown_leaves_all_claims_open() -> None:
    found = PAPERS.validate(table(figures([])))
    machines = found[found["paper"].str.startswith("Deepk8s")]
    assert machines["claim"].nunique() == 13
    assert set(machines["verdict"]) == {UNDECIDED}
    assert set(machines["found"]) == {"no agent of an event-driven scenario has objective slowdown"}


def test_agents_for_other_objectives_are_not_asked() -> None:
    made = few({"hasty": learner("ppo", objective="completion_time"), **ALL})
    assert policies_shown(made.roles) == [*HEURISTICS, *ALL]
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
    found, repeated = (deepk8s.shown(made) for made in (few(), few()))
    assert [shown.figure for shown in found] == [
        "deepk8s_slowdown_few",
        "deepk8s_completion_few",
        "deepk8s_learning_few",
    ]
    for shown, again in zip(found, repeated, strict=True):
        assert shown.drawing is not None
        assert again.drawing is not None
        assert list(faults(shown.drawing)) == []
        assert png(shown.drawing) == png(again.drawing)
    assert PAPERS.validate(table(found))["claim"].nunique() == 13


def test_bars_show_the_means_of_every_policy_at_every_load() -> None:
    slow, took, _ = (shown.drawing for shown in deepk8s.shown(once(few)))
    assert slow is not None
    assert took is not None
    assert [axes.get_title(loc="left") for axes in slow.axes] == ["Load 50 %", "Load 110 %"]
    widths = [bar.get_width() for bar in slow.axes[0].patches]
    np.testing.assert_allclose(widths, [value - 1 for value in SLOWDOWN.values()])
    short, long, _ = took.axes
    assert short.get_title(loc="left") == "Short tasks (at most 55 time units)"
    heights = [bar.get_height() for bar in long.patches]
    assert sorted(set(np.round(heights, 6))) == [110.0, 130.0]
    assert len(heights) == len(LOADS) * len(SLOWDOWN)


def test_learning_is_drawn_beside_the_papers_heuristics_on_validation() -> None:
    shown = deepk8s.shown(once(few))[-1]
    assert shown.drawing is not None
    (axes,) = shown.drawing.axes
    lines = {str(drawn.get_label()): list(np.asarray(drawn.get_ydata())) for drawn in axes.get_lines()}
    assert lines["ppo"] == list(VALIDATION["ppo"].values())
    assert {text.get_text() for text in axes.texts} < set(HEURISTICS)  # the best ones, so that there are five lines
    assert len(lines) == 5
    assert deepk8s.shown(few({}))[-1].drawing is None


@pytest.mark.filterwarnings("error")
def test_the_stage_judges_every_event_driven_scenario_by_its_own_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    params = with_agents(mine=AGENT, yours={**AGENT, "scenario": "other"})
    params = params.model_copy(
        update={
            "scenarios": {**params.scenarios_of(MachinesScenario)},
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
    assert {figure: set(rows["verdict"]) for figure, rows in at_least.groupby("figure")} == {
        "deepk8s_slowdown_few": {YES},
        "deepk8s_slowdown_other": {NO},
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
    made = once(few)
    results = jobset_table(SLOWDOWN, COMPLETION, {})
    references = {"sjf": dict.fromkeys(LOADS, "sjf")}
    whole = comparison(results, "few", references, OURS.evaluation, np.random.default_rng(OURS.seed))
    row = whole[(whole["load"] == "110") & (whole["policy"] == "ppo")].iloc[0]
    found = made.gap("mean_slowdown", 110, "ppo", "sjf")
    assert (found.low, found.high) == pytest.approx((row["difference_low"], row["difference_high"]))
