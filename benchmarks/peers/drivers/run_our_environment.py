"""Run our environments under SJF: `python -m benchmarks.peers.drivers.run_our_environment NAME FILE`.

`write` makes the file: jobsets of DeepRM's own distribution, at most one job a step, as the original needs them.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import deeprm
from pipeline.core.types import BoolArray, IntArray

LOAD, STEPS, SLOTS = 130, 50, 10
ENVIRONMENTS, TURNS = 1024, 300
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
    """Return the work of one environment on the jobsets; only the time in `reset` and `step` counts."""
    env: Any = deeprm.make("deeprm/Pool-v0", **SETTINGS).unwrapped
    wall, cpu, steps, slowdowns, jobs = 0.0, 0.0, 0, 0.0, 0
    for k in range(-1, count):
        began, used = time.perf_counter(), time.process_time()
        seen, info = env.reset(options={"split": "train", "load": LOAD, "jobset": max(k, 0)})
        if k >= 0:  # the first only compiles
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - used
        over = False
        while not over:
            action = sjf({"jobs": seen["jobs"][None]}, info["action_mask"][None])[0]
            began, used = time.perf_counter(), time.process_time()
            seen, _, over, _, info = env.step(action)
            if k >= 0:
                wall, cpu, steps = wall + time.perf_counter() - began, cpu + time.process_time() - used, steps + 1
        if k >= 0:
            jobs += int(info["metrics"]["jobs"])
            slowdowns += float(info["metrics"]["mean_slowdown"])
    return {"jobs": jobs, "decisions": steps, "wall_s": wall, "cpu_s": cpu, "mean": slowdowns / count}


def many() -> dict[str, float]:
    """Return the work of 1,024 environments in lock step, on random jobsets."""
    envs: Any = deeprm.make_vec("deeprm/Pool-v0", num_envs=ENVIRONMENTS, **SETTINGS).unwrapped
    seen, infos = envs.reset(seed=1)
    wall, cpu, jobs, slowdowns = 0.0, 0.0, 0, []
    for turn in range(-20, TURNS):
        actions = sjf(seen, infos["action_mask"])
        began, used = time.perf_counter(), time.process_time()
        seen, _, _, _, infos = envs.step(actions)
        if turn >= 0:
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - used
        over = infos.get("_metrics", np.zeros(ENVIRONMENTS, bool))
        if turn >= 0 and over.any():
            jobs += int(infos["metrics"]["jobs"][over].sum())
            slowdowns.extend(infos["metrics"]["mean_slowdown"][over].tolist())
    mean = float(np.mean(slowdowns))
    return {"jobs": jobs, "decisions": TURNS * ENVIRONMENTS, "wall_s": wall, "cpu_s": cpu, "mean": mean}


def main() -> None:
    """Run one environment, or many."""
    name, path = sys.argv[1], sys.argv[2]
    count = len(np.load(path)["run"])
    print("RESULT", json.dumps(one(count) if name == "one" else many()))


if __name__ == "__main__":
    main()
