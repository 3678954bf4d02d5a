"""REINFORCE with a per-jobset baseline (DeepRM section 3.3, Figure 3): one update over all jobsets an iteration.

Two recipes of params.yaml are played by this one file. `paper`: the same jobsets in every update, baseline = mean return at
the same decision, RMSprop, no masks. `ours`: fresh jobsets in every update, baseline = mean of the jobset's other
episodes at the same simulated time, illegal actions masked, an entropy term, advantages in units of their standard
deviation, Adam, clipped gradient. The loss is a mean over decisions where the paper has a sum: a factor that RMSprop and
Adam undo.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from pipeline.config import Recipe, Reinforce
from pipeline.core import Cluster, FloatArray, IntArray, JobSet, batch, keys, repeat
from pipeline.policies.acting import allowed, log_probabilities, sampled
from pipeline.policies.networks import Network
from pipeline.returns import decision_baseline, discounted, leave_one_out
from pipeline.simulator.batched import Batched
from pipeline.training.decisions import Decisions, Update, record

Draw = Callable[[int], Sequence[JobSet]]  # update -> its jobsets


def reinforce(
    network: Network,
    jobsets: Draw,
    cluster: Cluster,
    step_limit: int,
    objective: str,
    config: Reinforce,
    recipe: Recipe,
    seed: int,
) -> Iterator[Update]:
    """Improve a network by its own play, one update at a time.

    Args:
        network: changed in place.
        jobsets: the jobsets of each update.
        cluster: the cluster they meet.
        step_limit: where an episode is cut.
        objective: which reward a step brings.
        config: updates, episodes of each jobset.
        recipe: everything else.
        seed: of the actions drawn and of the minibatches.
    """
    optimizer = OPTIMIZERS[recipe.optimizer](network.parameters(), lr=recipe.learning_rate)
    for step in range(1, config.updates + 1):
        jobs = repeat(jobsets(step), config.episodes)
        simulator = Batched(batch(jobs), cluster, step_limit, objective, skip_forced=recipe.masked)
        episode = np.arange(len(jobs))
        key = keys(seed + step, episode // config.episodes, episode % config.episodes)
        played = record(simulator, sampled(network, recipe.masked), key)
        gain = advantages(played, config.episodes, recipe)
        order = np.random.default_rng([seed, step]).permutation(len(played.action))
        spread = [
            _learn(network, optimizer, played, gain, rows, recipe) for rows in np.array_split(order, recipe.minibatches)
        ]
        total = played.rewards.sum(axis=1)
        finish = simulator.schedule()
        yield Update(
            step,
            {
                "mean_return": float(total.mean()),
                "best_return": float(total.reshape(-1, config.episodes).max(axis=1).mean()),
                "entropy": float(np.mean(spread)),
                "decisions": float(len(played.action)),
                "unfinished": float((finish.finish < 0).sum()),
            },
        )


def advantages(played: Decisions, episodes: int, recipe: Recipe) -> FloatArray:
    """Return the advantage [D] of each decision."""
    returns = discounted(played.rewards, recipe.gamma)
    if recipe.baseline == "leave_one_out":
        gain = leave_one_out(returns, episodes)[played.episode, played.view.now]
    else:
        value = returns[played.episode, played.view.now]
        gain = value - decision_baseline(value, played.episode // episodes, played.index)
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
