"""Run RLScheduler's HPCEnv on a queue: CHECKOUT SWF RULE; its own loop for heuristics, without observations.

Its module imports TensorFlow, which this loop does not use, so an empty module takes its place.
"""

import json
import sys
import time
from importlib import import_module
from types import ModuleType

LEAST_S = 0.2  # processor time: the queue is repeated until then


def main() -> None:
    """Run the whole log as one sequence; the score is the wait."""
    checkout, path, rule = sys.argv[1:]
    sys.path.insert(0, checkout)
    sys.modules["tensorflow"] = ModuleType("tensorflow")
    env = import_module("HPCSimPickJobs").HPCEnv(job_score_type=1, backfil=rule == "easy")
    env.my_init(path)
    env.start, env.num_job_in_batch = 0, env.loads.size()
    env.last_job_in_batch, env.next_arriving_job_idx = env.num_job_in_batch, 1
    env.current_timestamp = env.loads[0].submit_time
    env.job_queue.append(env.loads[0])
    began, used, times, cpu = time.perf_counter(), time.process_time(), 0, 0.0
    while cpu < LEAST_S:
        waits, times = env.schedule_curr_sequence_reset(env.fcfs_score), times + 1  # restarts by itself
        cpu = time.process_time() - used
    wall, cpu, mean = (time.perf_counter() - began) / times, cpu / times, sum(waits.values())
    result = {"jobs": len(waits), "decisions": len(waits), "wall_s": wall, "cpu_s": cpu, "mean": mean}
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    main()
