"""Best schedules of the first test jobsets of a scenario, with full knowledge of their jobs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.config.pool.heuristics import must_be_solvable
from pipeline.core.schemas.tables import HINDSIGHT
from pipeline.core.types import Policy
from pipeline.errors import UserError
from pipeline.execution.commands import Setting
from pipeline.execution.executor import executor
from pipeline.problems.pool.env.evaluation.hindsight_model import Work, mean_slowdown, solve_work
from pipeline.problems.pool.env.evaluation.play import played
from pipeline.problems.pool.env.evaluation.searching import order_of, search
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.heuristics.scores import heuristics_with
from pipeline.progress import progress
from pipeline.simulation.rollout import numbered

SEARCHED = 50_000  # schedules per jobset before the solver starts: 0.05 s that save minutes
SEARCH = "search"


class Warm(NamedTuple):
    """A jobset with the best schedule of a heuristic, or of a search that begins with it."""

    load: int
    jobset: int
    policy: str
    work: Work


def solve(params: Params, scenario: str) -> pd.DataFrame:
    """Return the table HINDSIGHT of a scenario; raise a UserError for a stream, or if jobs are placed ahead."""
    row, how = params.pool_scenario(scenario), params.hindsight
    must_be_solvable("params.yaml", scenario, row)
    test = read_jobsets(storage.jobsets_folder(scenario), "test", row.resources, row.known_load)
    few = {load: group[: how.jobsets] for load, group in test.items()}
    with progress(f"hindsight {scenario}, first schedules", 1, brief=True):
        made = warm_starts(params, scenario, few, heuristics_with(storage.read_chosen(scenario).knobs))
        warm = searched(made, Cluster.of(row), params.seed)
    solving = partial(solve_work, cluster=Cluster.of(row), limit=how.limit, seed=params.seed)
    side_by_side = Setting(backend="processes", workers=params.threads)
    with (
        executor(params.threads, side_by_side) as workers,
        progress(f"hindsight {scenario}, jobsets", len(warm)) as advance,
    ):
        found = workers.map(solving, [one.work for one in warm], on_progress=advance)
    rows = [
        {
            "load": start.load,
            "jobset": start.jobset,
            "jobs": len(start.work.warm),
            "objective": one.objective,
            "bound": one.bound,
            "status": one.status,
            "warm": start.policy,
            "warm_slowdown": mean_slowdown(start.work.jobs, start.work.warm),
        }
        for start, one in zip(warm, found, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(HINDSIGHT.columns))


def warm_starts(
    params: Params, scenario: str, jobsets: Mapping[int, Sequence[JobSet]], heuristics: Mapping[str, Policy]
) -> list[Warm]:
    """Return the best heuristic schedule of each jobset; raise a UserError if no heuristic starts all jobs in time."""
    row = params.pool_scenario(scenario)
    episodes, loads, numbers, key = numbered(jobsets, params.seed)
    flat = batch(episodes)
    ends = played(list(heuristics.values()), flat, key, Cluster.of(row), row.step_limit)
    starts = [np.split(end.start, flat.first[1:-1]) for end in ends]
    found = []
    for place, (load, k) in enumerate(zip(loads.tolist(), numbers.tolist(), strict=True)):
        jobs = jobsets[load][k]
        known = {name: mine[place] for name, mine in zip(heuristics, starts, strict=True) if mine[place].min() >= 0}
        if not known:
            raise UserError(f"jobset {k} of load {load}: no heuristic starts all jobs in {row.step_limit} steps")
        name = min(known, key=lambda policy: mean_slowdown(jobs, known[policy]))
        found.append(Warm(load, k, name, Work(jobs, known[name])))
    return found


def searched(warm: Sequence[Warm], cluster: Cluster, seed: int) -> list[Warm]:
    """Return the warm starts, improved by a local search where that finds a better schedule."""
    jobs = batch([one.work.jobs for one in warm])
    order = order_of(jobs, np.concatenate([one.work.warm for one in warm]))
    found = np.split(search(jobs, cluster.capacity, order, SEARCHED, seed), jobs.first[1:-1])
    return [
        one._replace(policy=SEARCH, work=Work(one.work.jobs, start))
        if mean_slowdown(one.work.jobs, start) < mean_slowdown(one.work.jobs, one.work.warm)
        else one
        for one, start in zip(warm, found, strict=True)
    ]
