"""`plan`: score a policy with look-ahead on the test jobsets of its scenario."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.problems import problem_of
from pipeline.progress import progress
from pipeline.simulation.results import tables_of


def run(params: Params, plan: str) -> None:
    """Write reports/tables/plans/<plan>: the results of the policy of that name."""
    row, place = params.plan(plan), storage.results_folder("plans", plan)
    with tracking.stage("plan", plan, params) as run:
        problem = problem_of(params, row.scenario)
        run.inputs(storage.jobsets_folder(row.scenario))
        here, policy = problem.scoring(params, row.scenario, None), problem.planning(params, plan)
        with progress(f"plan {plan} on {row.scenario}, percent", 100) as advance:
            results = here.score({plan: policy}, here.read("test"), on_progress=lambda share: advance(100 * share))
        done = results[plan]
        for kind, curve in done.curves.items():
            run.parent_curve(f"{kind}/{plan}", curve)
        storage.discard(place)
        storage.write_results(place, [done.jobs], [done.jobsets], problem.tables, tables_of(results))
