"""Changes of agents' results between two states of the repository, paired over the same jobsets."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from pipeline.comparing.moved import Gap, gap, metrics
from pipeline.comparing.resampling import windows
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.simulation.results import COST_COLUMNS
from pipeline.tracking.source_tree import SourceTree
from pipeline.tracking.stored_outputs import StoredOutputs

JOBSETS = "jobsets.parquet"


def changes(
    params: Params, was: Mapping[str, str], now: Mapping[str, str], stored: StoredOutputs
) -> Iterator[tuple[str, Gap | str]]:
    """Yield each agent whose results changed, with the change or the reason why it has no interval.

    `was` and `now` have the md5 of outputs by path; `stored` finds them.
    """
    for agent, row in params.agents.items():
        place = storage.results_folder("agents", agent).as_posix()
        drawn = storage.jobsets_folder(row.scenario).as_posix()
        if place not in now or now[place] == was.get(place):
            continue
        before, here = (stored.find(place, md5s.get(place, "")) for md5s in (was, now))
        if was.get(drawn) != now.get(drawn):
            yield agent, "other jobsets"
        elif before is None or here is None:
            yield agent, "the previous results are in no cache here"
        else:
            try:
                then, today = (results(params, agent, folder) for folder in (before, here))
                yield agent, gap(agent, then, today, params.evaluation, params.seed)
            except (UserError, ValueError):  # other code wrote them, or they have other loads
                yield agent, "other columns or loads"


def between(before: SourceTree, tree: SourceTree, stored: StoredOutputs) -> dict[str, float]:
    """Return the metrics of the changes between two trees, by their dvc.lock, as `compare` records them."""
    was, now = (
        {out["path"]: out.get("md5", "") for entry in one.lock.values() for out in entry.get("outs", [])}
        for one in (before, tree)
    )
    return metrics(dict(changes(tree.params, was, now, stored)))


def results(params: Params, agent: str, place: Path) -> pd.DataFrame:
    """Return jobset results, with the agent's objective as `mean_slowdown`."""
    row = params.agents[agent]
    problem = problem_of(params, row.scenario)
    frame = storage.read_table(place / JOBSETS, problem.tables.jobsets)
    column, _ = COST_COLUMNS.get(row.objective, (row.objective, 1))
    frame = frame.assign(mean_slowdown=frame[column])
    return windows(frame) if problem.comparison.tested(params, row.scenario).same_windows else frame
