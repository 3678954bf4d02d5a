"""Draw schedules from policies on the jobsets of `benchmarks.offline_table`, and print the best of k and their seconds.

    PYTHONPATH=. OMP_NUM_THREADS=1 python docs/results/deeprm3/drawn.py MODEL_FOLDER ...

Of models on images only jobsets of their own number of slots are played. Seconds are the processor's, a jobset; a
search of 10,000 schedules begins at the best of those drawn.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.offline_table import SCENARIO, drawn
from pipeline.config import load_params
from pipeline.core import Cluster, JobSet
from pipeline.errors import UserError
from pipeline.evaluation.planning import best_drawn, searched
from pipeline.evaluation.scheduling import mean_slowdown, schedule
from pipeline.progress import say
from pipeline.stages.policies import drawn_by_name, policy_by_name
from pipeline.workload.tables import JobTable

SIZES, JOBSETS, SEED = (30, 50), 10, 1
SAMPLES = (0, 16, 64, 256, 1024)
SEARCHED = 10_000


def table_of(jobsets: Sequence[JobSet]) -> JobTable:
    """Return jobsets as a table of a user's."""
    number = np.repeat(np.arange(len(jobsets)), [len(jobs.arrival) for jobs in jobsets])
    columns = (np.concatenate([getattr(jobs, name) for jobs in jobsets]) for name in ("arrival", "duration", "demand"))
    return JobTable(pa.table({"jobset": pa.array(number.astype(str)).dictionary_encode()}), number, *columns)


def measure(jobsets: Sequence[JobSet], model: Path) -> None:
    """Print a row for each number of schedules."""
    count = len(jobsets[0].arrival)
    scenario = load_params().step_scenarios[SCENARIO].model_copy(update={"slots": count})
    table, cluster = table_of(jobsets), Cluster.of(scenario)
    start = schedule(table, cluster, *policy_by_name(str(model), scenario), SEED, lambda *_: None)
    for samples in SAMPLES:
        begun = time.process_time()
        sampled = drawn_by_name(str(model), scenario)
        best = best_drawn(table, cluster, *sampled, start, samples, SEED, lambda *_: None) if samples else start
        drawing = time.process_time() - begun
        found = searched(table, cluster, best, SEARCHED, SEED, lambda *_: None)
        seconds = f"{drawing / len(jobsets):.2g} | {mean_slowdown(table, best):.4f} | {mean_slowdown(table, found):.4f}"
        say(f"| {count} | {model.name} | {samples:,} | {seconds} |")


def main(models: Sequence[str]) -> None:
    """Print the table."""
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
