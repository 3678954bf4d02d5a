"""How fast the closest peers on PyPI step: `python -m benchmarks.peers`, under actions drawn among the legal ones.

Only the time within `step` counts, on one core, and not that of finding and drawing an action. The peers are fetched
into a folder of this run, behind our own packages: gpu-choochoo (a cluster of GPUs, Gymnasium), JSSEnv (job shop, with
a mask). spark-sched-sim and sched-rl-gym are not on PyPI.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

PEERS = ("gpu-choochoo==0.1.0", "JSSEnv==1.1.0")
SECONDS, RUNS = 0.5, 5


def rate(env: Any, legal: Callable[[Any], Sequence[int]]) -> float:
    """Return steps a second of a Gymnasium environment."""
    draw = random.Random(1)
    env.reset()
    steps, spent = 0, 0.0
    while spent < SECONDS:
        action = draw.choice(legal(env))
        began = time.perf_counter()
        _, _, terminated, truncated, _ = env.step(action)
        spent += time.perf_counter() - began
        steps += 1
        if terminated or truncated:
            env.reset()
    return steps / spent


def choochoo() -> tuple[Any, Callable[[Any], Sequence[int]]]:
    """Return the cluster of GPUs: five nodes of eight, ten slots, a day's jobs of its own generator."""
    module = import_module("gpu_choochoo")
    source = module.RealisticWorkloadGenerator(seed=1)
    kinds = [(name, float(told["vram_gb"])) for name, told in source.gpu_catalog.items()]
    nodes = [
        {"node_id": f"n{place}", "gpu_type": name, "total_gpus": 8, "total_vram_gb": 8 * memory}
        for place, (name, memory) in enumerate((kinds * 5)[:5])
    ]
    jobs = source.generate_job_trace(max_gpus=8)

    def legal(env: Any) -> Sequence[int]:
        waiting = env.cluster.pending_queue[: env.max_queue_obs]
        return [0, *(1 + place for place, job in enumerate(waiting) if env._find_best_placement(job))]

    return module.GPUSchedulerEnv(nodes, jobs), legal


def job_shop() -> tuple[Any, Callable[[Any], Sequence[int]]]:
    """Return Taillard's eightieth job shop, 100 jobs on 20 machines."""
    import numpy as np

    return import_module("JSSEnv.envs").JssEnv(), lambda env: [int(one) for one in np.flatnonzero(env.legal_actions)]


def main() -> int:
    """Print the median, least and most rate of each peer."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *PEERS]
        if subprocess.run(words, check=False).returncode:
            return 1
        sys.path.append(folder)
        for name, peer in (("gpu-choochoo", choochoo), ("JSSEnv", job_shop)):
            with redirect_stdout(StringIO()):  # the first prints at each end
                rates = sorted(rate(*peer()) for _ in range(RUNS))
            print(f"{name}: {rates[RUNS // 2]:,.0f} steps/s ({rates[0]:,.0f} to {rates[-1]:,.0f})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
