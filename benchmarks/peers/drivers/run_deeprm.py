"""Run the original DeepRM under its own SJF, with images: CHECKOUT FILE; under Python 2.7, so without annotations.

Its module imports Theano and Matplotlib, which are used for other representations and pictures; empty modules take
their place.
"""

import json
import sys
import time
import types

import numpy as np


def main():  # type: () -> None
    """Run it, and print a line of JSON."""
    sys.path.insert(0, sys.argv[1])
    for name in ("theano", "matplotlib", "matplotlib.pyplot"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"]  # type: ignore[attr-defined]
    environment, parameters, agents = map(__import__, ("environment", "parameters", "other_agents"))

    jobsets = np.load(sys.argv[2])
    settings = parameters.Parameters()
    settings.num_nw, settings.num_ex, settings.simu_len = 10, len(jobsets["run"]), jobsets["run"].shape[1]
    settings.episode_max_length, settings.job_num_cap = 2000, 200  # colours: one is free for every running job
    settings.compute_dependent_parameters()
    env = environment.Env(
        settings, nw_len_seqs=jobsets["run"], nw_size_seqs=jobsets["demand"], repre="image", end="all_done"
    )
    wall = cpu = slowdowns = 0.0
    steps = jobs = 0
    for _ in range(settings.num_ex):
        over = False
        while not over:
            action = agents.get_sjf_action(env.machine, env.job_slot)
            began, used = time.time(), time.clock()  # type: ignore[attr-defined]
            _, _, over, record = env.step(action)
            wall, cpu, steps = wall + time.time() - began, cpu + time.clock() - used, steps + 1  # type: ignore[attr-defined]
        each = [(job.finish_time - job.enter_time) / float(job.len) for job in record.record.values()]
        jobs, slowdowns = jobs + len(each), slowdowns + sum(each) / len(each)
    result = {"jobs": jobs, "decisions": steps, "wall_s": wall, "cpu_s": cpu, "mean": slowdowns / settings.num_ex}
    sys.stdout.write("RESULT " + json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
