"""Run one policy over a user's jobs."""

import numpy as np
import pandas as pd

from pipeline.core import Cluster, Policy, batch, keys
from pipeline.errors import UserError
from pipeline.simulator.batched import Batched
from pipeline.simulator.rollout import play
from pipeline.workload.tables import JobTable

PATIENCE = 20  # times the steps that one job after another would take


def schedule(
    frame: pd.DataFrame, table: JobTable, cluster: Cluster, policy: Policy, masked: bool, seed: int
) -> pd.DataFrame:
    """Return when each job of a table starts and finishes, in the table's order.

    Raises:
        UserError: the policy leaves jobs undone (one without masks may stand still for ever).
    """
    jobs = batch(table.jobsets)
    limit = int(jobs.arrival.max() + (1 if masked else PATIENCE) * jobs.duration.sum() + cluster.horizon)
    simulator = Batched(jobs, cluster, limit, skip_forced=masked)
    number = np.arange(jobs.episodes)
    play(simulator, policy, keys(seed, number, np.zeros_like(number)))
    end = simulator.schedule()
    undone = int((end.finish < 0).sum())
    if undone:
        raise UserError(f"the policy leaves {undone} of {len(end.start)} jobs undone after {limit} steps")
    slowdown = (end.finish - jobs.arrival) / jobs.duration
    found = pd.DataFrame(
        {"start": end.start.astype("int64"), "finish": end.finish.astype("int64"), "slowdown": slowdown}
    )
    found.index = pd.Index(table.rows)
    return pd.concat([frame[["jobset", "job"]].reset_index(drop=True), found.sort_index()], axis=1)
