"""`confirm`: all policies of a scenario on jobsets that nothing was ever chosen on, for figures that are published."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.comparing import words
from pipeline.comparing.comparing import Chosen, compare
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.external.guard import PolicyError
from pipeline.problems import Problem, problem_of
from pipeline.progress import progress, say
from pipeline.schemas import COMPARISON
from pipeline.simulation.results import BOUNDED, Results, slowdown_column
from pipeline.stages.policy import known

SEED = 20_261_124  # of these jobsets alone: no stage, test or benchmark draws from it
FOLDER = storage.REPORTS / "confirm"


def run(params: Params, scenario: str) -> None:
    """Write reports/confirm/<scenario>: what every policy had on each jobset, and the comparison.

    Heuristics are as validation tuned them, agents as they were trained; nothing is chosen here.

    Raises:
        UserError: the scenario's jobsets do not depend on a seed, or a model or what validation chose is missing.
    """
    problem = problem_of(params, scenario)
    chosen = storage.read_chosen(scenario)
    jobsets = fresh_jobsets(problem, params, scenario)
    results = scored(problem, params, scenario, chosen.knobs, jobsets)
    frame = pd.concat([done.jobsets for done in results.values()], ignore_index=True)
    best = Chosen(chosen.best, chosen.best_delay)
    agents = {name: row for name, row in params.judged.items() if name in results}
    found = compare(scenario, frame, best, agents, params.evaluation, params.seed)
    storage.write_table(FOLDER / scenario / "jobsets.parquet", frame, problem.tables.jobsets)
    storage.write_table(FOLDER / scenario / "comparison.csv", found.comparison, COMPARISON)
    bounded = [scenario] if BOUNDED in frame else []
    for line in words.headlines(found.objectives, found.comparison, params.evaluation.confidence, bounded):
        say(line)
    for line in means(frame):
        say(line)


def means(frame: pd.DataFrame) -> list[str]:
    """Return a table for each measure: the mean over jobsets of every policy by load, and over loads."""
    lines = []
    for measure in (name for name in (slowdown_column(frame), "mean_wait") if name in frame):
        table = frame.pivot_table(index="policy", columns="load", values=measure)
        table = table.assign(all=table.mean(axis=1)).sort_values("all", kind="stable").rename_axis(None, axis=1)
        lines += [f"{measure.replace('_', ' ')} by load:", *table.to_string(float_format="{:.4g}".format).splitlines()]
    return lines


def fresh_jobsets(problem: Problem, params: Params, scenario: str) -> Mapping[int, Sequence[object]]:
    """Return the confirming jobsets: drawn as test jobsets are, from a seed of their own."""
    with progress(f"draw jobsets of {scenario}, percent", 100, brief=True) as advance:
        drawn = problem.draw(params.model_copy(update={"seed": SEED}), scenario, advance).splits["test"]
    there = problem.scoring(params, scenario, None).read("test")
    if all(_alike(drawn[load], there[load]) for load in drawn):
        raise UserError(f"scenario '{scenario}': its jobsets are cut from a log, so that there are no others to draw")
    return drawn


def _alike(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether two lists of jobsets hold the same jobs; where all wait at the start, arrivals say nothing."""
    return all(
        np.array_equal(getattr(one, column), getattr(other, column))
        for one, other in zip(some, others, strict=True)
        for column in ("arrival", "duration")
    )


def scored(
    problem: Problem, params: Params, scenario: str, knobs: Mapping[str, float], jobsets: Mapping[int, Sequence[object]]
) -> dict[str, Results]:
    """Return what every policy of a scenario has on jobsets."""
    here = problem.scoring(params, scenario, None)
    with progress(f"confirm {scenario}, percent", 100) as advance:
        found = here.score(here.heuristics(knobs), jobsets=jobsets, on_progress=lambda share: advance(50 * share))
        for name in (name for name in params.agents_of(scenario) if name in params.judged):
            found |= _judged(problem, params, scenario, name, jobsets)
        advance(100)
    return found


def _judged(
    problem: Problem, params: Params, scenario: str, name: str, jobsets: Mapping[int, Sequence[object]]
) -> dict[str, Results]:
    """Return what every policy of a scenario has on jobsets."""
    """Return the results of an agent or an external policy; one that fails is named, and has none."""
    if name in params.agents:
        return problem.scoring(params, scenario, name).score(problem.learning.policies(params, name), jobsets=jobsets)
    here = problem.scoring(params, scenario, None)
    try:
        return here.score({name: known(params, name, here.scale)}, jobsets=jobsets)
    except PolicyError as error:
        say(f"policy {name}: {error}")
        return {}
