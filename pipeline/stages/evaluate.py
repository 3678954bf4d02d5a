"""`evaluate`: score an agent, as pretrained and as finetuned, on the test jobsets of its scenario."""

from functools import partial
from pathlib import Path

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.execution.executor import Executor, executor
from pipeline.problems import problem_of
from pipeline.progress import ShareCallback, no_progress, progress
from pipeline.simulation.results import Results, tables_of

STORED = ("pretrained", "policy")


def run(params: Params, agent: str) -> None:
    """Write reports/tables/agents/<agent>: the results of its networks."""
    scenario = params.agent(agent).scenario
    with tracking.stage("evaluate", agent, params) as run:
        score_agent(params, agent, scenario, storage.results_folder("agents", agent), run)


def score_agent(params: Params, agent: str, scenario: str, place: Path, run: tracking.StageRun) -> None:
    """Write the results of an agent's networks on a scenario's test jobsets.

    Args:
        params: all of params.yaml.
        agent: whose networks they are.
        scenario: its own, or another one that its networks can play.
        place: folder of the results.
        run: the record of the stage.
    """
    problem = problem_of(params, scenario)
    run.inputs(*_inputs(agent, scenario))
    with executor(params.threads) as workers:
        results = _scored(params, agent, scenario, workers)
        for name, done in results.items():
            for what, curve in done.curves.items():
                run.parent_curve(f"{what}/{name}", curve)
        storage.discard(place)
        also = {**tables_of(results), **problem.learning.examined(params, agent)}
        jobs, jobsets = [done.jobs for done in results.values()], [done.jobsets for done in results.values()]
        storage.write_results(place, jobs, jobsets, problem.tables, also)


def _inputs(agent: str, scenario: str) -> tuple[Path, ...]:
    return (storage.jobsets_folder(scenario), *(storage.model_folder(agent, which) for which in STORED))


def _scored(params: Params, agent: str, scenario: str, workers: Executor) -> dict[str, Results]:
    """Return the results of all policies: here all at once, else each by a worker."""
    title = f"evaluate {agent} on {scenario}"
    if workers.serial:
        with progress(f"{title}, percent", 100) as advance:
            return score(None, params, agent, scenario, lambda share: advance(100 * share))
    names = list(problem_of(params, scenario).learning.policies(params, agent))
    with progress(f"{title}, policies", len(names)) as advance:
        one = partial(score, params=params, agent=agent, scenario=scenario)
        found = workers.map(one, names, _inputs(agent, scenario), advance)
    return {name: done for each in found for name, done in each.items()}


def score(
    name: str | None, params: Params, agent: str, scenario: str, on_progress: ShareCallback = no_progress
) -> dict[str, Results]:
    """Return the results of one of an agent's policies on a scenario's test jobsets, or of all, by name."""
    problem = problem_of(params, scenario)
    here = problem.scoring(params, scenario, agent)
    policies = problem.learning.policies(params, agent)
    chosen = policies if name is None else {name: policies[name]}
    return here.score(chosen, jobsets=here.read("test"), on_progress=on_progress)
