"""`plan`: score a policy that looks ahead on the test jobsets of its scenario."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.problems import problem_of
from pipeline.progress import progress
from pipeline.simulation.results import tables_of


def run(params: Params, plan: str) -> None:
    """Write reports/tables/plans/<plan>: what became of the test jobsets under the policy of that name."""
    row, place = params.plan(plan), storage.results_folder("plans", plan)
    with tracking.stage("plan", plan, params) as run:
        problem = problem_of(params, row.scenario)
        run.inputs(storage.jobsets_folder(row.scenario))
        here, policy = problem.scoring(params, row.scenario, None), problem.planning(params, plan)
        with progress(f"plan {plan} on {row.scenario}, percent", 100) as advance:
            results = here.score({plan: policy}, here.read("test"), on_progress=lambda share: advance(100 * share))
        for what, curve in results[plan].curves.items():
            run.parent_curve(f"{what}/{plan}", curve)
        storage.discard(place)
        jobs, jobsets = [results[plan].jobs], [results[plan].jobsets]
        storage.write_results(place, jobs, jobsets, problem.tables, tables_of(results))
