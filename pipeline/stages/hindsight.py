"""`hindsight`: solve the first test jobsets of a scenario with full knowledge of their jobs."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline import storage, tracking
from pipeline.config import Params, must_be_solvable
from pipeline.core import Cluster, JobSet, Policy, batch, keys
from pipeline.errors import UserError
from pipeline.evaluation.hindsight_model import Hindsight, Work, mean_slowdown, solve_all
from pipeline.evaluation.play import MOST_JOBSETS, Game, played, unheard
from pipeline.evaluation.searching import order_of, search
from pipeline.evaluation.tuning import heuristics_with
from pipeline.progress import progress
from pipeline.schemas import HINDSIGHT

TABLE = "hindsight.parquet"
SEARCHED = 50_000  # schedules of each jobset before the solver begins: 0.05 s, and worth minutes of it
SEARCH = "search"


class Warm(NamedTuple):
    """A jobset, and the best schedule that a heuristic made of it, or a search from that one."""

    load: int
    jobset: int
    policy: str
    work: Work


def run(params: Params, scenario: str) -> None:
    """Write reports/tables/hindsight/<scenario>: the best schedule found for each jobset, and its bound."""
    must_be_solvable("params.yaml", scenario, params.any_scenario(scenario))
    with tracking.stage("hindsight", scenario, params) as run:
        run.inputs(storage.jobsets_folder(scenario), storage.results_folder("heuristics", scenario))
        row, how = params.scenario(scenario), params.hindsight
        test = storage.read_jobsets(storage.jobsets_folder(scenario), "test", row.resources)
        few = {load: group[: how.jobsets] for load, group in test.items()}
        made = warm_starts(params, scenario, few, heuristics_with(storage.read_chosen(scenario).knobs))
        warm = searched(made, Cluster.of(row), params.seed)
        found: list[Hindsight] = []
        solving = solve_all([one.work for one in warm], Cluster.of(row), how.limit, params.seed, params.threads)
        with progress(f"hindsight {scenario}, jobsets", len(warm)) as advance, closing(solving):
            for one in solving:
                found.append(one)
                advance(len(found), f"{sum(each.status == 'OPTIMAL' for each in found)} optimal")
        frame = hindsight_frame(warm, found)
        means = frame.groupby("load")["objective"].mean()
        curve = {int(load): float(mean) for load, mean in zip(means.index, means, strict=True)}
        run.parent_curve("slowdown/hindsight", curve)
        place = storage.results_folder("hindsight", scenario)
        storage.discard(place)
        storage.write_table(place / TABLE, frame, HINDSIGHT)


def warm_starts(
    params: Params, scenario: str, jobsets: Mapping[int, Sequence[JobSet]], heuristics: Mapping[str, Policy]
) -> list[Warm]:
    """Return the best schedule that a heuristic makes of each jobset.

    Raises:
        UserError: no heuristic starts all jobs of a jobset within the scenario's step limit.
    """
    row = params.scenario(scenario)
    named = [(load, k, jobs) for load, group in jobsets.items() for k, jobs in enumerate(group)]
    together = batch([jobs for _, _, jobs in named])
    number = np.array([load * MOST_JOBSETS + k for load, k, _ in named])
    game = Game(together, Cluster.of(row), row.step_limit, True, keys(params.seed, number, np.zeros_like(number)))
    ends = played(game, list(heuristics.values()), unheard)
    starts = [np.split(end.start, together.first[1:-1]) for end in ends]
    found = []
    for place, (load, k, jobs) in enumerate(named):
        known = {name: mine[place] for name, mine in zip(heuristics, starts, strict=True) if mine[place].min() >= 0}
        if not known:
            raise UserError(f"jobset {k} of load {load}: no heuristic starts all jobs in {row.step_limit} steps")
        name = min(known, key=lambda policy: mean_slowdown(jobs, known[policy]))
        found.append(Warm(load, k, name, Work(jobs, known[name])))
    return found


def searched(warm: Sequence[Warm], cluster: Cluster, seed: int) -> list[Warm]:
    """Return the warm starts, improved by a local search where it finds anything better."""
    jobs = batch([one.work.jobs for one in warm])
    order = order_of(jobs, np.concatenate([one.work.warm for one in warm]))
    found = np.split(search(jobs, cluster.capacity, order, SEARCHED, seed).start, jobs.first[1:-1])
    return [
        one._replace(policy=SEARCH, work=Work(one.work.jobs, start))
        if mean_slowdown(one.work.jobs, start) < mean_slowdown(one.work.jobs, one.work.warm)
        else one
        for one, start in zip(warm, found, strict=True)
    ]


def hindsight_frame(warm: Sequence[Warm], found: Sequence[Hindsight]) -> pd.DataFrame:
    """Return the table of what was found."""
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
