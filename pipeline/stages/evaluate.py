"""`evaluate`: score an agent, pretrained and finetuned, on the test jobsets of its scenario."""

from functools import partial
from pathlib import Path

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.execution.executor import executor
from pipeline.problems import problem_of
from pipeline.progress import ShareCallback, no_progress, progress
from pipeline.simulation.results import Results, tables_of


def run(params: Params, agent: str) -> None:
    """Write reports/tables/agents/<agent>: the results of its networks."""
    scenario = params.agent(agent).scenario
    with tracking.stage("evaluate", agent, params) as run:
        score_agent(params, agent, scenario, storage.results_folder("agents", agent), run)


def score_agent(params: Params, agent: str, scenario: str, place: Path, run: tracking.StageRun) -> None:
    """Write the results of an agent's networks on the test jobsets of its own scenario or of a compatible one."""
    problem, title = problem_of(params, scenario), f"evaluate {agent} on {scenario}"
    models = [storage.model_folder(agent, which) for which in ("pretrained", "policy")]
    inputs = (storage.jobsets_folder(scenario), *models)
    run.inputs(*inputs)
    with executor(params.threads) as workers:
        if workers.serial:
            with progress(f"{title}, percent", 100) as advance:
                results = score(None, params, agent, scenario, lambda share: advance(100 * share))
        else:
            names = list(problem.learning.policies(params, agent))
            with progress(f"{title}, policies", len(names)) as advance:
                one = partial(score, params=params, agent=agent, scenario=scenario)
                found = workers.map(one, names, inputs, advance)
            results = {name: done for each in found for name, done in each.items()}
        for name, done in results.items():
            for kind, curve in done.curves.items():
                run.parent_curve(f"{kind}/{name}", curve)
        storage.discard(place)
        more = {**tables_of(results), **problem.learning.examined(params, agent)}
        jobs, jobsets = [done.jobs for done in results.values()], [done.jobsets for done in results.values()]
        storage.write_results(place, jobs, jobsets, problem.tables, more)


def score(
    name: str | None, params: Params, agent: str, scenario: str, on_progress: ShareCallback = no_progress
) -> dict[str, Results]:
    """Return the results of one of an agent's policies on a scenario's test jobsets, or of all (None)."""
    problem = problem_of(params, scenario)
    here = problem.scoring(params, scenario, agent)
    policies = problem.learning.policies(params, agent)
    chosen = policies if name is None else {name: policies[name]}
    return here.score(chosen, jobsets=here.read("test"), on_progress=on_progress)
