"""Run a scheduler of sched-rl-gym on a queue, second by second: CHECKOUT SWF RULE."""

import json
import sys
import time
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Run until all jobs have finished."""
    checkout, path, rule = sys.argv[1:]
    sys.path.insert(0, checkout)
    with Path(path).open(encoding="utf-8") as lines:
        machines = int(next(lines).split(":")[1])
    kind = {"fcfs": "FifoScheduler", "easy": "EasyScheduler"}[rule]
    scheduler = getattr(import_module("schedgym.scheduler"), kind)(machines, 0, ignore_memory=True)
    source = import_module("schedgym.workload").SwfGenerator(path, machines, 0, ignore_memory=True)
    simulation = import_module("schedgym.simulator")
    simulator = simulation.Simulator.make(simulation.SimulationType.TIME_BASED, source, scheduler)
    count = len(source)
    began, cpu = time.perf_counter(), time.process_time()
    while source.current_element < count:
        simulator.step()
    while len(scheduler.queue_completed) < count:
        scheduler.step()
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    waits = [job.start_time - job.submission_time for job in scheduler.queue_completed]
    result = {"jobs": count, "decisions": count, "wall_s": wall, "cpu_s": cpu, "mean": sum(waits) / count}
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    main()
