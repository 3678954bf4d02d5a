"""Decisions a second of the simulator under SJF, observations excluded."""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import engine
from benchmarks.measure import ProgressCallback, in_turns
from benchmarks.problem import Problem
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.problems.pool.env.nouns import JobSet
from tests.oracles.pool import Timestep

PLAIN = "tests/oracles/pool.py, a plain loop"
ONLY = np.array([0])  # row of a simulator's single episode


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure lock step, and whole episodes inside the compiled loop."""
    problem = Problem(jobsets=sizes.episodes)
    jobsets = problem.draw()

    def plain() -> float:
        begun = time.perf_counter()
        decisions = sum(
            plain_sjf(Timestep(jobs, problem.cluster, problem.step_limit)) for jobs in jobsets[: sizes.plain]
        )
        return decisions / (time.perf_counter() - begun) / 1e6

    for name, play, ratio in (
        ("simulator, lock step", engine.lock_step, 648.0),
        ("simulator, whole episodes", engine.whole_episodes, 1210.0),
    ):

        def ours() -> float:
            return _rate(play, problem, jobsets)  # noqa: B023

        mine, theirs = in_turns(runs, on_progress, ours, plain)
        target = half_of(ratio)
        yield Row(figure(name, mine, "M decisions/s", theirs, more_is_better=True, target=target), PLAIN)


def _rate(play: engine.Play, problem: Problem, jobsets: list[JobSet]) -> float:
    game = play(problem, jobsets)
    begun = time.perf_counter()
    return game() / (time.perf_counter() - begun) / 1e6


def plain_sjf(episode: Timestep) -> int:
    """Run SJF in the plain simulator to the end; return the number of decisions."""
    decisions = 0
    while not episode.done:
        episode.step(ONLY, np.array([_shortest(episode)]))
        decisions += 1
    return decisions


def _shortest(episode: Timestep) -> int:
    """Return the slot of the shortest job that fits now, the lowest among equals; void if none fits."""
    fitting = [
        (int(episode.jobs.duration[job]), slot)
        for slot, job in enumerate(episode.slots)
        if job is not None and (episode.free[: episode.jobs.duration[job]] >= episode.jobs.demand[job]).all()
    ]
    return min(fitting)[1] if fitting else len(episode.slots)
