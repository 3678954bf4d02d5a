"""REINFORCE with a per-jobset baseline (DeepRM section 3.3, Figure 3): one update over all jobsets an iteration.

Two recipes of params.yaml are played by this one file. `paper`: the same jobsets in every update, baseline = mean
return at the same decision, RMSprop, no masks. `ours`: fresh jobsets in every update, baseline = mean of the jobset's
other episodes at the same simulated time, illegal actions masked, an entropy term, advantages in units of their
standard deviation, Adam, clipped gradient. The loss is a mean over decisions where the paper has a sum: a factor that
RMSprop and Adam undo.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from pipeline.config import Recipe, Reinforce
from pipeline.core import FloatArray, IntArray, batch, keys, repeat
from pipeline.policies.acting import allowed, log_probabilities, sampled
from pipeline.policies.networks import Network
from pipeline.returns import decision_baseline, discounted, leave_one_out
from pipeline.simulator.batched import Batched
from pipeline.simulator.outcomes import jobset_means, outcome
from pipeline.training.decisions import Decisions, Update, record
from pipeline.training.memory import Memory
from pipeline.training.task import JOBSETS, Task

MOST_JOBSETS = 100_000  # of an update; keeps the random keys of updates apart


def reinforce(network: Network, task: Task, config: Reinforce, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by its own play, one update at a time.

    Args:
        network: changed in place.
        task: what is learned; its recipe says how.
        config: how much: updates, jobsets of each, episodes of each jobset.
        memory: what survives a kill; the draws of an update depend on its number alone.
    """
    memory = memory or Memory()
    recipe, episodes = task.recipe, config.episodes
    jobsets = JOBSETS[recipe.jobsets](task, config.jobsets)
    optimizer = OPTIMIZERS[recipe.optimizer](network.parameters(), lr=recipe.learning_rate)
    memory.keep(optimizer=optimizer)
    for step in range(memory.done + 1, config.updates + 1):
        jobs = repeat(jobsets(step), episodes)
        simulator = Batched(batch(jobs), task.cluster, task.step_limit, task.objective, skip_forced=recipe.masked)
        if not len(simulator.rows):  # no job had to wait for another: nothing to learn from
            yield Update(step, {"decisions": 0.0})
            continue
        episode = np.arange(len(jobs))
        key = keys(task.seed, step * MOST_JOBSETS + episode // episodes, episode % episodes)
        played = record(simulator, sampled(network, recipe.masked), key)
        gain = advantages(played, episodes, recipe)
        order = np.random.default_rng([task.seed, step]).permutation(len(played.action))
        spread = [
            _learn(network, optimizer, played, gain, rows, recipe)
            for rows in np.array_split(order, min(recipe.minibatches, len(order)))
        ]
        yield Update(step, {"entropy": float(np.mean(spread)), **_report(simulator, played, episodes, task.step_limit)})


def _report(simulator: Batched, played: Decisions, episodes: int, step_limit: int) -> dict[str, float]:
    total = played.rewards.sum(axis=1)
    fared = outcome(simulator.jobs, simulator.schedule(), step_limit)
    return {
        "mean_return": float(total.mean()),
        "best_return": float(total.reshape(-1, episodes).max(axis=1).mean()),
        "slowdown": float(jobset_means(simulator.jobs, fared.slowdown).mean()),
        "decisions": float(len(played.action)),
        "unfinished": float(fared.unfinished.sum()),
    }


def advantages(played: Decisions, episodes: int, recipe: Recipe) -> FloatArray:
    """Return the advantage [D] of each decision."""
    returns = discounted(played.rewards, recipe.gamma)
    if recipe.baseline == "leave_one_out":
        gain = leave_one_out(returns, episodes)[played.episode, played.view.now]
    else:
        value = returns[played.episode, played.view.now]
        gain = value - decision_baseline(value, played.episode // episodes, played.turn)
    return gain / (gain.std() + 1e-9) if recipe.normalise else gain


def _learn(
    network: Network,
    optimizer: torch.optim.Optimizer,
    played: Decisions,
    gain: FloatArray,
    rows: IntArray,
    recipe: Recipe,
) -> float:
    """Take one optimizer step on some decisions; return their mean entropy.

    The gradient is summed chunk by chunk, so that memory is bounded by a chunk and not by the update.
    """
    optimizer.zero_grad()
    total = 0.0
    for part in range(0, len(rows), network.chunk):
        some = rows[part : part + network.chunk]
        view = played.view.take(some)
        chances = log_probabilities(network(view), allowed(view, recipe.masked))
        taken = chances.gather(1, torch.from_numpy(played.action[some])[:, None])[:, 0]
        entropy = -(chances.exp() * chances).sum(dim=1).sum()
        gained = (taken * torch.from_numpy(gain[some].astype(np.float32))).sum()
        loss = -(gained + recipe.entropy * entropy) / len(rows)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(entropy.detach())
    if recipe.clip is not None:
        torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
    optimizer.step()
    return total / len(rows)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"rmsprop": torch.optim.RMSprop, "adam": torch.optim.Adam}
