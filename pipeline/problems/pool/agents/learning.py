"""Learning on a pooled cluster: tasks, networks, validation, and storage."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pipeline.core import storage
from pipeline.core.config import NoPretrain, Params, PoolAgent, PoolCard
from pipeline.core.types import Policy
from pipeline.errors import UserError
from pipeline.learning.stored import device_of, weights_of
from pipeline.problems.parts import Learning, Part, both, no_extra_tables
from pipeline.problems.pool.agents.networks.network import PLAY, Scorer
from pipeline.problems.pool.agents.networks.networks import Loaded, PoolNetwork, build, card_of, must_match, restore
from pipeline.problems.pool.agents.networks.scores import Scores
from pipeline.problems.pool.agents.training.evolution import validate_scores
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.env.workload.source import source
from pipeline.simulation.results import mean_cost


def read_task(params: Params, agent: str, part: Part) -> Task:
    """Return the task of an agent in one of its two stages."""
    row = params.agent(agent)
    scenario, folder = params.pool_scenario(row.scenario), storage.jobsets_folder(row.scenario)
    seed = params.seed if part.seed is None else part.seed
    # Only fresh jobsets and streams depend on the seed of the training.
    origin = source(params, row.scenario, storage.LOG.resolve(), mix=getattr(part, "demands", None) or (), fresh=seed)
    read = partial(read_jobsets, folder, resources=scenario.resources, known_load=scenario.known_load)
    train, validation = read(split="train"), read(split="validation")
    return Task(
        cluster=Cluster.of(scenario),
        step_limit=scenario.step_limit,
        objective=row.objective,
        recipe=params.pool_recipe(agent),
        seed=seed,
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
        UserError: it is damaged, or params.yaml now has another cluster or network than the one it was made for.
    """
    place, row = storage.model_folder(agent, which), params.agent(agent)
    model = storage.read_model(place, PoolCard)
    must_match(model.card, params.pool_scenario(row.scenario))
    if model.card.network != row.network:
        raise UserError(
            f"{place}: network {model.card.network.model_dump()}; params.yaml: agents.{agent}.network has "
            f"{row.network.model_dump()}: run 'dvc repro' first"
        )
    return restore(model.card, model.weights, device_of(params.device))


def validate(network: Scorer[Any], task: Task) -> Callable[[], float]:
    """Return a function that computes a network's cost on the task's validation jobsets."""
    if isinstance(network, Scores):
        return validate_scores(network, task)
    jobsets = {load: task.validation[load] for load in task.loads}

    def cost() -> float:
        policy = PLAY[task.recipe.play](network, task.recipe.masked)
        results = score({"learner": policy}, jobsets, task.cluster, task.step_limit, task.seed, task.recipe.masked)
        return mean_cost(results["learner"], task.objective)

    return cost


LEARNING: Learning[Policy, Task, PoolNetwork] = Learning(
    task=read_task,
    untrained=lambda params, agent, task: build(
        params.agent_of(PoolAgent, agent).network, task.cluster, task.seed
    ).placed(device_of(params.device)),
    stored=lambda params, agent, which: read_network(params, agent, which).network,
    policies=lambda params, agent: both(agent, lambda which: read_network(params, agent, which).policy),
    validate=validate,
    model=lambda params, agent, network: storage.Model(card_of(params, agent), weights_of(network)),
    examined=no_extra_tables,
)
