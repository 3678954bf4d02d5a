"""Learning on many machines: tasks, networks, validation and storage."""

from collections.abc import Callable
from functools import partial

import numpy as np

from pipeline.core import storage
from pipeline.core.config import MachinesAgent, MachinesCard, NoPretrain, Params
from pipeline.core.types import Policy, keys
from pipeline.learning.stored import must_match_params, weights_of
from pipeline.problems.machines.agents.networks import loading
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic
from pipeline.problems.machines.agents.networks.loading import PLAY
from pipeline.problems.machines.agents.training.task import Task
from pipeline.problems.machines.env.simulator.batch import costed
from pipeline.problems.machines.env.storage import machines_of, read_jobsets, read_park
from pipeline.problems.machines.env.workload.source import source
from pipeline.problems.parts import Learning, Part, both, no_extra_tables
from pipeline.simulation.rollout import play

MUST_MATCH = ("resources", "machines", "slots", "dispatch", "network")


def _task(params: Params, agent: str, part: Part) -> Task:
    row = params.agent(agent)
    scenario, folder = params.machines_scenario(row.scenario), storage.jobsets_folder(row.scenario)
    seed, park = params.seed if part.seed is None else part.seed, read_park(folder)
    # Runs with other seeds learn from other fresh jobsets; the jobsets of `generate` are the same for all.
    origin = source(params.model_copy(update={"seed": seed}), row.scenario, storage.scenario_log(row.scenario))
    train, validation = (read_jobsets(folder, split, park) for split in ("train", "validation"))
    return Task(
        begin=partial(costed, machines_of(scenario, park), row.objective),
        recipe=params.machines_recipe(agent),
        seed=seed,
        loads=scenario.loads if isinstance(part, NoPretrain) else part.loads,
        train=train,
        validation=validation,
        fresh=origin.fresh,
        objective=row.objective,
    )


def _card(params: Params, agent: str) -> MachinesCard:
    row = params.agent_of(MachinesAgent, agent)
    scenario, park = params.machines_scenario(row.scenario), read_park(storage.jobsets_folder(row.scenario))
    return MachinesCard(
        problem="machines",
        agent=agent,
        scenario=row.scenario,
        resources=park.resources,
        machines=len(park.capacity),
        slots=scenario.slots,
        dispatch=scenario.dispatch,
        unit=park.unit,
        stall=machines_of(scenario, park).stall,
        objective=row.objective,
        network=row.network,
        play=params.machines_recipe(agent).play,
    )


def _untrained(params: Params, agent: str, task: Task) -> ActorCritic:
    shape = loading.shape_of(_card(params, agent))
    return loading.build(params.agent_of(MachinesAgent, agent).network, shape, task.seed)


def _restored(params: Params, agent: str, which: str) -> loading.Loaded:
    """Return an agent's stored network.

    Raises:
        UserError: it is damaged, or params.yaml now has another problem or network than the one it was made for.
    """
    place, wanted = storage.model_folder(agent, which), _card(params, agent)
    model = storage.read_model(place, MachinesCard)
    must_match_params(place, model.card, wanted, MUST_MATCH)
    return loading.restore(model.card, model.weights)


def _validate(network: ActorCritic, task: Task) -> Callable[[], float]:
    """Return a function that computes the mean cost of a job on validation jobsets, averaged over loads."""

    def mean_cost() -> float:
        policy = PLAY[task.recipe.play](network)
        means = []
        for load in task.loads:
            jobsets = task.validation[load]
            simulator, number = task.begin(jobsets), np.arange(len(jobsets))
            play(simulator, policy, keys(task.seed, number, np.zeros_like(number)))
            counted = [len(simulator.machines.counted(len(jobs.arrival))) for jobs in jobsets]
            means.append(float(np.mean(-simulator.gained / counted)))
        return float(np.mean(means))

    return mean_cost


LEARNING: Learning[Policy, Task, ActorCritic] = Learning(
    task=_task,
    untrained=_untrained,
    stored=lambda params, agent, which: _restored(params, agent, which).network,
    policies=lambda params, agent: both(agent, lambda which: _restored(params, agent, which).policy),
    validate=_validate,
    model=lambda params, agent, network: storage.Model(_card(params, agent), weights_of(network)),
    examined=no_extra_tables,
)
