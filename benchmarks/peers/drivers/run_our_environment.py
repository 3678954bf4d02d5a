"""Run our environments under SJF: `python -m benchmarks.peers.drivers.run_our_environment NAME FILE`.

`write` makes the file: jobsets of DeepRM's own distribution, at most one job a step, as the original needs them.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import deeprm
from benchmarks.peers.workload import QueueJobs, read_swf, write_swf
from deeprm.games import PEER_JOBS
from pipeline.core.types import BoolArray, FloatArray, IntArray

LOAD, STEPS, SLOTS = 130, 50, 10
ENVIRONMENTS, TURNS = 1024, 300
LEAST_JOBS = 5 * PEER_JOBS  # of a log for RLScheduler's protocol
Rule = Callable[[dict[str, FloatArray], BoolArray], IntArray]
SETTINGS: dict[str, Any] = {"load": LOAD, "scenario": {"arrivals": {"name": "bernoulli", "steps": STEPS}}}


def sjf(seen: dict[str, Any], mask: BoolArray) -> IntArray:
    """Return the shortest job that fits, or void."""
    run = seen["jobs"].reshape(len(mask), SLOTS, -1)[:, :, 1]
    fits = mask[:, :SLOTS].astype(bool)
    return np.asarray(np.where(fits.any(axis=1), np.where(fits, run, 2.0).argmin(axis=1), SLOTS))


def write(path: Path, count: int) -> None:
    """Write the run times [N, T] and demands [N, T, R] of the job of each step; 0: none. The original skips step 0."""
    source = deeprm.make("deeprm/Pool-v0", **SETTINGS).unwrapped.episodes.game.source  # type: ignore[attr-defined]
    run, demand = np.zeros((count, STEPS + 1), np.int64), np.zeros((count, STEPS + 1, 2), np.int64)
    for k in range(count):
        jobs = source.fresh(LOAD, k)
        run[k, jobs.arrival + 1], demand[k, jobs.arrival + 1] = jobs.duration, jobs.demand
    np.savez(path, run=run, demand=demand)


def one(count: int) -> dict[str, float]:
    """Return the work of one environment on the jobsets."""
    env = deeprm.make("deeprm/Pool-v0", **SETTINGS).unwrapped
    return _played(env, count, {"split": "train", "load": LOAD}, sjf, "mean_slowdown")


def picks(path: str) -> dict[str, float]:
    """Return the work of one environment of RLScheduler's protocol on the test sequences of a log."""
    env: Any = deeprm.make("deeprm/RLScheduler-v0", jobs=path).unwrapped
    count = len(env.episodes.game.source.split("test")[100])
    return _played(env, count, {"split": "test"}, picked, "mean_bounded_slowdown")


def picked(seen: dict[str, FloatArray], mask: BoolArray) -> IntArray:
    """Return the slot of the shortest job."""
    run = seen["jobs"].reshape(len(mask), mask.shape[1] - 1, -1)[:, :, 1]
    return np.asarray(np.where(mask[:, :-1].astype(bool), run, 2.0).argmin(axis=1))


def _played(env: Any, count: int, split: dict[str, Any], rule: Rule, measure: str) -> dict[str, float]:
    """Return the work on the jobsets of a split; only the time in `reset` and `step` counts."""
    wall, cpu, steps, slowdowns, jobs = 0.0, 0.0, 0, 0.0, 0
    for k in range(-1, count):
        began, used = time.perf_counter(), time.process_time()
        seen, info = env.reset(options={**split, "jobset": max(k, 0)})
        if k >= 0:  # the first only compiles
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - used
        over = False
        while not over:
            action = rule({"jobs": seen["jobs"][None]}, info["action_mask"][None])[0]
            began, used = time.perf_counter(), time.process_time()
            seen, _, over, _, info = env.step(action)
            if k >= 0:
                wall, cpu, steps = wall + time.perf_counter() - began, cpu + time.process_time() - used, steps + 1
        if k >= 0:
            jobs += int(info["metrics"]["jobs"])
            slowdowns += float(info["metrics"][measure])
    return {"jobs": jobs, "decisions": steps, "wall_s": wall, "cpu_s": cpu, "mean": slowdowns / count}


def many(envs: Any, rule: Rule, measure: str) -> dict[str, float]:
    """Return the work of 1,024 environments in lock step, on random jobsets."""
    seen, infos = envs.reset(seed=1)
    wall, cpu, jobs, slowdowns = 0.0, 0.0, 0, []
    for turn in range(-20, TURNS):
        actions = rule(seen, infos["action_mask"])
        began, used = time.perf_counter(), time.process_time()
        seen, _, _, _, infos = envs.step(actions)
        if turn >= 0:
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - used
        over = infos.get("_metrics", np.zeros(ENVIRONMENTS, bool))
        if turn >= 0 and over.any():
            jobs += int(infos["metrics"]["jobs"][over].sum())
            slowdowns.extend(infos["metrics"][measure][over].tolist())
    mean = float(np.mean(slowdowns))
    return {"jobs": jobs, "decisions": TURNS * ENVIRONMENTS, "wall_s": wall, "cpu_s": cpu, "mean": mean}


def in_order(path: Path) -> dict[str, float]:
    """Return the work of many environments that see and start the first job of a queue, in windows of 256 jobs.

    A queue that is too short for the protocol is repeated.
    """
    jobs, machines = read_swf(path)
    times = -(-LEAST_JOBS // len(jobs.submit))
    shift = np.repeat(np.arange(times) * jobs.submit[-1], len(jobs.submit))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "queue.swf"
        write_swf(
            log, QueueJobs(np.tile(jobs.submit, times) + shift, *(np.tile(one, times) for one in jobs[1:])), machines
        )
        envs = deeprm.make_vec("deeprm/RLScheduler-v0", num_envs=ENVIRONMENTS, jobs=log, slots=1).unwrapped
    return many(envs, lambda _, mask: np.zeros(len(mask), np.int64), "mean_wait")


def main() -> None:
    """Run one environment or many, of DeepRM or of RLScheduler's protocol."""
    name, path = sys.argv[1], sys.argv[2]
    match name:
        case "one":
            found = one(len(np.load(path)["run"]))
        case "vector":
            envs = deeprm.make_vec("deeprm/Pool-v0", num_envs=ENVIRONMENTS, **SETTINGS).unwrapped
            found = many(envs, sjf, "mean_slowdown")
        case "picks":
            found = picks(path)
        case "picks_vector":
            envs = deeprm.make_vec("deeprm/RLScheduler-v0", num_envs=ENVIRONMENTS, jobs=path).unwrapped
            found = many(envs, picked, "mean_bounded_slowdown")
        case "fcfs_vector":
            found = in_order(Path(path))
    print("RESULT", json.dumps(found))


if __name__ == "__main__":
    main()
