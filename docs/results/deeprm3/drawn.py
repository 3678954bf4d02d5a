"""Draw schedules from policies on the jobsets of `benchmarks.offline_table`, and print the best of k and their seconds.

    PYTHONPATH=. python docs/results/deeprm3/drawn.py MODEL_FOLDER ...

Of models on images only jobsets of their own number of slots are played. One thread; seconds are the processor's, a
jobset, of the policy's own schedule and those it draws. A search of 10,000 schedules begins at the best of them.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import torch

from benchmarks.offline_table import SCENARIO, drawn
from pipeline.config import load_params
from pipeline.core import IntArray
from pipeline.errors import UserError
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import drawn_by_name, policy_by_name
from pipeline.problems.pool.scheduling.playing import mean_slowdown, schedule
from pipeline.problems.pool.scheduling.schedule import best_drawn, searched
from pipeline.progress import say
from pipeline.scheduling.user_jobs import UserJobs

SIZES, JOBSETS, SEED = (30, 50), 10, 1
SAMPLES = (0, 16, 64, 256, 1024)
SEARCHED = 10_000


def table_of(jobsets: Sequence[JobSet]) -> UserJobs[JobSet]:
    """Return jobsets as a table of a user's."""
    number = np.repeat(np.arange(len(jobsets)), [len(jobs.arrival) for jobs in jobsets])
    columns = (np.concatenate([getattr(jobs, name) for jobs in jobsets]) for name in ("arrival", "duration", "demand"))
    ids = pa.table({"jobset": pa.array(number.astype(str)).dictionary_encode()})
    return UserJobs(ids, number, JobSet(*columns))


def measure(jobsets: Sequence[JobSet], model: Path) -> None:
    """Print a row for each number of schedules."""
    count = len(jobsets[0].arrival)
    scenario = load_params().pool_scenario(SCENARIO).model_copy(update={"slots": count})
    table, cluster = table_of(jobsets), Cluster.of(scenario)
    own, sampled = policy_by_name(str(model), scenario, SCENARIO), drawn_by_name(str(model), scenario)

    def best_of(samples: int) -> IntArray:
        start = schedule(table, cluster, *own, SEED, no_progress)
        return best_drawn(table, cluster, *sampled, start, samples, SEED, no_progress) if samples else start

    best_of(max(SAMPLES))  # compiles
    for samples in SAMPLES:
        begun = time.process_time()
        best = best_of(samples)
        seconds = (time.process_time() - begun) / len(jobsets)
        found = searched(table, cluster, best, SEARCHED, SEED, no_progress)
        means = f"{mean_slowdown(table, best):.4f} | {mean_slowdown(table, found):.4f}"
        say(f"| {count} | {model.name} | {samples:,} | {seconds:.2g} | {means} |")


def no_progress(percent: float, note: object) -> None:
    """Hear how far it is, and say nothing."""


def main(models: Sequence[str]) -> None:
    """Print the table."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    say("| jobs | model | drawn | seconds | slowdown, best of these and its own | after a search of 10,000 |")
    say("| ---: | --- | ---: | ---: | ---: | ---: |")
    for count in SIZES:
        jobsets = drawn(load_params(), count, JOBSETS)
        for model in models:
            try:
                measure(jobsets, Path(model))
            except UserError as error:
                say(f"{model}, {count} jobs: left out: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
