"""`confirm`: all policies of a scenario on jobsets never used for any choice, for published figures."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline.comparing import words
from pipeline.comparing.comparing import compare
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas import COMPARISON
from pipeline.errors import UserError
from pipeline.external.guard import PolicyError
from pipeline.problems import Problem, problem_of
from pipeline.progress import progress, remark, say
from pipeline.simulation.results import BOUNDED, Results, slowdown_column
from pipeline.stages.policy import external_policy

SEED = 20_261_124  # only of these jobsets: no stage, test or benchmark draws from it
LINE = 80  # columns of a table
FOLDER = storage.REPORTS / "confirm"


def run(params: Params, scenario: str) -> None:
    """Write reports/confirm/<scenario>: results of every policy on each jobset, and the comparison.

    Heuristics are tuned on validation jobsets and agents are trained already; this command selects nothing. Raises
    UserError: the scenario's jobsets do not depend on a seed, or a model or the tuning is missing.
    """
    problem = problem_of(params, scenario)
    chosen = storage.read_chosen(scenario)
    jobsets = fresh_jobsets(problem, params, scenario)
    results = scored(problem, params, scenario, chosen.knobs, jobsets)
    frame = pd.concat([done.jobsets for done in results.values()], ignore_index=True)
    agents = {name: row for name, row in params.judged.items() if name in results}
    found = compare(scenario, frame, chosen.best, chosen.best_delay, agents, params.evaluation, params.seed)
    storage.write_table(FOLDER / scenario / "jobsets.parquet", frame, problem.tables.jobsets)
    storage.write_table(FOLDER / scenario / "comparison.csv", found.comparison, COMPARISON)
    bounded = [scenario] if BOUNDED in frame else []
    remark(*words.headlines(found.objectives, found.comparison, params.evaluation.confidence, bounded))
    for measure in (name for name in (slowdown_column(frame), "mean_wait") if name in frame):
        table = frame.pivot_table(index="policy", columns="load", values=measure)
        table = table.assign(all=table.mean(axis=1)).sort_values("all", kind="stable").rename_axis(None, axis=1)
        text = table.to_string(float_format="{:.4g}".format, line_width=LINE)
        remark(f"{measure.replace('_', ' ')} by load:", *text.splitlines())


def fresh_jobsets(problem: Problem, params: Params, scenario: str) -> Mapping[int, Sequence[object]]:
    """Draw the confirmation jobsets: as test jobsets, from another seed."""
    with progress(f"draw jobsets of {scenario}, percent", 100, brief=True) as advance:
        drawn = problem.draw(params.model_copy(update={"seed": SEED}), scenario, advance).splits["test"]
    there = problem.scoring(params, scenario, None).read("test")
    if all(_same_jobs(drawn[load], there[load]) for load in drawn):
        raise UserError(f"scenario '{scenario}': its jobsets are cut from a log, so that there are no others to draw")
    return drawn


def _same_jobs(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether arrivals and durations are equal; arrivals always are if all jobs wait at the start."""
    return all(
        np.array_equal(getattr(one, column), getattr(other, column))
        for one, other in zip(some, others, strict=True)
        for column in ("arrival", "duration")
    )


def scored(
    problem: Problem, params: Params, scenario: str, knobs: Mapping[str, float], jobsets: Mapping[int, Sequence[object]]
) -> dict[str, Results]:
    """Return the results of all policies; an external policy that fails is reported and has none."""
    here = problem.scoring(params, scenario, None)
    with progress(f"confirm {scenario}, percent", 100) as advance:
        found = here.score(here.heuristics(knobs), jobsets=jobsets, on_progress=lambda share: advance(50 * share))
        for name in (name for name in params.agents_of(scenario) if name in params.judged):
            if name in params.agents:
                agent = problem.scoring(params, scenario, name)
                found |= agent.score(problem.learning.policies(params, name), jobsets=jobsets)
                continue
            try:
                found |= here.score({name: external_policy(params, name, here.scale)}, jobsets=jobsets)
            except PolicyError as error:
                say(f"policy {name}: {error}")
        advance(100)
    return found
