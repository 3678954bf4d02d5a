"""Adapter to the measured engine: all that the benchmark uses of the pipeline's training, policies and evaluation."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from benchmarks.described import Dense, described
from benchmarks.problem import DEEPRM, Problem
from pipeline.core import storage
from pipeline.core.config import PoolCard, Reinforce
from pipeline.core.config.pool.learning import PoolNetworkConfig
from pipeline.core.types import CompiledRule, FloatArray, IntArray, Observation, Policy, keys, legal_actions
from pipeline.interactive.pool.scheduling import schedule
from pipeline.interactive.scheduling.user_jobs import UserJobs
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.encodings import Layout, draw
from pipeline.problems.pool.agents.networks.network import Network
from pipeline.problems.pool.agents.networks.networks import build, restore
from pipeline.problems.pool.agents.training.decisions import by_chance, record
from pipeline.problems.pool.agents.training.reinforce import reinforce
from pipeline.problems.pool.env.nouns import CompactObservation, JobSet, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import Players, players
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import play

Work = Callable[[], object]
Play = Callable[[Problem, list[JobSet]], Callable[[], int]]


def hold_to(threads: int) -> None:
    """Limit torch to a number of threads; numba reads the number from the environment."""
    torch.set_num_threads(threads)


def network(problem: Problem, config: PoolNetworkConfig) -> Network:
    """Return a freshly initialised network on images."""
    made = build(config, problem.cluster, problem.seed)
    if not isinstance(made, Network):
        raise TypeError(f"expected a network on images, got {config.name}")
    return made


def dense(problem: Problem) -> Dense:
    """Return a freshly initialised deeprm for drawn images, with the weights of the engine's network."""
    same = Dense(Layout.of(problem.cluster, DEEPRM.clock), DEEPRM.hidden)
    same.load_state_dict(network(problem, DEEPRM).state_dict())
    return same


def budget(problem: Problem, updates: int) -> Reinforce:
    """Return the training configuration."""
    return Reinforce(
        name="reinforce",
        recipe="paper",
        loads=(problem.load,),
        updates=updates,
        jobsets=problem.jobsets,
        episodes=problem.episodes,
        validate_every=1,
    )


def iterations(path: str, problem: Problem, count: int) -> Iterator[int]:
    """Run the iterations of one run of deeprm; yield the number of decisions of each.

    The weights are reset before each, so that all do the same amount of work, apart from their draws.

    Args:
        path: ours or described.
        problem: its jobsets and episodes.
        count: iterations.
    """
    task, config = problem.task(), budget(problem, count)
    learner: Network | Dense = dense(problem) if path == "described" else network(problem, DEEPRM)
    initial = {name: weight.clone() for name, weight in learner.state_dict().items()}
    if isinstance(learner, Dense):
        updates = described(learner, task, config)
    else:
        updates = (int(update.metrics["decisions"]) for update in reinforce(learner, task, config))
    for decisions in updates:
        yield decisions
        learner.load_state_dict(initial)


def played(learner: Network, problem: Problem) -> CompactObservation:
    """Return a network's observations in all decisions of an iteration, in the order of learning."""
    jobsets = problem.draw()
    number = np.arange(len(jobsets)).repeat(problem.episodes)
    simulator = Batched(batch([jobsets[k] for k in number]), problem.cluster, problem.step_limit, skip_forced=True)
    key = keys(problem.seed, number, np.tile(np.arange(problem.episodes), len(jobsets)))
    return record(simulator, by_chance(learner.frozen(), masked=True), key).observed


def images(observed: CompactObservation, layout: Layout) -> Tensor:
    """Return the drawn images [D, T, columns], float32."""
    return torch.from_numpy(draw(observed, layout))


def on_image(learner: Network, image: Tensor) -> Tensor:
    """Return the logits [D, A] by the network's layers on whole images."""
    logits: Tensor = learner.on_image(image)  # type: ignore[operator]
    return logits


def learning(learner: Network, observed: CompactObservation) -> Work:
    """Return a forward and a backward pass over decisions, in the chunks of `reinforce`."""

    def work() -> None:
        learner.zero_grad()
        for first in range(0, len(observed.cells), learner.at_once):
            logits = learner(observed.take(slice(first, first + learner.at_once)))
            logits.backward(torch.ones_like(logits))

    return work


def deployed(learner: Network, problem: Problem, config: PoolNetworkConfig, folder: Path) -> Policy:
    """Return a network's greedy policy, written to a folder and read as in `schedule`."""
    cluster = problem.cluster
    card = PoolCard(
        agent="bench",
        scenario="bench",
        resources={f"r{r}": units for r, units in enumerate(cluster.capacity)},
        horizon=cluster.horizon,
        slots=cluster.slots,
        backlog=cluster.backlog,
        place_ahead=cluster.place_ahead,
        objective="slowdown",
        network=config,
        masked=True,
        play="greedy",
    )
    storage.write_model(folder, storage.Model(card, weights_of(learner)))
    model = storage.read_model(folder, PoolCard)
    return restore(model.card, model.weights).policy


def deployed_plainly(learner: Network) -> Policy:
    """Return the same greedy policy, on drawn images."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        with torch.no_grad():
            logits = on_image(learner, images(compact(view), learner.layout)).numpy()
        return np.asarray(np.where(legal_actions(view), logits, -np.inf).argmax(axis=1))

    return policy


def met(policy: Policy, decisions: int) -> list[Observation]:
    """Return a policy's first observations, one episode after another, one decision each."""
    views: list[Observation] = []
    number = 0
    while len(views) < decisions:
        problem = Problem(jobsets=1, seed=number)
        simulator = Batched(batch(problem.draw()), problem.cluster, problem.step_limit, skip_forced=True)
        one = np.array([number])
        play(simulator, policy, keys(0, one, one), lambda rows, view, actions: views.append(view))
        number += 1
    return views[:decisions]


def all_heuristics(problem: Problem, streams: list[JobSet]) -> Work:
    """Return a function that schedules streams with every heuristic, as `schedule` does for a user's table."""
    jobs = batch(streams)
    ids = pa.table({"job": np.arange(len(jobs.arrival))})
    table = UserJobs(ids, jobs.episode.astype(np.int32), JobSet(jobs.arrival, jobs.duration, jobs.demand))

    def work() -> None:
        for policy in HEURISTICS.values():
            schedule(table, problem.cluster, policy, True, problem.seed, lambda percent, note: None)

    return work


def all_heuristics_watching(problem: Problem, streams: list[JobSet]) -> Work:
    """Return a function that schedules streams with every heuristic in lock step, from observations."""
    jobs, number = batch(streams), np.arange(len(streams))
    key = keys(problem.seed, number, np.zeros_like(number))

    def work() -> None:
        for policy in HEURISTICS.values():
            play(Batched(jobs, problem.cluster, problem.step_limit, skip_forced=True), policy, key)

    return work


def lock_step(problem: Problem, jobsets: list[JobSet]) -> Callable[[], int]:
    """Return a function that calls compiled SJF for each decision of many episodes in lock step and counts them."""
    simulator, who = _sjf(problem, jobsets)

    def work() -> int:
        while len(rows := simulator.rows):
            simulator.step(rows, simulator.decide(rows, who))
        return int(who.decision.sum())

    return work


def whole_episodes(problem: Problem, jobsets: list[JobSet]) -> Callable[[], int]:
    """Return a function in which compiled SJF runs whole episodes by itself, and which counts the decisions."""
    simulator, who = _sjf(problem, jobsets)

    def work() -> int:
        simulator.play(simulator.rows, who, most=np.iinfo(np.int64).max)
        return int(who.decision.sum())

    return work


def _sjf(problem: Problem, jobsets: list[JobSet]) -> tuple[Batched, Players]:
    number = np.arange(len(jobsets))
    who = players([CompiledRule("sjf")] * len(jobsets), keys(problem.seed, number, np.zeros_like(number)))
    return Batched(batch(jobsets), problem.cluster, problem.step_limit), who
