"""Learning in scenarios of user groups: the task, the value function, its validation and storage."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import DqnRecipe, GroupsCard, NoPretrain, Params, QNetworkConfig, Replay, WorthConfig
from pipeline.core.config.groups.learning import MUST_MATCH, GroupsAgent
from pipeline.core.types import FloatArray
from pipeline.learning.stored import must_match_params, weights_of
from pipeline.problems.groups.agents.networks import q_network
from pipeline.problems.groups.agents.networks.features import past, shape_of, states
from pipeline.problems.groups.agents.networks.q_network import ValueNetwork, Worth, controller, restore
from pipeline.problems.groups.agents.training.off_policy import off_policy
from pipeline.problems.groups.agents.training.task import Task
from pipeline.problems.groups.env.evaluation.controllers import own
from pipeline.problems.groups.env.evaluation.play import Expectation, Player, controlled
from pipeline.problems.groups.env.nouns import Observation
from pipeline.problems.groups.env.simulator.rewards import transitions
from pipeline.problems.groups.env.storage import read_jobsets
from pipeline.problems.groups.env.teachers import TEACHERS
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of, source
from pipeline.problems.parts import Learning, Part


def read_task(params: Params, agent: str, part: Part) -> Task:
    """Return an agent's task."""
    row = params.agent(agent)
    scenario, folder = params.groups_scenario(row.scenario), storage.jobsets_folder(row.scenario)
    seed = params.seed if part.seed is None else part.seed
    # Runs with other seeds use other fresh jobsets; the jobsets of `generate` are the same for all.
    origin = source(params.model_copy(update={"seed": seed}), row.scenario, storage.scenario_log(row.scenario))
    cluster = cluster_of(scenario)
    train, validation = (read_jobsets(folder, split, scenario.resources, cluster) for split in ("train", "validation"))
    return Task(
        cluster=cluster,
        configurations=configurations_of(scenario),
        objective=row.objective,
        recipe=params.groups_recipe(agent),
        generator=row.pretrain if isinstance(row.pretrain, Replay) else None,
        seed=seed,
        loads=scenario.loads if isinstance(part, NoPretrain) else part.loads,
        train=train,
        validation=validation,
        fresh=origin.fresh,
    )


def untrained(params: Params, agent: str, task: Task) -> ValueNetwork:
    """Return an agent's network with its seeded initial weights."""
    config = params.agent_of(GroupsAgent, agent).network
    if isinstance(config, WorthConfig):
        each = task.cluster.capacity / task.cluster.groups
        return Worth(shape_of(task.cluster), past(task.train, task.cluster), each)
    return q_network.build(config, task.cluster, past(task.train, task.cluster), task.seed)


def stored(params: Params, agent: str, which: str) -> ValueNetwork:
    """Return an agent's stored network.

    Raises:
        UserError: it is damaged, or does not fit the problem or network in params.yaml.
    """
    place, wanted = storage.model_folder(agent, which), _card(params, agent)
    model = storage.read_model(place, GroupsCard)
    must_match_params(place, model.card, wanted, (*MUST_MATCH, "network"))
    return restore(model.card, model.weights)


def policies(params: Params, agent: str) -> dict[str, Player]:
    """Return the scored policies of an agent: pretrained, finetuned, and finetuned without the knapsack."""
    pretrained, policy = (stored(params, agent, which) for which in ("pretrained", "policy"))
    made = {f"{agent}_pretrained": (pretrained, False), agent: (policy, False), f"{agent}_own": (policy, True)}
    return {name: _player(params, agent, network, separate) for name, (network, separate) in made.items()}


def validate(network: ValueNetwork, task: Task) -> Callable[[], float]:
    """Return a function that computes the mean cost of a job on validation jobsets, averaged over loads."""

    def mean_cost() -> float:
        control = controller(network, task.cluster, task.configurations)
        means = []
        for load in task.loads:
            jobsets = task.validation[load]
            cost, jobs = np.zeros(len(jobsets)), np.array([len(one.arrival) for one in jobsets])
            for transition in transitions(
                task.begin(jobsets), lambda rows, view: control(view, np.zeros(len(rows))), "zero"
            ):
                cost[transition.rows] += transition.cost.sum(axis=1)
            means.append(float(np.mean(cost / jobs)))
        return float(np.mean(means))

    return mean_cost


def model(params: Params, agent: str, network: ValueNetwork) -> storage.Model[GroupsCard]:
    """Return an agent's network for storage."""
    return storage.Model(_card(params, agent), weights_of(network))


def examined(params: Params, agent: str) -> dict[str, pd.DataFrame]:
    """Return off-policy estimates and true costs of an agent and some rules; no table if there is no log."""
    row = params.agent(agent)
    task = read_task(params, agent, row.finetune)
    if task.generator is None or not isinstance(row.network, QNetworkConfig):
        return {}
    controllers = {name: make(task.cluster, 0) for name, make in TEACHERS.items()}
    for title, which in {f"{agent}_pretrained": "pretrained", agent: "policy"}.items():
        controllers[title] = controller(stored(params, agent, which), task.cluster, task.configurations)
    held_out = [jobs for group in task.validation.values() for jobs in group]
    return {"off_policy": off_policy(task, row.network, task.generator, controllers, held_out)}


def _player(params: Params, agent: str, network: ValueNetwork, separate: bool) -> Player:
    row, recipe = params.agent(agent), params.groups_recipe(agent)
    scenario = params.groups_scenario(row.scenario)
    cluster, configurations = cluster_of(scenario), configurations_of(scenario)
    choose = {"choose": own} if separate else {}

    def expects(view: Observation) -> FloatArray:
        chosen = q_network.choice(network, states(view, cluster), configurations, cluster.capacity, **choose)
        return np.asarray(chosen.value * float(network.scale))

    act = controlled(controller(network, cluster, configurations, **choose))
    if not isinstance(recipe, DqnRecipe):  # its values rank configurations, but are not expected rewards
        return Player(act)
    return Player(act, Expectation(expects, row.objective, recipe.against, recipe.gamma))


def _card(params: Params, agent: str) -> GroupsCard:
    row, recipe = params.agent_of(GroupsAgent, agent), params.groups_recipe(agent)
    scenario = params.groups_scenario(row.scenario)
    return GroupsCard(
        problem="groups",
        agent=agent,
        scenario=row.scenario,
        resources=scenario.resources,
        groups=scenario.groups,
        queues=scenario.queues,
        orders=scenario.orders,
        levels=scenario.levels,
        interval=scenario.interval,
        objective=row.objective,
        against=recipe.against if isinstance(recipe, DqnRecipe) else None,
        gamma=recipe.gamma if isinstance(recipe, DqnRecipe) else None,
        network=row.network,
    )


LEARNING: Learning[Player, Task, ValueNetwork] = Learning(
    task=read_task,
    untrained=untrained,
    stored=stored,
    policies=policies,
    validate=validate,
    model=model,
    examined=examined,
)
