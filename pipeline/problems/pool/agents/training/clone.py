"""Cloning of a heuristic, with an entropy term (DeepRM2 section 3.3, Figure 2), until validation accuracy stops rising.

The loss of a decision is -log p(taken) less the entropy's weight times the entropy. Without that term, the policy is so
certain that reinforcement learning would explore nothing. Departures: the entropy term; where illegal actions are
masked, only decisions with a choice are learned, because the others have probability 1.
"""

from collections.abc import Iterator

import numpy as np
import torch

from pipeline.core.config import Clone, pick
from pipeline.core.types import CompiledRule, IntArray, Policy, keys
from pipeline.learning.memory import Best, Memory
from pipeline.learning.sampling import best
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.network import Network, allowed, log_probabilities
from pipeline.problems.pool.agents.training.decisions import Decisions, by_policy, by_rule, record
from pipeline.problems.pool.agents.training.task import Task, in_turn
from pipeline.problems.pool.env.nouns import JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.teachers import TEACHERS


def clone(network: Network, task: Task, config: Clone, memory: Memory | None = None) -> Iterator[Update]:
    """Teach a network the decisions of a teacher, one update per epoch; the weights of the best epoch are kept."""
    memory = memory or Memory()
    masked, rng = task.gradient.masked, np.random.default_rng(task.seed)
    teacher = pick(TEACHERS, config.teacher, "teacher")
    examples = _watch(teacher, in_turn(task.train, task.loads, config.jobsets), task)
    held_out = _watch(teacher, [jobs for load in task.loads for jobs in task.validation[load]], task)
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    kept = Best(network)
    memory.keep(optimizer=optimizer, best_epoch=kept)
    for _ in range(memory.done):  # repeat the draws of the epochs before an interruption
        rng.permutation(len(examples.action))
    for epoch in range(memory.done + 1, config.epochs + 1):
        if kept.stale >= config.patience:
            return
        order = rng.permutation(len(examples.action))
        losses = [
            _learn_batch(network, optimizer, examples, order[k : k + config.batch], config.entropy, masked)
            for k in range(0, len(order), config.batch)
        ]
        accuracy = score(network, held_out, masked)
        kept.offer(-accuracy)
        if kept.stale >= config.patience or epoch == config.epochs:
            kept.restore()
        yield Update(epoch, {"loss": float(np.mean(losses)), "accuracy": accuracy, "best_accuracy": -kept.cost})


def _watch(teacher: CompiledRule | Policy, jobsets: list[JobSet], task: Task) -> Decisions:
    """Return the observations and decisions of a teacher."""
    simulator = Batched(batch(jobsets), task.cluster, task.step_limit, skip_forced=task.gradient.masked)
    jobset = np.arange(len(jobsets))
    key = keys(task.seed, jobset, np.zeros_like(jobset))
    actor = by_rule(teacher, key) if isinstance(teacher, CompiledRule) else by_policy(teacher)
    return record(simulator, actor, key)


def _learn_batch(
    network: Network,
    optimizer: torch.optim.Optimizer,
    examples: Decisions,
    rows: IntArray,
    entropy: float,
    masked: bool,
) -> float:
    observed = examples.observed.take(rows)
    chances = log_probabilities(network(observed), allowed(observed, masked))
    imitated = -chances.gather(
        1, torch.from_numpy(examples.action[rows].astype(np.int64)).to(chances.device)[:, None]
    ).mean()
    spread = -(chances.exp() * chances).sum(dim=1).mean()
    optimizer.zero_grad()
    loss = imitated - entropy * spread
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return float(imitated.detach())


def score(network: Network, held_out: Decisions, masked: bool) -> float:
    """Return the share of the teacher's decisions that the greedy network takes too."""
    return float((best(network.frozen()(held_out.observed), held_out.observed.may, masked) == held_out.action).mean())
