"""`compare`: every policy of every scenario on the same test jobsets, with paired intervals, figures and a table."""

from pathlib import Path

import pandas as pd

from pipeline import storage, tracking
from pipeline.comparing import plots, words
from pipeline.comparing.comparing import Chosen, Compared, compare, key_metrics, slowdown_curves
from pipeline.config import Params
from pipeline.problems import Evidence, problem, problem_of, scenarios_by_problem
from pipeline.progress import say
from pipeline.schemas import COMPARISON, DELAY, SUMMARY
from pipeline.simulation.results import BOUNDED


def run(params: Params) -> None:
    """Write reports/: summaries, comparison, key metrics, curves, figures, and the table for people."""
    with tracking.stage("compare", "", params) as run:
        run.inputs(storage.TABLES)
        found = [_scenario(params, name, run) for name in params.scenarios]
        told = [_evidence(params, word, names, run) for word, names in scenarios_by_problem(params).items()]
        for agent in params.agents:
            run.figure(_learning(params, agent))
        storage.write_compared(params)
        summary, comparison, delay = (pd.concat(tables, ignore_index=True) for tables in zip(*found, strict=True))
        storage.write_table(storage.REPORTS / "summary.csv", summary, SUMMARY)
        storage.write_table(storage.REPORTS / "comparison.csv", comparison, COMPARISON)
        storage.write_table(storage.REPORTS / "delay.csv", delay, DELAY)
        bounded = {name for name in params.scenarios if _is_bounded(params, name)}
        metrics = key_metrics(summary, comparison, delay, params.agents, bounded)
        storage.write_json(storage.REPORTS / "metrics.json", metrics)
        storage.write_json(storage.REPORTS / "slowdown.json", slowdown_curves(summary))
        text = words.document(comparison, delay, [section for one in told for section in one.sections], bounded)
        storage.write(storage.REPORTS / "comparison.md", text.encode())
        run.figure(storage.REPORTS / "comparison.md")
        headline = words.headline(comparison, list(params.agents), params.evaluation.confidence, bounded)
        for line in [*headline, *(line for one in told for line in one.findings)]:
            say(line)


def _is_bounded(params: Params, scenario: str) -> bool:
    return BOUNDED in problem_of(params, scenario).tables.jobsets.columns


def _scenario(params: Params, name: str, run: tracking.StageRun) -> Compared:
    agents, tables = params.agents_of(name), problem_of(params, name).tables
    results, chosen = storage.read_jobset_results(params, name, tables), storage.read_chosen(name)
    found = compare(name, results, Chosen(chosen.best, chosen.best_delay), agents, params.evaluation, params.seed)
    what = "Mean bounded slowdown" if _is_bounded(params, name) else "Mean slowdown"
    figure = plots.slowdown_by_load(found.summary, f"{what} on test jobsets, scenario {name}", agents)
    run.figure(storage.write_figure(f"slowdown_{name}", plots.png(figure)))
    return found


def _evidence(params: Params, word: str, scenarios: list[str], run: tracking.StageRun) -> Evidence:
    """Write what only one problem has, also where no scenario is of it: a table without rows."""
    found = problem(word).comparison.evidence(params, scenarios)
    for name, (frame, schema) in found.tables.items():
        storage.write_table(storage.REPORTS / name, frame, schema)
    for title, content in found.figures.items():
        run.figure(storage.write_figure(title, content))
    return found


def _learning(params: Params, agent: str) -> Path:
    scenario = params.agents[agent].scenario
    beside = problem_of(params, scenario).comparison.validated(params, agent, storage.read_chosen(scenario))
    curve = {agent: storage.read_curve(agent, "finetune")}
    title = f"{agent} while learning"
    figure = plots.learning_curve(curve, beside.levels, title, "validation", beside.label)
    return storage.write_figure(f"learning_{agent}", plots.png(figure))
