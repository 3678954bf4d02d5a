"""Asynchronous advantage actor-critic (Deepk8s section 4.5.1, equations 2 and 3; Mnih et al. 2016).

Workers are processes. Each reads the current shared weights, plays some episodes, and sends the gradient of (R - V)^2
and of -log pi(a | s) (R - V) - beta H. The learner applies gradients in the order of their arrival, so a gradient may
belong to weights that are some updates old: the asynchrony. With several workers, results therefore differ from run to
run. With a single worker, no extra process is needed, and results repeat byte for byte.

Departures: processes, not threads; only the learner has an optimizer state; costs are in units of the first returns'
standard deviation; R is the target of a trace (lambda) over whole episodes, where Mnih et al. stop after a few steps.
With `trace: 1` R is the return, which depends mostly on the number of jobs still to come. No observation shows that
number, so the critic cannot remove its effect (measured in docs/results/deepk8s.md).
"""

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp

from pipeline.core.config.machines.learning import A3c, A3cRecipe
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.agents.training.task import (
    Learner,
    Task,
    by_critic,
    log_chances,
    mean_entropy,
    play_update,
    scale_of,
)
from pipeline.problems.machines.env.nouns import Jobs

Request = tuple[int, Sequence[Jobs]]  # number of the update, and its jobsets


class Gradient(NamedTuple):
    """The result of one request."""

    parts: list[FloatArray]  # by weight tensor
    metrics: dict[str, float]


def a3c(network: ActorCritic, task: Task, config: A3c, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network in place from the episodes of several workers; an update is one gradient."""
    memory = memory or Memory()
    recipe = task.recipe_for(A3cRecipe)
    learner = Learner(network, recipe, config.updates, memory)
    portable = task._replace(train={}, validation={}, fresh=_no_jobset)
    numbers = range(memory.done + 1, config.updates + 1)
    requests = ((number, task.draw(number, config.jobsets)) for number in numbers)
    if config.workers == 1 or not numbers:
        found: Iterator[Gradient] = (_gradient(network, portable, recipe, *request) for request in requests)
    else:
        if not float(network.scale):  # set once, before several workers do it
            played = play_update(network, portable, numbers[0], task.draw(numbers[0], config.jobsets))
            scale_of(network, played.cost)
        found = _gradients(network, portable, recipe, requests, config.workers)
    for number, gradient in zip(numbers, found, strict=True):
        for weight, part in zip(network.parameters(), gradient.parts, strict=True):
            weight.grad = torch.from_numpy(part)
        learner.begin(number)
        learner.step()
        yield Update(number, gradient.metrics)


def _no_jobset(load: int, number: int) -> Jobs:
    raise TypeError("workers receive jobsets and draw none")


def _gradient(network: ActorCritic, task: Task, recipe: A3cRecipe, number: int, jobsets: Sequence[Jobs]) -> Gradient:
    played = play_update(network, task, number, jobsets)
    _, returns = by_critic(played, recipe.gamma, recipe.trace, scale_of(network, played.cost))
    inputs = Inputs(played.observed)
    logits, value = network(inputs)
    chances = log_chances(logits, inputs.may)
    chosen = chances.gather(1, torch.from_numpy(played.action)[:, None])[:, 0]
    error = torch.from_numpy(returns.astype(np.float32)) - value
    entropy = mean_entropy(chances)
    actor, critic = -(chosen * error.detach()).mean(), error.square().mean()
    loss = actor + recipe.critic * critic - recipe.entropy * entropy
    # Some parts of a network may have no influence on the loss: their gradient is 0.
    gradient = torch.autograd.grad(loss, list(network.parameters()), materialize_grads=True)
    metrics = {
        "actor_loss": float(actor.detach()),
        "critic_loss": float(critic.detach()),
        "entropy": float(entropy.detach()),
        "cost": played.cost_of_job(jobsets),
        "decisions": float(len(played.action)),
    }
    return Gradient([part.numpy() for part in gradient], metrics)


_WORKER: list[Any] = []  # network, task and recipe of this process, if it is a worker


def _start(*worker: Any) -> None:
    """Prepare a worker process; it ends when its learner does, even if that is killed."""
    torch.set_num_threads(1)
    _WORKER.extend(worker)
    learner = mp.parent_process()
    assert learner is not None

    def end() -> None:
        learner.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _answer(request: Request) -> Gradient:
    network, task, recipe = _WORKER
    return _gradient(network, task, recipe, *request)


def _gradients(
    network: ActorCritic, task: Task, recipe: A3cRecipe, requests: Iterator[Request], count: int
) -> Iterator[Gradient]:
    """Yield gradients in the order of their arrival; every worker always has a request."""
    context = mp.get_context("spawn")  # a forked process would inherit locks of torch's threads
    network.share_memory()
    with ProcessPoolExecutor(count, context, _start, (network, task, recipe)) as workers:
        pending: set[Future[Gradient]] = set()
        for request in requests:
            pending.add(workers.submit(_answer, request))
            if len(pending) == count:
                yield _first(pending)
        while pending:
            yield _first(pending)


def _first(pending: "set[Future[Gradient]]") -> Gradient:
    """Remove the first finished future and return its result."""
    done = next(iter(wait(pending, return_when=FIRST_COMPLETED).done))
    pending.remove(done)
    try:
        return done.result()
    except BrokenProcessPool:
        raise UserError("a worker of a3c died, perhaps for lack of memory; try fewer workers") from None
    except Exception as error:
        raise UserError(f"a worker of a3c failed ({type(error).__name__}: {error})") from error
