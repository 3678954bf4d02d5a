"""Run spark-sched-sim on a queue of jobs of one executor: CHECKOUT SWF RULE; the first waiting job starts."""

import json
import sys
import time
from importlib import import_module
from typing import Any

import numpy as np


class Queue:
    """The log as a sampler of jobs; a job is a stage of one task."""

    def __init__(self, path: str, parts: Any, graphs: Any) -> None:
        submit, self.run = np.loadtxt(path, dtype=int, comments=";", usecols=(1, 3)).T
        self.submit = submit - submit[0]  # its clock begins at the first job
        no_edges = (np.empty((0, 2), dtype=int),)  # its environment expects at least one
        self.parts, self.graph = parts, type("OneStage", (graphs.DiGraph,), {"edges": no_edges})

    def reset(self, _: Any) -> None:
        """Keep no generator: these jobs are not drawn."""

    def job_sequence(self, _: Any) -> list[tuple[int, Any]]:
        """Return all arrivals."""
        return [(int(time), self._job(k)) for k, time in enumerate(self.submit)]

    def task_duration(self, job: Any, *_: Any) -> float:
        """Return the run time of a job's only task."""
        return float(self.run[job.id_])

    def _job(self, k: int) -> Any:
        graph = self.graph()
        graph.add_node(0)
        stage = self.parts.Stage(0, k, 1, float(self.run[k]))
        return self.parts.Job(k, [stage], graph, float(self.submit[k]))


def main() -> None:
    """Run one episode; executors move at once."""
    checkout, path, _ = sys.argv[1:]
    sys.path.insert(0, checkout)
    queue = Queue(path, import_module("spark_sched_sim.components"), import_module("networkx"))
    with open(path, encoding="utf-8") as lines:  # noqa: PTH123
        machines = int(next(lines).split(":")[1])
    samplers: Any = import_module("spark_sched_sim.data_samplers")
    samplers.Queue = lambda **_: queue
    settings = {"num_executors": machines, "job_arrival_cap": len(queue.run), "moving_delay": 0.0}
    env = import_module("spark_sched_sim").SparkSchedSimEnv({**settings, "data_sampler_cls": "Queue"})
    env.reset(seed=1)
    steps, over = 0, False
    began, cpu = time.perf_counter(), time.process_time()
    while not over:
        over = env.step({"stage_idx": 0, "num_exec": 1})[2]
        steps += 1
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    waits = [env.jobs[k].t_completed - queue.submit[k] - queue.run[k] for k in range(len(queue.run))]
    result = {"jobs": len(waits), "decisions": steps, "wall_s": wall, "cpu_s": cpu, "mean": float(np.mean(waits))}
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    main()
