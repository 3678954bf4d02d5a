"""`policy`: score an external policy on the test jobsets of its scenario."""

import numpy as np

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import keys
from pipeline.external.guard import Guard, PolicyError, located
from pipeline.external.loading import external
from pipeline.problems import problem_of
from pipeline.problems.parts import JobSets
from pipeline.progress import progress, say
from pipeline.simulation.results import MOST_JOBSETS, tables_of


def run(params: Params, name: str) -> None:
    """Write the results of an external policy or, if it failed, one line with the reason.

    A failure is an output too, so that the other policies are still compared. Stage `passed` reports it afterwards.
    """
    row, place = params.policy(name), storage.results_folder("policies", name)
    with tracking.stage("policy", name, params) as run:
        problem = problem_of(params, row.scenario)
        run.inputs(storage.jobsets_folder(row.scenario), storage.policy_folder(name))
        here = problem.scoring(params, row.scenario, None)
        jobsets = here.read("test")
        storage.discard(place)
        try:
            policy = external_policy(params, name, here.scale)
            with progress(f"policy {name} on {row.scenario}, percent", 100) as advance:
                results = here.score({name: policy}, jobsets, on_progress=lambda share: advance(100 * share))
        except PolicyError as error:
            line = f"policy {name}: {error.word}: {_place_of(params, error, jobsets)}{error.what}"
            storage.write_failure(place, line)
            say(line)
            return
        done = results[name]
        for kind, curve in done.curves.items():
            run.parent_curve(f"{kind}/{name}", curve)
        storage.write_results(place, [done.jobs], [done.jobsets], problem.tables, tables_of(results))


def external_policy(params: Params, name: str, scale: float | None) -> Guard:
    """Return the policy of a row, from the file that is linked into data/policies."""
    row, file = params.policy(name), storage.policy_folder(name) / "policy"
    return external(row.policy, params.scenario(row.scenario), scale, row.limit_ms, file)


def _place_of(params: Params, error: PolicyError, jobsets: JobSets[object]) -> str:
    """Return the jobset and the decision of an error, if it has any."""
    if error.given < 0:
        return ""
    of = [(load, number) for load, group in jobsets.items() for number in range(len(group))]
    episodes = np.array([load * MOST_JOBSETS + number for load, number in of])
    found = located(error.given, keys(params.seed, episodes, np.zeros_like(episodes)))
    return f"load {of[found[0]][0]}, jobset {of[found[0]][1]}, decision {found[1]}: " if found else ""
