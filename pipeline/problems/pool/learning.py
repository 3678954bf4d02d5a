"""What learning needs of a pooled cluster: the task, the network, how good it is, and how it is stored."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pipeline import storage
from pipeline.config import FinetuneConfig, NoPretrain, Params, PoolAgent, PoolCard, PretrainConfig, StreamWindows
from pipeline.core import Policy, keys
from pipeline.errors import UserError
from pipeline.learning.device import device_of
from pipeline.learning.stored import weights_of
from pipeline.problems.parts import Learning, both, no_extra_tables
from pipeline.problems.pool.evaluation.metrics import outcome
from pipeline.problems.pool.evaluation.play import score
from pipeline.problems.pool.networks.loading import Loaded, card_of, must_match, restore
from pipeline.problems.pool.networks.network import PLAY, Scorer
from pipeline.problems.pool.networks.networks import PoolNetwork, build
from pipeline.problems.pool.networks.scores import Scores
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.storage import read_jobsets
from pipeline.problems.pool.training.evolution import validate_scores
from pipeline.problems.pool.training.rolling import Roller
from pipeline.problems.pool.training.task import PATIENCE, Task
from pipeline.problems.pool.workload.source import source
from pipeline.simulation.results import mean_cost

PIECES = 16  # of each load
MEASURED = (0.3, 0.9)  # jobs that arrive in this part of a piece count: not its empty beginning, nor its end


def validate_sets(network: Sets, task: Task) -> Callable[[], float]:
    """Return what tells the geometric mean over loads of the mean slowdown on validation jobsets; less is better.

    Short runs and streams weigh the same. A geometric mean, for else one load of a stream would decide alone.
    """
    short = [task.validation[load] for load in task.loads]
    whole = (0.0, float("inf"))

    def cost() -> float:
        costs = [[slowdown(network, jobsets, task, task.cluster, task.step_limit, whole) for jobsets in short]]
        if isinstance(task.streams, StreamWindows):
            costs.append(_on_streams(network, task, task.streams))
        return float(np.exp(np.mean([np.log(kind).mean() for kind in costs])))

    return cost


def _on_streams(network: Sets, task: Task, config: StreamWindows) -> list[float]:
    steps = config.examined or config.latest + config.steps
    cluster = task.cluster._replace(slots=max(config.slots), arrivals_end=None)
    span = (MEASURED[0] * steps, MEASURED[1] * steps)
    pieces = [[task.stream("validation", load, k, steps) for k in range(PIECES)] for load in config.loads]
    return [slowdown(network, some, task, cluster, PATIENCE * steps, span) for some in pieces]


def slowdown(
    network: Sets, jobsets: Sequence[JobSet], task: Task, cluster: Cluster, limit: int, span: tuple[float, float]
) -> float:
    """Return the mean over jobsets of the mean slowdown of the jobs that arrive in a span of steps, played greedily.

    Raises:
        UserError: there are no such jobs.
    """
    jobs = batch(jobsets)
    simulator = Batched(jobs, cluster, limit, skip_forced=True)
    number = np.arange(jobs.episodes)
    Roller(simulator, network.compiled(), keys(task.seed, number, np.zeros_like(number)), greedy=True).play()
    counted = (jobs.arrival >= span[0]) & (jobs.arrival < span[1])
    each = outcome(jobs, simulator.schedule(), limit).slowdown
    total, count = (np.bincount(jobs.episode, weights=w, minlength=jobs.episodes) for w in (each * counted, counted))
    if not count.any():
        raise UserError(f"no validation job arrives in steps {span[0]:g} to {span[1]:g}: take longer streams")
    return float((total[count > 0] / count[count > 0]).mean())


def read_task(params: Params, agent: str, part: PretrainConfig | FinetuneConfig) -> Task:
    """Return what an agent has to learn in one of its two stages."""
    row = params.agent(agent)
    scenario, folder = params.pool_scenario(row.scenario), storage.jobsets_folder(row.scenario)
    seed = params.seed if part.seed is None else part.seed
    # Trainings of other seeds learn from other fresh jobsets and streams; all else is the same for all.
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
        UserError: it is damaged, or was made for another cluster or network than params.yaml has now.
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
    """Return what tells how good a network is on the task's validation jobsets; less is better."""
    if isinstance(network, Sets):
        return validate_sets(network, task)
    if isinstance(network, Scores):
        return validate_scores(network, task)
    jobsets = {load: task.validation[load] for load in task.loads}

    def cost() -> float:
        policy = PLAY[task.recipe.play](network, task.recipe.masked)
        results = score({"learner": policy}, jobsets, task.cluster, task.step_limit, task.seed, task.recipe.masked)
        return mean_cost(results["learner"], task.objective)

    return cost


def _untrained(params: Params, agent: str, task: Task) -> PoolNetwork:
    config = params.agent_of(PoolAgent, agent).network
    network: PoolNetwork = build(config, task.cluster, task.seed).placed(device_of(params.device))
    return network


def _model(params: Params, agent: str, network: PoolNetwork) -> storage.Model[PoolCard]:
    return storage.Model(card_of(params, agent), weights_of(network))


LEARNING: Learning[Policy, Task, PoolNetwork] = Learning(
    task=read_task,
    untrained=_untrained,
    stored=lambda params, agent, which: read_network(params, agent, which).network,
    policies=lambda params, agent: both(agent, lambda which: read_network(params, agent, which).policy),
    validate=validate,
    model=_model,
    examined=no_extra_tables,
)
