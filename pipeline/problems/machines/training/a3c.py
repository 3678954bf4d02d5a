"""Asynchronous advantage actor-critic (Deepk8s section 4.5.1, equations 2 and 3; Mnih et al. 2016).

Workers are processes. Each takes the shared weights as they are, plays some episodes, and sends the gradient of
(R - V)^2 and of -log pi(a | s) (R - V) - beta H; the learner applies gradients in the order in which they come, so that
a gradient may be of weights some updates old: that is the asynchrony. With several workers results therefore differ
from run to run. With one worker there is no process, and the same bytes come every time.

Departures: processes, not threads; the optimizer's state is the learner's alone; costs are in units of the first
returns' standard deviation; R is what a trace makes of a whole episode where Mnih et al. stop after a few steps. With
`trace: 1` it is the return, which says mostly how many jobs are still to come: no observation tells that, so the critic
cannot take it away (docs/results/deepk8s.md has it measured).
"""

import queue
from collections.abc import Iterator, Sequence
from multiprocessing.queues import Queue
from typing import NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp

from pipeline.config import A3c, A3cRecipe
from pipeline.core import FloatArray, KeyArray, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.training.task import (
    MOST_JOBSETS,
    Task,
    by_critic,
    log_chances,
    optimizer_for,
    record,
    set_rate,
    set_scale,
    take_step,
)

LOOK_EVERY_S = 1.0  # whether all workers still live


Asked = tuple[int, Sequence[Jobs]]  # number of the update, and its jobsets


class Sent(NamedTuple):
    """What a worker found out."""

    gradient: list[FloatArray]  # of each weight
    metrics: dict[str, float]


def a3c(network: ActorCritic, task: Task, config: A3c, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by the play of several workers, one gradient an update.

    Args:
        network: changed in place.
        task: what is learned.
        config: how many workers, and how much.
        memory: what survives a kill.
    """
    memory = memory or Memory()
    recipe = task.recipe_for(A3cRecipe)
    optimizer = optimizer_for(network, recipe)
    memory.keep(optimizer=optimizer)
    still = task._replace(train={}, validation={}, fresh=_nothing)  # what a worker needs of it
    numbers = range(memory.done + 1, config.updates + 1)
    work = [(number, config.jobsets) for number in numbers]
    if config.workers == 1 or not work:
        found = (_gradient(network, still, recipe, number, task.draw(number, count)) for number, count in work)
        yield from _applied(network, optimizer, recipe, numbers, found)
        return
    if not float(network.scale):
        number, jobsets = work[0][0], task.draw(*work[0])
        set_scale(network, record(network, still.begin(jobsets), _keys(still, number, jobsets)).cost)
    with _Workers(network, still, recipe, config.workers) as workers:
        yield from _applied(network, optimizer, recipe, numbers, workers.gradients(task, work))


def _nothing(load: int, number: int) -> Jobs:
    raise TypeError("workers draw no jobsets; they are sent to them")


def _applied(
    network: ActorCritic,
    optimizer: torch.optim.Optimizer,
    recipe: A3cRecipe,
    numbers: range,
    found: Iterator[Sent],
) -> Iterator[Update]:
    for number, sent in zip(numbers, found, strict=True):
        for weight, gradient in zip(network.parameters(), sent.gradient, strict=True):
            weight.grad = torch.from_numpy(gradient)
        set_rate(optimizer, recipe, number, numbers.stop - 1)
        take_step(network, optimizer, recipe.clip, number)
        yield Update(number, sent.metrics)


def _keys(task: Task, number: int, jobsets: Sequence[Jobs]) -> KeyArray:
    place = number * MOST_JOBSETS + np.arange(len(jobsets))
    return keys(task.seed, place, np.zeros_like(place))


def _gradient(network: ActorCritic, task: Task, recipe: A3cRecipe, number: int, jobsets: Sequence[Jobs]) -> Sent:
    """Return the gradient that some episodes suggest."""
    played = record(network, task.begin(jobsets), _keys(task, number, jobsets))
    set_scale(network, played.cost)
    _, returns = by_critic(played, recipe.gamma, recipe.trace, float(network.scale))
    inputs = Inputs(played.observed)
    logits, value = network(inputs)
    chances = log_chances(logits, inputs.may)
    chosen = chances.gather(1, torch.from_numpy(played.action)[:, None])[:, 0]
    error = torch.from_numpy(returns.astype(np.float32)) - value
    entropy = -(chances.exp() * chances).sum(dim=1).mean()
    actor, critic = -(chosen * error.detach()).mean(), error.square().mean()
    loss = actor + recipe.critic * critic - recipe.entropy * entropy
    gradient = torch.autograd.grad(loss, list(network.parameters()), materialize_grads=True)  # a part may have no say
    jobs = np.array([len(one.arrival) for one in jobsets])
    metrics = {
        "actor_loss": float(actor.detach()),
        "critic_loss": float(critic.detach()),
        "entropy": float(entropy.detach()),
        "cost": float((played.cost / jobs).mean()),
        "decisions": float(len(played.action)),
    }
    return Sent([part.numpy() for part in gradient], metrics)


def _work(
    network: ActorCritic, task: Task, recipe: A3cRecipe, asked: "Queue[Asked]", sent: "Queue[Sent | str]"
) -> None:
    """Answer what is asked until nothing more is: a worker's whole life."""
    torch.set_num_threads(1)
    while (more := _next_of(asked)) is not None:
        try:
            sent.put(_gradient(network, task, recipe, *more))
        except Exception as error:  # the learner hears of it, and ends
            sent.put(f"{type(error).__name__}: {error}")
            return


def _next_of(asked: "Queue[Asked]") -> "Asked | None":
    """Return what is asked next; nothing once the learner is gone, which may have been killed."""
    learner = mp.parent_process()
    while learner is not None and learner.is_alive():
        try:
            return asked.get(timeout=LOOK_EVERY_S)
        except queue.Empty:
            continue
    return None


class _Workers:
    """Processes that play with one network's shared weights."""

    def __init__(self, network: ActorCritic, task: Task, recipe: A3cRecipe, count: int) -> None:
        context = mp.get_context("spawn")  # a fork would inherit compiled code's threads in the middle of their work
        network.share_memory()
        self._asked: Queue[Asked] = context.Queue()
        self._sent: Queue[Sent | str] = context.Queue()
        self._count = count
        given = (network, task, recipe, self._asked, self._sent)
        self._processes = [context.Process(target=_work, args=given, daemon=True) for _ in range(count)]

    def __enter__(self) -> "_Workers":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def gradients(self, task: Task, work: Sequence[tuple[int, int]]) -> Iterator[Sent]:
        """Yield gradients as they come; every worker always has something to do."""
        left = iter(work)
        for number, count in (next(left) for _ in range(min(self._count, len(work)))):
            self._asked.put((number, task.draw(number, count)))
        for _ in work:
            sent = self._next()
            yield sent
            if (more := next(left, None)) is not None:
                self._asked.put((more[0], task.draw(*more)))

    def _next(self) -> Sent:
        while True:
            alive = all(process.is_alive() for process in self._processes)
            try:
                sent = self._sent.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                if alive:
                    continue
                break
            if isinstance(sent, str):
                raise UserError(f"a worker of a3c failed ({sent})")
            return sent
        raise UserError("a worker of a3c has died without a word, as for want of memory; try fewer workers")
