"""`evaluate`: score an agent, as pretrained and as finetuned, on the test jobsets of its scenario."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.core import Cluster
from pipeline.evaluation.play import score
from pipeline.progress import progress
from pipeline.stages.reading import read_network

STAGES = {"pretrained": "{agent}_pretrained", "policy": "{agent}"}  # stored network: policy's name in the tables


def run(params: Params, agent: str) -> None:
    """Write reports/tables/agents/<agent>: the results of its networks."""
    row = params.agent(agent)
    scenario, folder = params.scenario(row.scenario), storage.jobsets_folder(row.scenario)
    masked = params.recipe(agent).masked
    with tracking.stage("evaluate", agent, params) as run:
        run.inputs(folder, *(storage.model_folder(agent, which) for which in STAGES))
        test = storage.read_jobsets(folder, "test", scenario.resources)
        policies = {
            title.format(agent=agent): read_network(params, agent, which).policy for which, title in STAGES.items()
        }
        with progress(f"evaluate {agent}, percent", 100) as advance:
            results = score(
                policies,
                test,
                Cluster.of(scenario),
                scenario.step_limit,
                params.seed,
                masked,
                lambda share: advance(100 * share),
            )
        for name, done in results.items():
            run.parent_curve(f"slowdown/{name}", done.by_load)
        place = storage.results_folder("agents", agent)
        storage.discard(place)
        tables = list(results.values())
        storage.write_results(place, [done.jobs for done in tables], [done.jobsets for done in tables])
