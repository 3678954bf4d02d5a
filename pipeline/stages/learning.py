"""What learning needs of a scenario's dynamics: the problem, the network, its judge, and how it is stored.

A table over dynamics, so that the stages themselves do not ask which one they have.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import EventCard, FinetuneConfig, NoPretrain, Params, PretrainConfig
from pipeline.core import Policy, keys
from pipeline.errors import UserError
from pipeline.policies import event_loading, loading
from pipeline.policies.actor_critic import ActorCritic
from pipeline.policies.device import device_of
from pipeline.policies.event_acting import EVENT_PLAY
from pipeline.policies.networks import build
from pipeline.simulator.rollout import play
from pipeline.stages import group_learning, reading
from pipeline.training.algorithms import ALGORITHMS
from pipeline.training.event_algorithms import EVENT_ALGORITHMS
from pipeline.training.event_task import EventTask
from pipeline.training.group_algorithms import GROUP_ALGORITHMS
from pipeline.workload.sites import machines_of
from pipeline.workload.streams import stream

SCORED = {"pretrained": "{agent}_pretrained", "policy": "{agent}"}  # stored network: policy's name in the tables
Part = PretrainConfig | FinetuneConfig


class Learning(NamedTuple):
    """How agents of one dynamics learn."""

    task: Callable[[Params, str, Part], Any]  # (params, agent, part) -> the problem
    untrained: Callable[[Params, str, Any], Any]  # (params, agent, task) -> a network
    stored: Callable[[Params, str, str], Any]  # (params, agent, which) -> a stored network
    policies: Callable[[Params, str], Mapping[str, Any]]  # (params, agent) -> what is scored, by its name in the tables
    judge: Callable[[Any, Any], Callable[[], float]]  # (network, task) -> how good it is; less is better
    model: Callable[[Params, str, Any], storage.Model[Any]]  # (params, agent, network) -> what to store
    algorithms: Mapping[str, Callable[..., Any]]
    examined: Callable[[Params, str], Mapping[str, pd.DataFrame]] = lambda params, agent: {}  # more tables, by name


def learning(params: Params, agent: str) -> Learning:
    """Return how an agent learns."""
    return LEARNING[params.any_scenario(params.agent(agent).scenario).dynamics]


def _untrained(params: Params, agent: str, task: Any) -> Any:
    return build(params.agent(agent).network, task.cluster, task.seed).placed(device_of(params.device))


def _model(params: Params, agent: str, network: Any) -> storage.Model[Any]:
    return storage.Model(loading.card_of(params, agent), loading.weights_of(network))


def _event_task(params: Params, agent: str, part: Part) -> EventTask:
    row = params.agent(agent)
    scenario, folder = params.event_scenario(row.scenario), storage.jobsets_folder(row.scenario)
    origin, site = stream(params, row.scenario, storage.scenario_log(row.scenario)), storage.read_site(folder)
    train, validation = (storage.read_event_jobsets(folder, split, site) for split in ("train", "validation"))
    return EventTask(
        machines=machines_of(scenario, site),
        objective=row.objective,
        recipe=params.event_recipe(agent),
        seed=params.seed if part.seed is None else part.seed,
        loads=origin.loads(scenario.loads if isinstance(part, NoPretrain) else part.loads),
        train=train,
        validation=validation,
        fresh=origin.fresh,
    )


def _event_card(params: Params, agent: str) -> EventCard:
    row = params.agent(agent)
    scenario, site = params.event_scenario(row.scenario), storage.read_site(storage.jobsets_folder(row.scenario))
    return EventCard(
        dynamics="events",
        agent=agent,
        scenario=row.scenario,
        resources=site.resources,
        machines=len(site.capacity),
        slots=scenario.slots,
        dispatch=scenario.dispatch,
        unit=site.unit,
        objective=row.objective,
        network=row.network,
        play=params.event_recipe(agent).play,
    )


def _event_untrained(params: Params, agent: str, task: EventTask) -> ActorCritic:
    shape = event_loading.shape_of(_event_card(params, agent))
    return event_loading.build(params.agent(agent).network, shape, task.seed)


def _event_stored(params: Params, agent: str, which: str) -> ActorCritic:
    return _restored(params, agent, which).network


def _restored(params: Params, agent: str, which: str) -> event_loading.EventLoaded:
    """Return an agent's stored network.

    Raises:
        UserError: it is damaged, or was made for another problem or network than params.yaml has now.
    """
    place, wanted = storage.model_folder(agent, which), _event_card(params, agent)
    model = storage.read_event_model(place)
    for name in ("resources", "machines", "slots", "dispatch", "network"):
        found, asked = getattr(model.card, name), getattr(wanted, name)
        if found != asked:
            raise UserError(f"{place}: {name} {found}; params.yaml has {asked} now: run 'dvc repro' first")
    return event_loading.restore(model.card, model.weights)


def _event_judge(network: ActorCritic, task: EventTask) -> Callable[[], float]:
    """Return what tells the mean over loads of the mean cost of a job on validation jobsets."""

    def judged() -> float:
        policy = EVENT_PLAY[task.recipe.play](network)
        means = []
        for load in task.loads:
            jobsets = task.validation[load]
            simulator, number = task.begin(jobsets), np.arange(len(jobsets))
            play(simulator, policy, keys(task.seed, number, np.zeros_like(number)))
            means.append(float(np.mean(simulator.cost / [len(jobs.arrival) for jobs in jobsets])))
        return float(np.mean(means))

    return judged


def _event_model(params: Params, agent: str, network: ActorCritic) -> storage.Model[Any]:
    return storage.Model(_event_card(params, agent), event_loading.weights_of(network))


def _both(params: Params, agent: str, read: Callable[[Params, str, str], Any]) -> dict[str, Policy]:
    """Return an agent's policies, as pretrained and as finetuned."""
    return {title.format(agent=agent): read(params, agent, which).policy for which, title in SCORED.items()}


LEARNING = {
    "steps": Learning(
        task=reading.read_task,
        untrained=_untrained,
        stored=lambda params, agent, which: reading.read_network(params, agent, which).network,
        policies=lambda params, agent: _both(params, agent, reading.read_network),
        judge=reading.judge_of,
        model=_model,
        algorithms=ALGORITHMS,
    ),
    "events": Learning(
        task=_event_task,
        untrained=_event_untrained,
        stored=_event_stored,
        policies=lambda params, agent: _both(params, agent, _restored),
        judge=_event_judge,
        model=_event_model,
        algorithms=EVENT_ALGORITHMS,
    ),
    "groups": Learning(
        task=group_learning.group_task,
        untrained=group_learning.untrained,
        stored=group_learning.stored,
        policies=group_learning.players,
        judge=group_learning.judge,
        model=group_learning.model,
        algorithms=GROUP_ALGORITHMS,
        examined=group_learning.examined,
    ),
}
