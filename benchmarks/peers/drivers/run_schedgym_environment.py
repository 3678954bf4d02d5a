"""Run sched-rl-gym's DeepRM-v0 under its own SJF, with images: CHECKOUT FILE."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

SLOTS = 10


def given(job_class: Any, run: Any, demand: Any) -> dict[str, Any]:
    """Return the attributes of a generator that yields the jobs of one jobset, a step at a time."""

    def begin(self: Any) -> None:
        self.at = 0

    def step(self: Any, offset: int = 1) -> list[Any]:
        self.at += offset
        if self.at >= len(run) or not run[self.at]:
            return []
        took, (cpu, memory) = int(run[self.at]), map(int, demand[self.at])
        job = job_class(job_id=self.at, submission_time=self.at, execution_time=took, requested_time=took)
        job.requested_processors = job.processors_allocated = cpu
        job.requested_memory = job.memory_use = memory
        return [job]

    return {"__init__": begin, "step": step}


def main() -> None:
    """Run every jobset until all its jobs have finished."""
    sys.path.insert(0, sys.argv[1])
    base: Any = import_module("schedgym.envs.base")
    parent = import_module("schedgym.envs.workload").DeepRmWorkloadGenerator
    job_class, jobsets = import_module("schedgym.job").Job, np.load(sys.argv[2])
    wall, cpu, steps, slowdowns, jobs = 0.0, 0.0, 0, 0.0, 0
    for run, demand in zip(jobsets["run"], jobsets["demand"]):  # noqa: B905  # Python 3.8
        kind = type("Given", (parent,), given(job_class, run, demand))
        base.build_workload = lambda _, kind=kind: kind()
        env = import_module("schedgym.envs").DeepRmEnv(job_slots=SLOTS, time_limit=10**6, job_num_cap=200)
        began, used = time.perf_counter(), time.process_time()
        env.reset()
        wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - used
        count = int((run > 0).sum())
        while len(env.scheduler.queue_completed) < count:
            action = env.scheduler.sjf_action(SLOTS)
            began, used = time.perf_counter(), time.process_time()
            env.step(action)
            wall, cpu, steps = wall + time.perf_counter() - began, cpu + time.process_time() - used, steps + 1
        jobs, slowdowns = jobs + count, slowdowns + float(np.mean(env.scheduler.slowdown))
    mean = slowdowns / len(jobsets["run"])
    print("RESULT", json.dumps({"jobs": jobs, "decisions": steps, "wall_s": wall, "cpu_s": cpu, "mean": mean}))


if __name__ == "__main__":
    main()
