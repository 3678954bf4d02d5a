"""The network `sets` as it is measured, compiled and as it is written to be read."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.engine import Work
from benchmarks.problem import SETS, Problem
from pipeline.core import FloatArray, IntArray, KeyArray, Observation, Policy, keys
from pipeline.learning.sampling import sample
from pipeline.problems.pool.networks.loss import Loss
from pipeline.problems.pool.networks.network import log_probabilities
from pipeline.problems.pool.networks.networks import build
from pipeline.problems.pool.networks.relative import HASTE, Relative
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import JobSet, batch, repeat
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.rolling import Roller
from pipeline.simulation.rollout import play

EAGER, BUSY = 5.0, 3.0  # added to the weight of 1 / duration, taken from the score of void
ENTROPY = 0.02
SOME_STEPS = 50  # whose decisions are kept at a time, to be counted


class Learned(NamedTuple):
    """Decisions, and what their loss is made of."""

    observed: Relative
    loss: Loss


def network(problem: Problem) -> Sets:
    """Return a fresh network that prefers short jobs, as a cloned one does: else queues would be far too long."""
    made = build(SETS, problem.cluster, problem.seed)
    if not isinstance(made, Sets):
        raise TypeError(f"expected a network on sets of jobs, got {SETS.name}")
    with torch.no_grad():
        made.direct.weight[0, HASTE] += EAGER
        made.void.bias.sub_(BUSY)
    return made


def begun(problem: Problem, jobsets: list[JobSet]) -> tuple[Batched, KeyArray]:
    """Return all episodes of some jobsets at their beginning, and their random keys."""
    number = np.arange(len(jobsets)).repeat(problem.episodes)
    key = keys(problem.seed, number, np.tile(np.arange(problem.episodes), len(jobsets)))
    jobs = batch(repeat(jobsets, problem.episodes))
    return Batched(jobs, problem.cluster, problem.step_limit, skip_forced=True), key


def played(learner: Sets, problem: Problem) -> Learned:
    """Return all decisions of some episodes, with advantages that are drawn."""
    simulator, key = begun(problem, problem.draw())
    kept = Roller(simulator, learner.compiled(), key).keep()
    gain = np.random.default_rng(problem.seed).normal(size=len(kept.action))
    return Learned(kept.observed, Loss(kept.action, gain, True, ENTROPY))


def decisions_of(learner: Sets, problem: Problem, jobsets: list[JobSet]) -> int:
    """Return how many decisions a compiled roll-out takes; they are kept for some steps only."""
    simulator, key = begun(problem, jobsets)
    roller, until, count = Roller(simulator, learner.compiled(), key), 0, 0
    while len(simulator.rows):
        until += SOME_STEPS
        count += len(roller.keep(until).action)
    return count


def rolled(learner: Sets, simulator: Batched, key: KeyArray) -> Work:
    """Return a compiled roll-out to the end."""
    return Roller(simulator, learner.compiled(), key).play


def stepped(learner: Sets, simulator: Batched, key: KeyArray) -> Work:
    """Return the same play, asked for in lock step of the network that is written to be read."""
    return lambda: play(simulator, plainly(learner), key)


def plainly(learner: Sets) -> Policy:
    """Return the policy that draws actions by torch's own forward."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        observed = learner.encode(view)
        with torch.no_grad():
            logits = learner(observed).numpy()
        actions: IntArray = sample(logits, observed.may, True, draws)
        return actions

    return policy


def compiled_gradient(learner: Sets, given: Learned) -> Work:
    """Return the gradient as `mixture` has it."""

    def work() -> None:
        learner.zero_grad()
        learner.add_gradient(*given)

    return work


def by_autograd(learner: Sets, given: Learned, at_once: int) -> Work:
    """Return the same gradient by torch, so many decisions at a time."""

    def work() -> None:
        learner.zero_grad()
        for first in range(0, len(given.loss.gain), at_once):
            some = slice(first, first + at_once)
            _loss(learner, given.observed.take(some), given.loss.take(some)).backward()  # type: ignore[no-untyped-call]

    return work


def _loss(learner: Sets, observed: Relative, loss: Loss) -> Tensor:
    chances = log_probabilities(learner(observed), observed.may)
    taken = chances.gather(1, torch.from_numpy(loss.action)[:, None])[:, 0]
    gain = torch.from_numpy(loss.gain.astype(np.float32))
    return -(taken * gain).sum() + loss.weight * (chances.exp() * chances).sum()


def gap(learner: Sets, one: Work, other: Work) -> float:
    """Return how far one gradient is from another, as a part of the other's norm."""
    found = []
    for work in (one, other):
        work()
        found.append(torch.cat([weight.grad.flatten() for weight in learner.parameters() if weight.grad is not None]))
    return float((found[0] - found[1]).norm() / found[1].norm())
