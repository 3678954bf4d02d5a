"""Step rates of the closest peers on PyPI and of our environments: `python -m benchmarks.peers`, in alternation.

Actions are drawn among the legal ones. Only the time in `step` counts, not the choice of an action. Ours are one
environment, and 1,024 as rows of one simulator on all cores, which peers do not offer. The peers are installed into a
folder of this run, after our own packages: gpu-choochoo (a cluster of GPUs, Gymnasium), JSSEnv (job
shop, with a mask). spark-sched-sim and sched-rl-gym are not on PyPI.
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
SECONDS, RUNS, WARM = 0.5, 5, 50


def rate(env: Any, legal: Callable[[Any], Sequence[int]]) -> float:
    """Return steps a second of a Gymnasium environment."""
    draw = random.Random(1)
    env.reset()
    steps, spent = -WARM, 0.0
    while spent < SECONDS:
        action = draw.choice(legal(env))
        began = time.perf_counter()
        _, _, terminated, truncated, _ = env.step(action)
        steps += 1
        spent += time.perf_counter() - began if steps > 0 else 0.0
        if terminated or truncated:
            env.reset()
    return steps / spent


def choochoo() -> tuple[Any, Callable[[Any], Sequence[int]]]:
    """Return the cluster of GPUs: five nodes of eight, ten slots, a day of jobs from its own generator."""
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


def vectorized() -> float:
    """Return decisions a second of our 1,024 environments, once they are compiled."""
    import numpy as np

    import deeprm

    envs: Any = deeprm.make_vec("deeprm/Pool-v0", num_envs=1024, load=130).unwrapped
    draw = np.random.default_rng(1)
    _, infos = envs.reset(seed=1)
    steps, spent = -WARM, 0.0
    while spent < SECONDS:
        chance = draw.random(infos["action_mask"].shape)
        actions = (infos["action_mask"] * (chance + 1)).argmax(axis=1)
        began = time.perf_counter()
        *_, infos = envs.step(actions)
        steps += 1
        spent += time.perf_counter() - began if steps > 0 else 0.0
    return steps * len(actions) / spent


def single() -> tuple[Any, Callable[[Any], Sequence[int]]]:
    """Return one environment of ours."""
    import deeprm

    env: Any = deeprm.make("deeprm/Pool-v0", load=130).unwrapped
    return env, lambda env: env.action_masks().nonzero()[0].tolist()


def main() -> int:
    """Print the median, minimum and maximum rate of each, and our rates relative to the fastest peer's."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *PEERS]
        if subprocess.run(words, check=False).returncode:
            return 1
        sys.path.append(folder)
        measured: dict[str, Callable[[], float]] = {
            "gpu-choochoo": lambda: rate(*choochoo()),
            "JSSEnv": lambda: rate(*job_shop()),
            "deeprm, one": lambda: rate(*single()),
            "deeprm, 1,024": vectorized,
        }
        rates: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(RUNS):
            for name, measure in measured.items():
                with redirect_stdout(StringIO()):  # the first prints at each episode's end
                    rates[name].append(measure())
        fastest = max(sorted(rates[name])[RUNS // 2] for name in ("gpu-choochoo", "JSSEnv"))
        for name, found in rates.items():
            middle = sorted(found)[RUNS // 2]
            times = f"{middle / fastest:.1f} times the fastest peer"
            print(f"{name}: {middle:,.0f} steps/s ({min(found):,.0f} to {max(found):,.0f}), {times}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
