"""Run RLScheduler's HPCEnv step by step, with observations, under SJF: CHECKOUT SWF RULE.

The sequences are the consecutive ones of our test split. An empty module takes the place of TensorFlow.
"""

import json
import sys
import time
from importlib import import_module
from types import ModuleType, SimpleNamespace

SEQUENCE = 256  # jobs


def main() -> None:
    """Run every sequence; the score is the bounded slowdown."""
    checkout, path, _ = sys.argv[1:]
    sys.path.insert(0, checkout)
    sys.modules["tensorflow"] = ModuleType("tensorflow")
    env = import_module("HPCSimPickJobs").HPCEnv(job_score_type=0)
    env.my_init(path)
    count = env.loads.size()
    wall, cpu, steps, means = 0.0, 0.0, 0, []
    for start in range(count * 4 // 5, count - SEQUENCE + 1, SEQUENCE):
        env.np_random = SimpleNamespace(randint=lambda *_, start=start: start)
        began, used = time.perf_counter(), time.process_time()
        env.reset_for_test(SEQUENCE, start)
        env.build_observation()
        wall, cpu, over = wall + time.perf_counter() - began, cpu + time.process_time() - used, False
        while not over:
            run = [pair[0].request_time if pair[0] else float("inf") for pair in env.pairs]
            action = run.index(min(run))
            began, used = time.perf_counter(), time.process_time()
            _, total, over, _ = env.step_for_test(action)
            wall, cpu, steps = wall + time.perf_counter() - began, cpu + time.process_time() - used, steps + 1
        means.append(total)
    result = {"jobs": SEQUENCE * len(means), "decisions": steps, "wall_s": wall, "cpu_s": cpu}
    print("RESULT", json.dumps({**result, "mean": sum(means) / len(means)}))


if __name__ == "__main__":
    main()
