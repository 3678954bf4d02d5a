"""`evaluate`: score an agent, as pretrained and as finetuned, on the test jobsets of its scenario."""

from pathlib import Path

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.problems import problem_of
from pipeline.progress import progress
from pipeline.simulation.results import tables_of

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
    how, here = problem.learning, problem.scoring(params, scenario, agent)
    run.inputs(storage.jobsets_folder(scenario), *(storage.model_folder(agent, which) for which in STORED))
    test = here.read("test")
    policies = how.policies(params, agent)
    with progress(f"evaluate {agent} on {scenario}, percent", 100) as advance:
        results = here.score(policies, jobsets=test, on_progress=lambda share: advance(100 * share))
    for name, done in results.items():
        for what, curve in done.curves.items():
            run.parent_curve(f"{what}/{name}", curve)
    storage.discard(place)
    also = {**tables_of(results), **how.examined(params, agent)}
    jobs, jobsets = [done.jobs for done in results.values()], [done.jobsets for done in results.values()]
    storage.write_results(place, jobs, jobsets, problem.tables, also)
