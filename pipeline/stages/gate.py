"""`gate`: decide by rules and comparisons whether a candidate may become a scenario's champion."""

from collections.abc import Collection

import pandas as pd
from pydantic import ValidationError

from pipeline import tracking
from pipeline.champions.gate import FIRST, GATE, Advised, Trial, Verdict, by_advice, judged, verdict
from pipeline.champions.lines import CHAMPIONS, Champion, champions_in
from pipeline.comparing.resampling import windows
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.config.evaluation import too_few
from pipeline.core.schemas import empty
from pipeline.core.storage.files import one_line
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import progress, remark, say
from pipeline.stages.replaying import measures, seat_of, with_champion

TABLE, VERDICTS = storage.REPORTS / "gate.csv", storage.REPORTS / "gate.json"
ADVICE = "verdict.json"  # of `advise`, in reports/tables/advice/<site>: the gate depends on reports/tables
AGAINST = f"{CHAMPIONS} names it against the advice: remove its line"


def run(params: Params) -> None:
    """Write reports/gate.csv and reports/gate.json: each rule for each candidate, and the verdicts."""
    with tracking.stage("gate", "", params) as run, progress("gate", 1, brief=True):
        run.inputs(storage.TABLES)
        lines = champions_in(storage.read_text(CHAMPIONS))
        tables, verdicts = [empty(GATE)], {}
        for scenario in params.scenarios:
            rows, verdicts[scenario] = _judge(params, scenario, lines.get(scenario))
            tables.append(rows)
            remark(f"gate: {scenario}: {verdicts[scenario].line}")
            if never := too_few(params, scenario):
                say(never)
        together = pd.concat([rows for rows in tables if len(rows)] or tables, ignore_index=True)
        storage.write_table(TABLE, together, GATE)
        storage.write_json(VERDICTS, {name: one.model_dump(mode="json") for name, one in verdicts.items()})


def _judge(params: Params, scenario: str, line: Champion | None) -> tuple[pd.DataFrame, Verdict]:
    """Judge the candidates of one scenario: its agents, the best heuristic, and the order advised for a site."""
    problem, chosen = problem_of(params, scenario), storage.read_chosen(scenario)
    results = storage.read_jobset_results(params, scenario, problem.tables)
    means = chosen.over(params.scenario(scenario).loads)
    best = min((name for name in means if name not in problem.comparison.references), key=lambda name: means[name])
    advice = read_advice(params, scenario)
    advised = advice.policy if advice and advice.policy in means else best  # advised order, if the gate can replay it
    names = dict.fromkeys([*storage.scored(params, scenario), best, advised])
    seats = {name: seat_of(params, name, chosen) for name in names}
    seat = line.ref if line else None
    incumbent, first = seat or seats[best], "" if advice else FIRST
    gives_way = line is None or (line.policy in means and seats[advised].digest not in line.rolled_back)
    if advice and advice.policy == advised and gives_way:
        incumbent, first = seats[advised], advice.line
    if too_few(params, scenario):
        first = ""  # no champion without a test
    results, champion = with_champion(params, scenario, incumbent, chosen, results)
    candidates, rows = [name for name in seats if seats[name].digest != incumbent.digest], empty(GATE)
    if candidates:
        if problem.comparison.tested(params, scenario).same_windows:
            results = windows(results)
        back = {name: "it was rolled back" for name in candidates if line and seats[name].digest in line.rolled_back}
        said = by_advice(advice, candidates, means) if advice else {}
        trial = Trial(scenario, champion, candidates, *measures(params, scenario, results), back, said)
        rows = judged(results, trial, params.rules, params.evaluation.resamples, params.seed)[list(GATE.columns)]
    found = verdict(rows, seat, incumbent, seats, first)
    return rows, _with_advice(found, advice, means) if advice else found


def _with_advice(found: Verdict, advice: Advised, heuristics: Collection[str]) -> Verdict:
    """Return a verdict with the advice, and with a reason against a heuristic that stays champion in spite of it."""
    seat, reasons = found.champion, found.reasons
    if advice.policy and seat and not found.promote and seat.policy in heuristics and seat.policy != advice.policy:
        reasons = reasons | {seat.policy: [AGAINST]}
    return found.model_copy(update={"advice": advice.line, "reasons": reasons})


def read_advice(params: Params, scenario: str) -> Advised | None:
    """Read the advice for a site, or raise a UserError if its file is invalid; None for other scenarios."""
    if scenario not in params.sites:
        return None
    path = storage.results_folder("advice", scenario) / ADVICE
    missing = {"scenario": scenario, "verdict": "missing", "policy": "", "candidate": "", "vetoes": {}}
    try:
        return Advised.model_validate(storage.read_json(path) if path.exists() else missing)
    except ValidationError as error:
        again = f"run 'dvc repro advise@{scenario}'"
        raise UserError(f"{path}: not what advise writes ({one_line(error)}): {again}") from error
