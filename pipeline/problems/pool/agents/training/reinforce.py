"""REINFORCE with a per-jobset baseline (DeepRM section 3.3, Figure 3): one update over all jobsets per iteration.

This file runs two recipes of params.yaml. `paper`: the same jobsets in every update, baseline = mean return at the
decision with the same number, RMSprop, no masks. `ours`: fresh jobsets in every update, baseline = mean return of the
jobset's other episodes at the same simulated time, illegal actions masked, an entropy term, advantages in units of
their standard deviation, Adam, clipped gradient. The loss is a mean over decisions, where the paper has a sum; RMSprop
and Adam cancel that factor. The jobsets of an update are divided among its optimizer steps (`minibatches`).

With `baseline: value` a network estimates the baseline, in place of a mean over a jobset's episodes (DeepRM section 5).
Like the policy, it sees only DeepRM's image: neither the jobset nor its end. It estimates the decisions of an update
before it learns from them, so that the baseline does not depend on the sampled actions.

Memory depends on the episodes played together, not on the length of an update: the gradient is summed over groups of
jobsets and chunks of decisions.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.config import Recipe, Reinforce
from pipeline.core.config.pool.learning import ValueBaseline
from pipeline.core.types import FloatArray, IntArray, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Average, Memory
from pipeline.learning.returns import decision_baseline, discounted, leave_one_out
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.encodings import Layout
from pipeline.problems.pool.agents.networks.loss import Loss
from pipeline.problems.pool.agents.networks.mlp import Mlp
from pipeline.problems.pool.agents.networks.network import Network
from pipeline.problems.pool.agents.training.decisions import DecisionBuffer, Decisions
from pipeline.problems.pool.agents.training.sampled_rollout import play_by_chance
from pipeline.problems.pool.agents.training.task import JOBSETS, Task
from pipeline.problems.pool.env.evaluation.metrics import outcome
from pipeline.problems.pool.env.nouns import CompactObservation, JobSet, batch, repeat
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.simulation.results import jobset_means

MOST_JOBSETS = 100_000  # per update; keeps the random keys of updates apart
TINY = 1e-9
JOBS_AT_ONCE = 200_000  # in episodes played together: ~5 decisions per job, of 100 bytes each
AT_ONCE = 65_536  # maximum of decisions per step of the value network


def reinforce(network: Network, task: Task, config: Reinforce, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by its own play, one update at a time."""
    memory = memory or Memory()
    recipe, buffer = task.gradient, DecisionBuffer()
    jobsets = JOBSETS[recipe.jobsets](task, config.jobsets)
    optimizer = OPTIMIZERS[recipe.optimizer](network.parameters(), lr=recipe.learning_rate)
    memory.keep(optimizer=optimizer)
    critic = None if recipe.value is None else Critic(network.layout, recipe.value, task.seed, memory)
    average = Average(network, recipe.average, memory)
    learn = partial(_learn, network, task, config.episodes, buffer, critic)
    for step in range(memory.done + 1, config.updates + 1):
        average.begin()
        drawn = jobsets(step)
        results = []
        for share in np.array_split(np.arange(len(drawn)), min(recipe.minibatches, len(drawn))):
            optimizer.zero_grad()
            groups = [
                learn([drawn[k] for k in group], step * MOST_JOBSETS + group)
                for group in _groups(share, drawn, config.episodes)
            ]
            results += groups
            decisions = sum(group.decisions for group in groups)
            if decisions:  # there are none if no job had to wait for another
                _take_step(network, optimizer, decisions, recipe, step)
        average.end()
        yield Update(step, _report(results))


class ValueNetwork(Mlp):
    """DeepRM's network with one output, in units of the spread of the first returns around their mean."""

    mean: Tensor
    spread: Tensor  # 0: no returns seen yet

    def __init__(self, layout: Layout, hidden: int) -> None:
        super().__init__(layout, hidden)
        self.last = nn.Linear(hidden, 1)
        self.register_buffer("mean", torch.zeros(1))
        self.register_buffer("spread", torch.zeros(1))


class Critic:
    """Value network that first estimates the returns of decisions and then learns from the actual ones."""

    def __init__(self, layout: Layout, config: ValueBaseline, seed: int, memory: Memory) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = ValueNetwork(layout, config.hidden)
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=config.learning_rate)
        self._steps = config.steps
        memory.keep(value=self._network, value_optimizer=self._optimizer)

    def judge(self, observed: CompactObservation, returns: FloatArray) -> FloatArray:
        """Estimate the returns of decisions [D], then learn from the actual returns; return the estimates."""
        network = self._network
        if not network.spread:
            network.mean += float(returns.mean())
            network.spread += float(returns.std()) or 1.0
        mean, spread = float(network.mean), float(network.spread)
        with torch.no_grad():
            begins = range(0, len(returns), AT_ONCE)
            expected = torch.cat([network(observed.take(slice(k, k + AT_ONCE)))[:, 0] for k in begins]).numpy()
        target = torch.from_numpy((returns - mean) / spread).float()
        steps = min(max(self._steps, len(begins)), len(returns))
        for k in range(steps):  # step k learns from every steps-th decision, from the k-th on
            some = np.arange(k, len(returns), steps)
            self._optimizer.zero_grad()
            loss = nn.functional.mse_loss(network(observed.take(some))[:, 0], target[k::steps])
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
        return np.asarray(mean + spread * expected, dtype=np.float64)


class GroupResult(NamedTuple):
    """Outcome of the episodes of a group; those of a jobset are adjacent."""

    decisions: int
    entropy: float  # summed over decisions
    total: FloatArray  # [jobsets, episodes]  return of an episode
    slowdown: FloatArray  # [jobsets * episodes]  mean over jobs
    unfinished: int  # jobs


def _groups(share: IntArray, jobsets: Sequence[JobSet], episodes: int) -> list[IntArray]:
    """Divide jobsets into groups that are held in memory one at a time."""
    jobs = np.cumsum([episodes * len(jobsets[k].arrival) for k in share])
    return [group for group in np.split(share, np.flatnonzero(np.diff(jobs // JOBS_AT_ONCE)) + 1) if len(group)]


def _learn(
    network: Network,
    task: Task,
    episodes: int,
    buffer: DecisionBuffer,
    critic: Critic | None,
    jobsets: Sequence[JobSet],
    number: IntArray,
) -> GroupResult:
    """Play some jobsets, and add the gradient of the summed loss of their decisions to the network's gradient."""
    recipe = task.gradient
    jobs = batch(repeat(jobsets, episodes))
    simulator = Batched(jobs, task.cluster, task.step_limit, task.objective, skip_forced=recipe.masked)
    count, entropy = 0, 0.0
    if len(simulator.rows):
        key = keys(task.seed, np.repeat(number, episodes), np.tile(np.arange(episodes), len(jobsets)))
        played = play_by_chance(network, simulator, recipe.masked, key, buffer)
        loss = Loss(played.action, advantages(played, episodes, recipe, critic), recipe.masked, recipe.entropy)
        entropy = network.add_gradient(played.observed, loss)
        count = len(played.action)
    result = outcome(jobs, simulator.schedule(), task.step_limit)
    total = simulator.rewards[:, : simulator.now.max()].sum(axis=1).reshape(-1, episodes)
    return GroupResult(count, entropy, total, jobset_means(jobs, result.slowdown), int(result.unfinished.sum()))


def _report(results: Sequence[GroupResult]) -> dict[str, float]:
    total = np.concatenate([group.total for group in results])
    decisions = sum(group.decisions for group in results)
    return {
        "entropy": sum(group.entropy for group in results) / max(decisions, 1),
        "mean_return": float(total.mean()),
        "best_return": float(total.max(axis=1).mean()),
        "slowdown": float(np.concatenate([group.slowdown for group in results]).mean()),
        "decisions": float(decisions),
        "unfinished": float(sum(group.unfinished for group in results)),
    }


def advantages(played: Decisions, episodes: int, recipe: Recipe, critic: Critic | None = None) -> FloatArray:
    """Return the advantage [D] of each decision; if normalised, in units of their standard deviation."""
    returns = discounted(played.rewards, recipe.gamma)
    if recipe.baseline == "leave_one_out":
        gain = leave_one_out(returns, episodes)[played.episode, played.now]
    else:
        value = returns[played.episode, played.now]
        if critic is None:
            gain = value - decision_baseline(value, played.episode // episodes, played.turn)
        else:
            gain = value - critic.judge(played.observed, value)
    if recipe.equal_loads:
        cost = np.abs(played.rewards.sum(axis=1)).reshape(-1, episodes).mean(axis=1)
        gain = gain / np.maximum(cost[played.episode // episodes], TINY)
    return gain / (gain.std() + TINY) if recipe.normalise else gain


def _take_step(network: Network, optimizer: torch.optim.Optimizer, decisions: int, recipe: Recipe, number: int) -> None:
    """Take an optimizer step along the gradient, averaged over decisions.

    Raises:
        UserError: the gradient is not finite.
    """
    for weight in network.parameters():
        if weight.grad is not None:
            weight.grad /= decisions
            if not weight.grad.isfinite().all():
                raise UserError(f"update {number}: the gradient is not finite; lower learning_rate, or set clip")
    if recipe.clip is not None:
        torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
    optimizer.step()


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}
