"""`compare`: every policy of every scenario on the same test jobsets, with paired intervals, figures and a table."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.evaluation import plots, report
from pipeline.evaluation.comparing import Chosen, Compared, compare, key_metrics, slowdown_curves
from pipeline.progress import say
from pipeline.schemas import COMPARISON, DELAY, EVENT_SUMMARY, GROUP_SUMMARY, SUMMARY
from pipeline.stages.controlling import controlling
from pipeline.stages.streaming import foreseeing, streaming

NO_LEVELS: Mapping[str, float] = {}


def run(params: Params) -> None:
    """Write reports/: summaries, comparison, key metrics, curves, figures, and the table for people."""
    with tracking.stage("compare", "", params) as run:
        run.inputs(storage.TABLES)
        found = [_scenario(params, name, run) for name in params.scenarios]
        controlling(params, run)
        streams, foreseen = streaming(params, run), foreseeing(params)
        for agent in params.agents:
            run.figure(_learning(params, agent))
        summary, events, groups, comparison, delay = (
            pd.concat(tables, ignore_index=True) for tables in zip(*found, strict=True)
        )
        storage.write_table(storage.REPORTS / "summary.csv", summary, SUMMARY)
        storage.write_table(storage.REPORTS / "event_summary.csv", events, EVENT_SUMMARY)
        storage.write_table(storage.REPORTS / "group_summary.csv", groups, GROUP_SUMMARY)
        storage.write_table(storage.REPORTS / "comparison.csv", comparison, COMPARISON)
        storage.write_table(storage.REPORTS / "delay.csv", delay, DELAY)
        storage.write_json(storage.REPORTS / "metrics.json", key_metrics(summary, comparison, params.agents))
        storage.write_json(storage.REPORTS / "slowdown.json", slowdown_curves(summary))
        closing = report.closing(foreseen, params.agents, params.evaluation.confidence)
        words = report.document(comparison, delay, streams, foreseen, closing)
        storage.write(storage.REPORTS / "comparison.md", words.encode())
        run.figure(storage.REPORTS / "comparison.md")
        for line in [*report.headline(comparison, list(params.agents), params.evaluation.confidence), *closing]:
            say(line)


def _scenario(params: Params, name: str, run: tracking.StageRun) -> Compared:
    agents = params.agents_of(name)
    results, chosen = storage.read_jobset_results(params, name), storage.read_chosen(name)
    found = compare(name, results, Chosen(chosen.best, chosen.best_delay), agents, params.evaluation, params.seed)
    figure = plots.slowdown_by_load(found.summary, f"Mean slowdown on test jobsets, scenario {name}", agents)
    run.figure(storage.write_figure(f"slowdown_{name}", plots.png(figure)))
    return found


def _learning(params: Params, agent: str) -> Path:
    row = params.agents[agent]
    curve = {agent: storage.read_curve(agent, "finetune")}
    if row.finetune.name == "mixture":  # judged on streams as well, of which no heuristic's level is known
        shown, label = NO_LEVELS, "Geometric mean of slowdown over loads, validation"
    else:
        levels = storage.read_chosen(row.scenario).over(row.finetune.loads)
        told = row.objective == "slowdown" and row.scenario not in params.group_scenarios
        shown, label = levels if told else NO_LEVELS, f"Mean {row.objective.replace('_', ' ')} on validation jobsets"
    figure = plots.learning_curve(curve, shown, f"{agent} while learning", "validation", label)
    return storage.write_figure(f"learning_{agent}", plots.png(figure))
