"""One iteration of REINFORCE as DeepRM describes it (section 3.3, Figure 3): the baseline of the engine.

Every image is drawn as float32 and goes through a dense first layer. Actions are sampled. Autograd gives the gradient.
The baseline of a decision is the mean return at the same decision of the same jobset. RMSprop takes the step. Rollouts
use the same compiled simulator, all episodes in lock step, and the same draws as the engine, so that both have the same
gradient. Images are drawn about a thousand at a time, and again for the gradient, because those of a whole iteration
would need gigabytes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.core.config import Reinforce
from pipeline.core.types import FloatArray, IntArray, KeyArray, keys, uniform
from pipeline.learning.returns import decision_baseline, discounted
from pipeline.problems.pool.agents.networks.encodings import Layout, draw
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.nouns import CompactObservation, batch, repeat
from pipeline.problems.pool.env.simulator.batch import Batched

AT_ONCE = 1024  # images held in memory at a time: the fastest of 256 to 2,048 on our machine
MOST_JOBSETS = 100_000  # as in the engine, to have the same draws


class Dense(nn.Module):
    """DeepRM's network on drawn images."""

    def __init__(self, layout: Layout, hidden: int) -> None:
        super().__init__()
        self.layout = layout
        self.first = nn.Linear(layout.rows * layout.columns, hidden)
        self.last = nn.Linear(hidden, layout.slots + 1)

    def forward(self, observed: CompactObservation) -> Tensor:
        """Return the log-probabilities [D, A]."""
        image = torch.from_numpy(draw(observed, self.layout)).flatten(1)
        logits = self.last(torch.relu(self.first(image)))
        return torch.log_softmax(logits, dim=1)


class Play(NamedTuple):
    """D decisions, in the order in which they were taken."""

    observed: CompactObservation  # D observations
    action: IntArray  # [D]
    now: IntArray  # [D]  simulated step
    episode: IntArray  # [D]
    turn: IntArray  # [D]  index of the decision in its episode


def described(network: Dense, task: Task, config: Reinforce) -> Iterator[int]:
    """Train a network on its own episodes; yield the number of decisions of each iteration."""
    optimizer = torch.optim.RMSprop(network.parameters(), lr=task.gradient.learning_rate)
    jobs = repeat(task.train[task.loads[0]][: config.jobsets], config.episodes)
    episode = np.arange(len(jobs))
    jobset = episode // config.episodes
    for step in range(1, config.updates + 1):
        simulator = Batched(batch(jobs), task.cluster, task.step_limit, task.objective)
        play = _play(network, simulator, keys(task.seed, step * MOST_JOBSETS + jobset, episode % config.episodes))
        returns = discounted(simulator.rewards, task.gradient.gamma)[play.episode, play.now]
        gain = returns - decision_baseline(returns, jobset[play.episode], play.turn)
        optimizer.zero_grad()
        for first in range(0, len(gain), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            taken = torch.from_numpy(play.action[some])[:, None]
            chances = network(play.observed.take(some)).gather(1, taken)[:, 0]
            loss = -(chances * torch.from_numpy(gain[some].astype(np.float32))).sum() / len(gain)
            loss.backward()
        optimizer.step()
        yield len(gain)


def _play(network: Dense, simulator: Batched, key: KeyArray) -> Play:
    kept: list[CompactObservation] = []
    actions: list[IntArray] = []
    now: list[IntArray] = []
    rows: list[IntArray] = []
    while len(going := simulator.rows):
        observed = simulator.compact_buffer(len(going))
        simulator.observe_compact(going, observed)
        kept.append(observed)
        now.append(simulator.now[going])
        actions.append(_sample(network, observed, uniform(key[going], np.full(len(going), len(rows)))))
        rows.append(going)
        simulator.step(going, actions[-1])
    return Play(
        observed=CompactObservation._make(np.concatenate(field) for field in zip(*kept, strict=True)),
        action=np.concatenate(actions),
        now=np.concatenate(now),
        episode=np.concatenate(rows),
        turn=np.repeat(np.arange(len(rows)), [len(going) for going in rows]),
    )


def _sample(network: Dense, observed: CompactObservation, draws: FloatArray) -> IntArray:
    with torch.no_grad():
        parts = [network(observed.take(slice(k, k + AT_ONCE))) for k in range(0, len(draws), AT_ONCE)]
    cumulative = torch.cat(parts).double().exp().cumsum(dim=1).numpy()
    return np.asarray((cumulative > draws[:, None] * cumulative[:, -1:]).argmax(axis=1))
