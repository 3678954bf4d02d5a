"""`compare`: every policy of every scenario on the same test jobsets, with paired intervals, figures and a table."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pipeline import tracking
from pipeline.comparing import kept, plots, words
from pipeline.comparing.comparing import (
    Compared,
    compare,
    key_metrics,
    loads_markdown,
    loads_of,
    short,
    slowdown_curves,
)
from pipeline.comparing.resampling import windows
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas import COMPARISON, DELAY, OBJECTIVES, SUMMARY
from pipeline.core.schemas.tables import LOADS
from pipeline.problems import problem, problem_of, scenarios_by_problem
from pipeline.problems.parts import Evidence
from pipeline.progress import progress, remark, say
from pipeline.simulation.results import BOUNDED
from pipeline.tracking.changes import paired
from pipeline.tracking.identity import from_best

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(params: Params) -> None:
    """Write reports/: summaries, comparison, key metrics, curves, figures and the Markdown table."""
    with tracking.stage("compare", "", params) as run, progress("compare", 1, brief=True):
        run.inputs(storage.TABLES, *map(Path, paired(params, params.agents)))
        tested = {name: problem_of(params, name).comparison.tested(params, name) for name in params.scenarios}
        evidence = [_evidence(params, word, names, run) for word, names in scenarios_by_problem(params).items()]
        overloads = {name for one in evidence for name in one.overloads}
        found = [_scenario(params, name, of.same_windows, name in overloads, run) for name, of in tested.items()]
        for agent in params.agents:
            _learning_curve(params, agent, run)
        kept.sweep(kept.KEPT)
        storage.write_compared(params)
        summary, *judged = (pd.concat(tables, ignore_index=True) for tables in zip(*found, strict=True))
        comparison, delay, objectives = (rows[~rows["scenario"].isin(overloads)] for rows in judged)
        counts = {name: params.scenario(name).jobsets.test for name in tested}
        offered = [loads_of(name, of.jobs, of.capacity, of.span, counts[name]) for name, of in tested.items()]
        loads = pd.concat(offered, ignore_index=True)
        storage.write_table(storage.REPORTS / "summary.csv", summary, SUMMARY)
        storage.write_table(storage.REPORTS / "comparison.csv", comparison, COMPARISON)
        storage.write_table(storage.REPORTS / "delay.csv", delay, DELAY)
        storage.write_table(storage.REPORTS / "objectives.csv", objectives, OBJECTIVES)
        storage.write_table(storage.REPORTS / "loads.csv", loads, LOADS)
        bounded = {name for name in params.scenarios if _is_bounded(params, name)}
        by_slowdown = summary[~summary["scenario"].isin(overloads)]
        metrics = key_metrics(by_slowdown, comparison, delay, objectives, params.judged, bounded)
        metrics |= {name: metric for one in evidence for name, metric in one.overloads.items()}
        storage.write_json(storage.REPORTS / "metrics.json", dict(sorted(metrics.items())))
        run.parent_numbers(from_best(metrics))
        storage.write_json(storage.REPORTS / "slowdown.json", slowdown_curves(summary))
        first = [words.objectives(objectives), loads_markdown(loads)]
        sections = [section for one in evidence for section in one.sections]
        single = {name for name in params.scenarios if storage.read_chosen(name).single}
        text = words.document(comparison, delay, first, sections, bounded, single)
        storage.write(storage.REPORTS / "comparison.md", text.encode())
        run.figure(storage.REPORTS / "comparison.md")
        excluded = [f"left out: {line}" for line in storage.failures(params).values()]
        findings = [line for one in evidence for line in one.findings]
        remark(*findings)
        say(*(f"compare: {line}" for line in (*short(loads), *excluded)))


def _is_bounded(params: Params, scenario: str) -> bool:
    return BOUNDED in problem_of(params, scenario).tables.jobsets.columns


def _scenario(params: Params, name: str, same_windows: bool, overload: bool, run: tracking.StageRun) -> Compared:
    tables = problem_of(params, name).tables
    agents = {agent: params.judged[agent] for agent in storage.scored(params, name)}
    results, chosen = storage.read_jobset_results(params, name, tables), storage.read_chosen(name)
    results = windows(results) if same_windows else results
    found = compare(name, results, chosen.best, chosen.best_delay, agents, params.evaluation, params.seed)
    what = "Mean bounded slowdown" if _is_bounded(params, name) else "Mean slowdown"
    title = f"{what} on test jobsets, scenario {name}{', an overload: not judged by it' if overload else ''}"
    _draw(run, f"slowdown_{name}", plots.slowdown_by_load, found.summary, title, list(agents))
    return found


def _evidence(params: Params, word: str, scenarios: list[str], run: tracking.StageRun) -> Evidence:
    """Write a problem's own tables and figures; without scenarios of the problem, tables have no rows."""
    found = problem(word).comparison.evidence(params, scenarios)
    for name, (frame, schema) in found.tables.items():
        storage.write_table(storage.REPORTS / name, frame, schema)
    for title, content in found.figures.items():
        run.figure(storage.write_figure(title, content))
    return found


def _learning_curve(params: Params, agent: str, run: tracking.StageRun) -> None:
    scenario = params.agents[agent].scenario
    validated = problem_of(params, scenario).comparison.validated(params, agent, storage.read_chosen(scenario))
    curve = {agent: storage.read_curve(agent, "finetune")}
    about = curve, validated.levels, f"{agent} while learning", "validation", validated.label
    _draw(run, f"learning_{agent}", plots.learning_curve, *about)


def _draw(run: tracking.StageRun, name: str, draw: Callable[..., "Figure"], *about: object) -> None:
    run.figure(storage.write_figure(name, kept.picture(kept.KEPT, draw, *about)))
