"""Cloning of the heuristic that is best on each jobset, short runs and streams, with an entropy term.

The teacher of a jobset is the one of `teachers` with the least mean slowdown on it; `linear` has weights that were
searched for on the same jobsets, short runs and streams apart. Each decision costs -log p(taken)
less the entropy's weight times the entropy: plain cloning is so sure of itself that reinforcement explores nothing.

`clone` teaches one heuristic (DeepRM2 section 3.3, Figure 2), until validation accuracy stops rising. Departures: the
entropy term; only decisions that leave a choice are learned when illegal actions are masked, because the others have
probability 1.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from pipeline.config import Clone, Imitate, pick
from pipeline.core import CompiledRule, FloatArray, IntArray, Policy, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Best, Memory
from pipeline.learning.sampling import best
from pipeline.learning.update import Update
from pipeline.problems.pool.evaluation.metrics import outcome
from pipeline.problems.pool.heuristics.teachers import COMPILED, TEACHERS, least_cost
from pipeline.problems.pool.networks.loss import Loss
from pipeline.problems.pool.networks.network import Network, allowed, log_probabilities
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import JobBatch, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.training.decisions import Decisions, by_policy, by_rule, record
from pipeline.problems.pool.training.rolling import NEVER, Roller, Rollout
from pipeline.problems.pool.training.task import PATIENCE, Task, in_turn
from pipeline.simulation.results import jobset_means


def clone(network: Network, task: Task, config: Clone, memory: Memory | None = None) -> Iterator[Update]:
    """Teach a network the decisions of a teacher, one update an epoch; it ends with the weights of the best."""
    memory = memory or Memory()
    masked, rng = task.gradient.masked, np.random.default_rng(task.seed)
    teacher = pick(TEACHERS, config.teacher, "teacher")
    examples = _watch(teacher, in_turn(task.train, task.loads, config.jobsets), task)
    held_out = _watch(teacher, [jobs for load in task.loads for jobs in task.validation[load]], task)
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    kept = Best(network)
    memory.keep(optimizer=optimizer, best_epoch=kept)
    for _ in range(memory.done):  # the orders of the epochs that were learned before a kill
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
    """Return what a teacher saw and did."""
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


LINEAR, SJF = "linear", CompiledRule("sjf")


def imitate(network: Sets, task: Task, config: Imitate, memory: Memory | None = None) -> Iterator[Update]:
    """Teach a network the decisions of the best heuristic of each jobset, one update an epoch."""
    memory, rng = memory or Memory(), np.random.default_rng(task.seed)
    parts = _examples(network, task, config)
    validation = [jobs for load in task.loads for jobs in task.validation[load]]
    held_out = watch(network, validation, task, [pick(COMPILED, name, "teacher") for name in config.teachers])
    decisions = sum(len(examples.action) for examples in parts)
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    kept = Best(network)
    memory.keep(optimizer=optimizer, best_epoch=kept)
    for _ in range(memory.done):  # the orders of the epochs that were learned before a kill
        _orders(parts, rng, config.batch)
    for epoch in range(memory.done + 1, config.epochs + 1):
        if kept.stale >= config.patience:
            return
        batches = _orders(parts, rng, config.batch)
        spread = (
            sum(_learn(network, optimizer, examples, rows, config.entropy) for examples, rows in batches) / decisions
        )
        accuracy = float(
            (best(network.frozen()(held_out.observed), held_out.observed.may, True) == held_out.action).mean()
        )
        kept.offer(-accuracy)
        if kept.stale >= config.patience or epoch == config.epochs:
            kept.restore()
        yield Update(epoch, {"entropy": spread, "accuracy": accuracy, "best_accuracy": -kept.cost})


def _examples(network: Sets, task: Task, config: Imitate) -> list[Rollout]:
    """Return what the teachers saw and did on training jobsets, and on streams."""
    short = in_turn(task.train, task.loads, config.jobsets)
    found = [watch(network, short, task, teachers(short, task, config))]
    if config.streams is not None:
        loads, steps = config.streams.loads, config.streams.latest + config.streams.steps
        pieces = [task.stream("train", loads[k % len(loads)], k, steps) for k in range(config.streams.windows)]
        for slots in config.streams.slots:
            cluster = task.cluster._replace(slots=slots, arrivals_end=None)
            other = task._replace(cluster=cluster, step_limit=PATIENCE * steps)
            found.append(watch(network, pieces, other, teachers(pieces, other, config)))
    return found


def teachers(jobsets: Sequence[JobSet], task: Task, config: Imitate) -> list[CompiledRule]:
    """Return who may teach; of the linear rule, the weights that are best on these jobsets."""
    found = [pick(COMPILED, name, "teacher") for name in config.teachers]
    if config.linear is None:
        return found
    jobs = batch(jobsets)
    sjf = _cost(jobs, task, SJF)

    def cost(drawn: FloatArray) -> FloatArray:
        each = (_cost(jobs, task, CompiledRule(LINEAR, weights=tuple(weights))) for weights in drawn.tolist())
        return np.array([(slowdown / sjf).mean() for slowdown in each])

    tuned = CompiledRule(LINEAR, weights=least_cost(cost, config.linear, task.seed))
    return [tuned if rule.rule == LINEAR else rule for rule in found]


def watch(network: Sets, jobsets: Sequence[JobSet], task: Task, rules: Sequence[CompiledRule]) -> Rollout:
    """Return what the best teacher of each jobset saw and did.

    Raises:
        UserError: the jobsets leave no decision.
    """
    jobs = batch(jobsets)
    key = keys(task.seed, np.arange(jobs.episodes), np.zeros(jobs.episodes, dtype=np.int64))
    costs = np.stack([_cost(jobs, task, rule) for rule in rules])
    chosen = players([rules[k] for k in costs.argmin(axis=0)], key)
    simulator = Batched(jobs, task.cluster, task.step_limit, skip_forced=True)
    played = Roller(simulator, network.compiled(), key).led_by(chosen).keep()
    if not len(played.action):
        raise UserError("the jobsets leave no decision to learn from: train on higher loads")
    return played


def _cost(jobs: JobBatch, task: Task, rule: CompiledRule) -> FloatArray:
    """Return the mean slowdown [B] of each jobset under a teacher."""
    simulator = Batched(jobs, task.cluster, task.step_limit, skip_forced=True)
    key = keys(task.seed, np.arange(jobs.episodes), np.zeros(jobs.episodes, dtype=np.int64))
    simulator.play(simulator.rows, players([rule] * jobs.episodes, key), NEVER)
    return jobset_means(jobs, outcome(jobs, simulator.schedule(), task.step_limit).slowdown)


def _orders(parts: Sequence[Rollout], rng: np.random.Generator, size: int) -> list[tuple[Rollout, IntArray]]:
    """Return an epoch's batches, in an order of their own."""
    batches = []
    for examples in parts:
        order = rng.permutation(len(examples.action))
        batches += [(examples, order[k : k + size]) for k in range(0, len(order), size)]
    return [batches[k] for k in rng.permutation(len(batches))]


def _learn(network: Sets, optimizer: torch.optim.Optimizer, examples: Rollout, rows: IntArray, weight: float) -> float:
    """Take one step; return the summed entropy of the decisions."""
    optimizer.zero_grad()
    loss = Loss(examples.action[rows], np.ones(len(rows)), True, weight)
    spread = network.add_gradient(examples.observed.take(rows), loss)
    for tensor in network.parameters():
        if tensor.grad is not None:
            tensor.grad /= len(rows)
    optimizer.step()
    return spread
