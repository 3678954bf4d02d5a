"""What more than one stage reads: the task of an agent, and its stored networks."""

from collections.abc import Callable
from typing import Any

from pipeline import storage
from pipeline.config import FinetuneConfig, NoPretrain, Params, PretrainConfig
from pipeline.core import Cluster
from pipeline.errors import UserError
from pipeline.evaluation.play import judge, score
from pipeline.policies.acting import PLAY
from pipeline.policies.device import device_of
from pipeline.policies.loading import Loaded, must_match, restore
from pipeline.policies.network import Scorer
from pipeline.policies.sets import Sets
from pipeline.training.judging import judge_of_sets
from pipeline.training.task import Task
from pipeline.workload.source import source


def read_task(params: Params, agent: str, part: PretrainConfig | FinetuneConfig) -> Task:
    """Return what an agent has to learn in one of its two stages."""
    row = params.agent(agent)
    scenario, folder = params.scenario(row.scenario), storage.jobsets_folder(row.scenario)
    origin = source(params, row.scenario, storage.LOG.resolve(), mix=getattr(part, "demands", None) or ())
    train, validation = (storage.read_jobsets(folder, split, scenario.resources) for split in ("train", "validation"))
    return Task(
        cluster=Cluster.of(scenario),
        step_limit=scenario.step_limit,
        objective=row.objective,
        recipe=params.recipe(agent),
        seed=params.seed if part.seed is None else part.seed,
        loads=origin.loads(scenario.loads if isinstance(part, NoPretrain) else part.loads),
        train=train,
        validation=validation,
        fresh=origin.fresh,
        stream=origin.piece,
        streams=getattr(part, "streams", None),
    )


def read_network(params: Params, agent: str, which: str) -> Loaded:
    """Return an agent's stored network: `pretrained` or `policy`.

    Raises:
        UserError: it is damaged, or was made for another cluster or network than params.yaml has now.
    """
    place, row = storage.model_folder(agent, which), params.agent(agent)
    model = storage.read_model(place)
    must_match(model.card, params.scenario(row.scenario))
    if model.card.network != row.network:
        raise UserError(
            f"{place}: network {model.card.network.model_dump()}; params.yaml: agents.{agent}.network has "
            f"{row.network.model_dump()}: run 'dvc repro' first"
        )
    return restore(model.card, model.weights, device_of(params.device))


def judge_of(network: Scorer[Any], task: Task) -> Callable[[], float]:
    """Return what tells how good a network is on the task's validation jobsets; less is better."""
    if isinstance(network, Sets):
        return judge_of_sets(network, task)
    jobsets = {load: task.validation[load] for load in task.loads}

    def judged() -> float:
        policy = PLAY[task.recipe.play](network, task.recipe.masked)
        results = score({"learner": policy}, jobsets, task.cluster, task.step_limit, task.seed, task.recipe.masked)
        return judge(results["learner"], task.objective)

    return judged
