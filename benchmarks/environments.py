"""Decisions a second of the library's vectorized environment, compared with the compiled simulator it uses."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import deeprm
from benchmarks.measure import ProgressCallback, in_turns
from benchmarks.record import Row, Target, figure
from benchmarks.sizes import Sizes

ENVIRONMENTS, STEPS, WARM = 1024, 300, 300
ALONE = "features and step of the compiled simulator, without restarts of episodes"
TARGET = Target(least=0.8)


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure `step` with float features and the first legal action; all episodes restart at once."""
    steps = STEPS if sizes.episodes >= ENVIRONMENTS else 3
    envs: Any = deeprm.make_vec("deeprm/Pool-v0", num_envs=ENVIRONMENTS, load=130).unwrapped
    _stepped(envs, WARM if steps == STEPS else 1)

    def ours() -> float:
        return _stepped(envs, steps)

    def alone() -> float:
        return _compiled(envs, 20 if steps == STEPS else 1)

    mine, theirs = in_turns(runs, on_progress, ours, alone)
    yield Row(figure("environments", mine, "M decisions/s", theirs, more_is_better=True, target=TARGET), ALONE)


def _stepped(envs: Any, steps: int) -> float:
    """Return millions of decisions a second, not counting the choice of actions."""
    _, infos = envs.reset(seed=1)
    spent = 0.0
    for _ in range(steps):
        actions = infos["action_mask"].argmax(axis=1)
        begun = time.perf_counter()
        _, _, _, _, infos = envs.step(actions)
        spent += time.perf_counter() - begun
    return steps * ENVIRONMENTS / spent / 1e6


def _compiled(envs: Any, steps: int) -> float:
    """Return the same rate for direct calls of the simulator, counting only episodes that still run."""
    envs.reset(seed=1)
    episodes = envs.episodes
    simulator, rows, spent = episodes.simulator, episodes.rows, 0.0
    done = 0
    for _ in range(steps):
        actions = episodes.mask.argmax(axis=1)
        begun = time.perf_counter()
        simulator.step(rows, actions)
        _, episodes.mask = episodes.game.look(simulator, rows)
        spent += time.perf_counter() - begun
        done += len(rows)
        going = ~np.asarray(simulator.ended(rows)[0])
        rows, episodes.mask = rows[going], episodes.mask[going]
    return done / spent / 1e6
