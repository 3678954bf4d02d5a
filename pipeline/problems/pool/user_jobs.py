"""A user's own jobs on one pooled cluster, in whole steps and units."""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.config import Params, PoolLog, PoolScenario
from pipeline.logs.predicting.run_times import predicted
from pipeline.logs.registry import read
from pipeline.logs.user_files import distinct
from pipeline.logs.windows import periods
from pipeline.problems.pool.nouns import JobSet
from pipeline.problems.pool.tables import user_job_columns
from pipeline.problems.pool.workload.windows import describe, discretise
from pipeline.progress import ProgressCallback
from pipeline.scheduling.user_jobs import JobColumns, UserJobs, of_log


def job_columns(params: Params, scenario: PoolScenario) -> JobColumns[JobSet]:
    """Return how a user's jobs are read; a log by the settings of params.yaml's own, if there is one."""

    def jobs(frame: pd.DataFrame, where: str) -> JobSet:
        short = frame.drop(columns=["jobset", "job", "arrival"]).astype("int16")  # of at most 10,000, as units are
        return JobSet(
            frame["arrival"].to_numpy(),
            short["duration"].to_numpy(),
            np.ascontiguousarray(short[list(scenario.resources)].to_numpy()),
            short["estimate"].to_numpy() if "estimate" in short else None,
        )

    def log(path: Path, format: str, on_progress: ProgressCallback) -> UserJobs[JobSet]:
        own = params.workload if isinstance(params.workload, PoolLog) else PoolLog(name="swf", path=str(path))
        trace, notes = distinct(read(path, format, on_progress)), []
        if scenario.policies_know == "predictions":
            learned = max(1, periods(len(trace.id), own)["train"][1])
            trace = predicted(trace, np.arange(learned))
            notes = [f"run times are predicted as the first {learned:,} jobs teach: judge by the jobs behind them"]
        steps = discretise(trace, own, scenario.resources, scenario.horizon, scenario.policies_know != "durations")
        found = JobSet(steps.arrival, steps.duration, steps.demand, steps.estimate)
        return of_log(steps.id, found, [*describe(trace, steps), *notes])

    columns = user_job_columns(scenario.resources, scenario.horizon)
    return JobColumns(scenario.policies_know, columns, jobs, log)
