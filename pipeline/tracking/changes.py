"""Changes of agents' results between two states of the repository, paired over the same jobsets."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd

from pipeline.comparing.moved import Gap, gap, line, metrics
from pipeline.comparing.resampling import windows
from pipeline.comparing.statistics import ALL
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage import evidence
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.simulation.results import COST_COLUMNS
from pipeline.tracking.digests import measured
from pipeline.tracking.source_tree import SourceTree
from pipeline.tracking.stored_outputs import StoredOutputs

JOBSETS = "jobsets.parquet"
OBJECTIVES_FILE = storage.REPORTS / "objectives.csv"


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


def report_changes(params: Params) -> dict[str, float]:
    """Print a line for each agent that changed since the last commit, and the number of the others; return metrics.

    They are not written: no output depends on the contents of git and of DVC's cache.
    """
    head, committed = evidence.head(), {out.path: out.md5 for out in evidence.committed_lock().outs}
    if head is None or not committed:
        return {}
    folders = {agent: storage.results_folder("agents", agent) for agent in params.agents}
    drawn = {storage.jobsets_folder(row.scenario) for row in params.agents.values()}
    now = dict[str, str]()
    for path in (*folders.values(), *drawn):
        with suppress(FileNotFoundError):  # `compare` says what is missing
            now[path.as_posix()] = measured(path)
    objectives = evidence.committed_table(OBJECTIVES_FILE, ("policy", "load", "mean"))
    means: dict[str, float] = {}
    if objectives is not None:
        over = objectives[objectives["load"] == ALL].drop_duplicates("policy")
        means = dict(zip(over["policy"], over["mean"].astype(float), strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        moved = dict(changes(params, committed, now, StoredOutputs(Path(scratch))))
    for agent, found in moved.items():
        rows = results(params, agent, folders[agent])
        mean = float(rows[rows["policy"] == agent].groupby("load")["mean_slowdown"].mean().mean())
        say(line(agent, means.get(agent), mean, found))
    same = len(params.agents) - len(moved)
    what = f"against {head.id[:10]}, each by its objective over all loads; " if moved else f"against {head.id[:10]}: "
    say(f"compare: {what}{same} agent{'s' if same != 1 else ''} unchanged; all of them: reports/comparison.md")
    return metrics(moved)
