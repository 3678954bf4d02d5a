"""`gate`: decide by rules and comparisons whether a candidate may become a scenario's champion."""

import pandas as pd

from pipeline import tracking
from pipeline.champions.gate import GATE, Trial, Verdict, judged, verdict
from pipeline.champions.lines import CHAMPIONS, Champion, champions_in
from pipeline.comparing.resampling import windows
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.config.evaluation import too_few
from pipeline.core.schemas import empty
from pipeline.problems import problem_of
from pipeline.progress import progress, say
from pipeline.stages.replaying import measures, seat_of, with_champion

TABLE, VERDICTS = storage.REPORTS / "gate.csv", storage.REPORTS / "gate.json"


def run(params: Params) -> None:
    """Write reports/gate.csv and reports/gate.json: each rule for each candidate, and the verdicts."""
    with tracking.stage("gate", "", params) as run, progress("gate", 1, brief=True):
        run.inputs(storage.TABLES)
        lines = champions_in(storage.read_text(CHAMPIONS))
        tables, verdicts = [empty(GATE)], {}
        for scenario in params.scenarios:
            rows, verdicts[scenario] = _judge(params, scenario, lines.get(scenario))
            tables.append(rows)
            say(f"gate: {scenario}: {verdicts[scenario].line}")
            if never := too_few(params, scenario):
                say(never)
        together = pd.concat([rows for rows in tables if len(rows)] or tables, ignore_index=True)
        storage.write_table(TABLE, together, GATE)
        storage.write_json(VERDICTS, {name: one.model_dump(mode="json") for name, one in verdicts.items()})


def _judge(params: Params, scenario: str, line: Champion | None) -> tuple[pd.DataFrame, Verdict]:
    """Judge the candidates of one scenario: its agents, and the best heuristic."""
    problem, chosen = problem_of(params, scenario), storage.read_chosen(scenario)
    results = storage.read_jobset_results(params, scenario, problem.tables)
    means = chosen.over(params.scenario(scenario).loads)
    best = min((name for name in means if name not in problem.comparison.references), key=lambda name: means[name])
    seats = {name: seat_of(params, name, chosen) for name in [*storage.scored(params, scenario), best]}
    seat = line.ref if line else None
    incumbent = seat or seats[best]
    results, champion = with_champion(params, scenario, incumbent, chosen, results)
    candidates = [name for name in seats if seats[name].digest != incumbent.digest]
    if not candidates:
        return empty(GATE), verdict(empty(GATE), seat, incumbent, seats)
    if problem.comparison.tested(params, scenario).same_windows:
        results = windows(results)
    refused = {name: "it was rolled back" for name in candidates if line and seats[name].digest in line.rolled_back}
    trial = Trial(scenario, champion, candidates, *measures(params, scenario, results), refused)
    rows = judged(results, trial, params.rules, params.evaluation.resamples, params.seed)
    return rows[list(GATE.columns)], verdict(rows, seat, incumbent, seats)
