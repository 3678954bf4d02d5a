"""`policy`: score a policy that was made elsewhere on the test jobsets of its scenario."""

import numpy as np

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.core import keys
from pipeline.external.guard import Guard, PolicyError, located
from pipeline.external.loading import external
from pipeline.problems import problem_of
from pipeline.problems.parts import JobSets
from pipeline.progress import progress, say
from pipeline.simulation.results import MOST_JOBSETS, tables_of


def run(params: Params, name: str) -> None:
    """Write reports/tables/policies/<name>: its results or, where it failed, one line that says why.

    A failure is an output too, so that all others are compared; the stage `passed` reports it after them.
    """
    row, place = params.policy(name), storage.results_folder("policies", name)
    with tracking.stage("policy", name, params) as run:
        problem = problem_of(params, row.scenario)
        run.inputs(storage.jobsets_folder(row.scenario), storage.policy_folder(name))
        here = problem.scoring(params, row.scenario, None)
        jobsets = here.read("test")
        storage.discard(place)
        try:
            policy = known(params, name, here.scale)
            with progress(f"policy {name} on {row.scenario}, percent", 100) as advance:
                found = here.score({name: policy}, jobsets, on_progress=lambda share: advance(100 * share))
        except PolicyError as error:
            line = f"policy {name}: {error.word}: {_where(params, error, jobsets)}{error.what}"
            storage.write_failure(place, line)
            say(line)
            return
        for what, curve in found[name].curves.items():
            run.parent_curve(f"{what}/{name}", curve)
        tables = found[name].jobs, found[name].jobsets
        storage.write_results(place, [tables[0]], [tables[1]], problem.tables, tables_of(found))


def known(params: Params, name: str, scale: float | None) -> Guard:
    """Return the policy of a row, from the file that is linked into data/policies."""
    row, file = params.policy(name), storage.policy_folder(name) / "policy"
    return external(row.policy, params.scenario(row.scenario), scale, row.limit_ms, file)


def _where(params: Params, error: PolicyError, jobsets: JobSets[object]) -> str:
    """Return which decision of which jobset an error is about."""
    of = [(load, number) for load, group in jobsets.items() for number in range(len(group))]
    episodes = np.array([load * MOST_JOBSETS + number for load, number in of])
    found = located(error.given, keys(params.seed, episodes, np.zeros_like(episodes))) if error.given >= 0 else None
    return f"load {of[found[0]][0]}, jobset {of[found[0]][1]}, decision {found[1]}: " if found else ""
