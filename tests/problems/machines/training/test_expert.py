"""Expert iteration of many machines: what is alike, what a retried action costs, gains by hand, and that it learns."""

import numpy as np
import pytest
import torch
from machine_learning import (
    RECIPES,
    distance,
    jobs_at_once,
    longest_first,
    solvable_task,
    some_jobs,
    tiny_task,
    untrained,
)

from pipeline.config import MachinesExpert, Ppo
from pipeline.core import keys
from pipeline.learning.doubt import doubt
from pipeline.problems.machines.networks.acting import forward
from pipeline.problems.machines.networks.features import DURATION, PLACE, Features, features
from pipeline.problems.machines.training.expert import _learn, expert, gains
from pipeline.problems.machines.training.ppo import ppo
from pipeline.problems.machines.training.retrying import Retried, _cost, alike, retried
from pipeline.problems.machines.training.task import Played, Task, record

BUDGET = {"recipe": "", "loads": (100,), "validate_every": 1}
TRYING = {"name": "expert", "episodes": 3, "every": 1, "unsure": 0.5, "actions": 4, **BUDGET}


def recorded(task: Task, count: int = 3) -> tuple[list[object], Played]:
    jobsets = [some_jobs(100, k) for k in range(count)]
    return jobsets, record(untrained(), task.begin(jobsets), keys(5, np.arange(count), np.zeros(count, dtype=np.int64)))


def nothing(count: int) -> Features:
    """Observations of two jobs and one machine, of which only the number matters."""
    zeros = [np.zeros((count, *size), dtype=np.float32) for size in ((2, 14), (1, 6), (2, 1, 5), (8,))]
    return Features(*zeros, np.ones((count, 3), dtype=bool))


def worked(cost: list[list[float]], chance: list[list[float]], weight: list[float]) -> Retried:
    table = np.array(chance)
    return Retried(nothing(len(cost)), table > 0, table, np.array(cost), np.array(weight))


# What is tried


def seen(jobs: list[float], machines: list[float], pair: np.ndarray, may: list[bool]) -> Features:
    """One observation in which a job and a machine have a number each, and every job its own slot."""
    job, machine = np.zeros((1, len(jobs), 14), dtype=np.float32), np.zeros((1, len(machines), 6), dtype=np.float32)
    job[0, :, DURATION], job[0, :, PLACE], machine[0, :, 0] = jobs, np.arange(len(jobs)), machines
    return Features(job, machine, pair.astype(np.float32), np.zeros((1, 8), dtype=np.float32), np.array([may]))


def test_equal_machines_and_equal_jobs_are_tried_once() -> None:
    """Jobs 0 and 2 are equal, and so are machines 0 and 1; machine 2 is another, and job 1 does not fit anywhere."""
    may = [True, True, True, False, False, False, True, True, True, True]
    found = alike(seen([1.0, 2.0, 1.0], [5.0, 5.0, 6.0], np.zeros((1, 3, 3, 5)), may))
    assert found.tolist() == [[0, 0, 2, 3, 4, 5, 0, 0, 2, 9]]


def test_a_pair_that_looks_different_is_another_action() -> None:
    pair = np.zeros((1, 1, 2, 5))
    pair[0, 0, 1, 0] = 1.0
    assert alike(seen([1.0], [5.0, 5.0], pair, [True] * 3)).tolist() == [[0, 1, 2]]


def test_where_nothing_is_in_doubt_nothing_is_tried() -> None:
    task, network = solvable_task(RECIPES["ppo"]), longest_first()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.mul_(1e4 if "void" not in name else 1.0)  # sure of everything
    jobsets = [jobs_at_once(100, 1)]
    played = record(network, task.begin(jobsets), keys(1, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)))
    assert retried(network, task, jobsets, played, 1.0, 0.5, 4, np.full(len(played.action), 1e-3)) is None


# What it costs


def test_a_retried_action_costs_what_the_episode_played_by_hand_does() -> None:
    """By hand: the same simulator, one episode alone, asked move by move."""
    task, network = tiny_task(RECIPES["ppo"]), untrained()
    jobsets, played = recorded(task)
    found = retried(network, task, jobsets, played, 1.0, 1e-9, 4, np.full(len(played.action), 0.5))
    assert found is not None
    assert len(found.cost) > 20
    rows = np.flatnonzero(doubt_of(network, played) > 0)
    for place, d in list(enumerate(rows))[::7]:
        for action in np.flatnonzero(found.tried[place]):
            expected = by_hand(task, network, jobsets, played, int(d), int(action))
            assert found.cost[place, action] == pytest.approx(expected, rel=1e-9)


def doubt_of(network: object, played: Played) -> np.ndarray:
    logits = np.where(played.observed.may, forward(network, played.observed).astype(float), -np.inf)
    chance = np.exp(logits - logits.max(axis=1, keepdims=True))
    return doubt(chance / chance.sum(axis=1, keepdims=True), alike(played.observed))


def by_hand(task: Task, network: object, jobsets: list[object], played: Played, d: int, action: int) -> float:
    episode, turn = played.episode[d], played.turn[d]
    before = {int(played.turn[k]): int(played.action[k]) for k in np.flatnonzero(played.episode == episode)}
    one, number = task.begin([jobsets[episode]]), 0
    while len(one.rows):
        observed = features(one.observe(one.rows), network.shape)
        logits = np.where(observed.may, forward(network, observed), -np.inf)
        move = before[number] if number < turn else action if number == turn else int(logits[0].argmax())
        one.step(one.rows, np.array([move]))
        number += 1
    return float(one.cost[0])


def test_recorded_play_that_is_greedy_costs_what_it_did() -> None:
    """Retrying the last decision of an episode changes nothing behind it, for there is nothing."""
    task, network = tiny_task(RECIPES["ppo"]), untrained()
    jobsets, played = recorded(task)
    last = np.array([np.flatnonzero(played.episode == e)[-1] for e in range(len(jobsets))])
    assert _cost(network, task, jobsets, played, last, played.action[last]) == pytest.approx(played.cost)


# Gains


def test_a_gain_is_a_share_of_what_the_episode_costs_in_units_of_the_deviation() -> None:
    found = worked([[4.0, 8.0, 0.0], [50.0, 30.0, 0.0]], [[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]], [1.0, 3.0])
    share = np.array([[0.2, -0.6, 0.0], [-0.25, 0.25, 0.0]])  # of 5 and of 40
    square = (0.75 * 0.04 + 0.25 * 0.36 + 3 * 0.0625) / 4
    assert gains(found) == pytest.approx(share / np.sqrt(square))


def test_what_costs_the_same_teaches_nothing() -> None:
    assert gains(worked([[3.0, 3.0, 0.0]], [[0.6, 0.4, 0.0]], [1.0])).tolist() == [[0.0, 0.0, 0.0]]


def test_the_gradient_is_that_of_the_expected_gain_among_what_was_tried() -> None:
    network, plain = untrained(), RECIPES["ppo"].model_copy(update={"clip": None, "entropy": 0.3})
    task = tiny_task(plain)
    jobsets, played = recorded(task)
    found = retried(network, task, jobsets, played, 1.0, 0.5, 2, np.full(len(played.action), 0.2))
    assert found is not None
    gain, rows = gains(found), np.arange(3)
    still = torch.optim.SGD(network.parameters(), lr=1e-30)
    _learn(network, still, found, gain, rows, plain, 1)
    own = {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}
    network.zero_grad()
    loss = torch.zeros(())
    for d in rows:
        some = np.flatnonzero(found.tried[d])
        logits, _ = network(inputs_of(found.observed.take(np.array([d]))))
        chances = torch.softmax(logits[0, some].double(), dim=0)
        share = found.weight[d] / found.weight[rows].sum()
        spread = -(chances * chances.log()).sum()
        loss = loss - share * ((chances * torch.from_numpy(gain[d, some])).sum() + 0.3 * spread)
    loss.backward()
    for name, weight in network.named_parameters():
        if weight.grad is not None and weight.grad.any():
            torch.testing.assert_close(own[name], weight.grad, rtol=1e-3, atol=1e-6)
    assert len(own) > 4


def inputs_of(observed: Features) -> object:
    from pipeline.problems.machines.networks.actor_critic import Inputs

    return Inputs(observed)


# Learning


def test_the_worst_order_is_unlearned_for_the_best_there_is() -> None:
    """Random play is 142 % off, this start 286 %."""
    network, config = longest_first(), MachinesExpert(updates=25, jobsets=6, begins=0, **TRYING)
    assert len(list(expert(network, solvable_task(RECIPES["ppo"]), config))) == 25
    assert distance(network) < 0.02


def test_updates_at_first_are_those_of_ppo() -> None:
    mine, its = untrained(), untrained()
    config = MachinesExpert(updates=3, jobsets=2, begins=3, **TRYING)
    list(expert(mine, tiny_task(RECIPES["ppo"]), config))
    list(ppo(its, tiny_task(RECIPES["ppo"]), Ppo(name="ppo", updates=3, jobsets=2, episodes=3, **BUDGET)))
    assert [weight.tolist() for weight in mine.parameters()] == [weight.tolist() for weight in its.parameters()]


def test_a_load_is_not_learned_by_how_much_its_jobs_cost() -> None:
    """Jobs that take a hundred times as long cost the same in slowdowns, and a gain is a share of them."""
    found = worked([[4.0, 8.0], [400.0, 800.0]], [[0.5, 0.5], [0.5, 0.5]], [1.0, 1.0])
    gain = gains(found)
    assert gain[0].tolist() == gain[1].tolist()
