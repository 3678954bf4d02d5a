"""`evaluate`: score an agent, as pretrained and as finetuned, on the test jobsets of its scenario."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.evaluation.play import tables_of
from pipeline.progress import progress
from pipeline.stages.learning import learning
from pipeline.stages.scoring import scoring

STORED = ("pretrained", "policy")


def run(params: Params, agent: str) -> None:
    """Write reports/tables/agents/<agent>: the results of its networks."""
    scenario, how = params.agent(agent).scenario, learning(params, agent)
    with tracking.stage("evaluate", agent, params) as run:
        run.inputs(storage.jobsets_folder(scenario), *(storage.model_folder(agent, which) for which in STORED))
        here = scoring(params, scenario, agent)
        test = here.read("test")
        policies = how.policies(params, agent)
        with progress(f"evaluate {agent}, percent", 100) as advance:
            results = here.score(policies, jobsets=test, heard=lambda share: advance(100 * share))
        for name, done in results.items():
            for what, curve in done.curves.items():
                run.parent_curve(f"{what}/{name}", curve)
        place = storage.results_folder("agents", agent)
        storage.discard(place)
        also = {**tables_of(results), **how.examined(params, agent)}
        jobs, jobsets = [done.jobs for done in results.values()], [done.jobsets for done in results.values()]
        storage.write_results(place, jobs, jobsets, params.any_scenario(scenario).dynamics, also)
