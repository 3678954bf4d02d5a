"""Changes of agents' results between two states of the repository, paired over the same jobsets."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import FEW, windows
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core import storage
from pipeline.core.config import Evaluation, Params
from pipeline.core.storage import evidence
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.simulation.results import COST_COLUMNS
from pipeline.tracking.digests import StoredOutputs, measured
from pipeline.tracking.source_tree import SourceTree

JOBSETS = "jobsets.parquet"
OBJECTIVES_FILE = storage.REPORTS / "objectives.csv"
BEFORE = "before"
CHANGE, ENDS = "change", ("", " from", " to")  # parts of metric names, after the agent; MLflow sorts columns


class Gap(NamedTuple):
    """Relative change of a mean, and the ends of its interval."""

    difference: float
    low: float
    high: float
    n: int  # jobsets, or windows of a log


def changes(
    params: Params, was: Mapping[str, str], now: Mapping[str, str], stored: StoredOutputs
) -> Iterator[tuple[str, Gap | str]]:
    """Yield each agent whose results changed, with the change or the reason why it has no interval.

    `was` and `now` map the path of each output to its md5; `stored` finds the outputs.
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
    """Return the metrics that `compare` records, for the changes between two source trees, by their dvc.lock."""
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

    The changes are not written to a file: no output depends on the contents of git and of DVC's cache.
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


def gap(agent: str, was: pd.DataFrame, now: pd.DataFrame, settings: Evaluation, seed: int) -> Gap:
    """Return the change of an agent over all loads, paired over the same jobsets; ValueError if the jobsets differ.

    `was` and `now` are its jobset results, with the compared column as `mean_slowdown`.
    """
    both = pd.concat([now[now["policy"] == agent], was[was["policy"] == agent].assign(policy=BEFORE)])
    references = {BEFORE: dict.fromkeys(both["load"].unique(), BEFORE)}
    rows = comparison(both, "", references, settings, np.random.default_rng(seed))
    over = rows[rows["load"] == ALL].iloc[0]
    return Gap(over["difference"], over["difference_low"], over["difference_high"], int(over["n"]))


def metrics(moved: Mapping[str, Gap | str]) -> dict[str, float]:
    """Return changes in percent and the ends of their intervals, by metric name: the mean over agents, then each agent.

    The mean's interval is the mean of the intervals, so it is too wide rather than too narrow.

    >>> metrics({"net": Gap(0.2, 0.1, 0.3, 50), "old": Gap(-0.1, -0.2, 0.0, 50), "other": "other jobsets"})["change"]
    5.0
    >>> list(metrics({"net": Gap(0.2, 0.1, 0.3, 50)}).items())[3:]
    [('net change', 20.0), ('net change from', 10.0), ('net change to', 30.0)]
    """
    gaps = {f"{agent} ": found[:3] for agent, found in moved.items() if isinstance(found, Gap)}
    rows = {"": np.mean(list(gaps.values()), axis=0), **gaps} if gaps else {}
    return {
        f"{start}{CHANGE}{end}": round(100 * float(value), 2)
        for start, row in rows.items()
        for end, value in zip(ENDS, row, strict=True)
    }


def line(agent: str, was: float | None, now: float, moved: Gap | str) -> str:
    """Return the line of an agent, with the interval of its change or the reason why there is none.

    >>> line("net", 3.24, 3.96, Gap(0.222, 0.2, 0.24, 50))
    'net: 3.24 -> 3.96 (+22 %, 20 to 24)'
    >>> line("net", 2.0, 1.0, "other jobsets")
    'net: 2.00 -> 1.00 (-50 %; no interval: other jobsets)'
    >>> line("net", None, 1.0, "")
    'net: new, 1.00'
    """
    if was is None:
        return f"{agent}: new, {now:.2f}"
    if isinstance(moved, str):
        change = f" ({100 * (now / was - 1):+.0f} %; no interval: {moved})" if was else f" (no interval: {moved})"
        return f"{agent}: {was:.2f} -> {now:.2f}{change}"
    span = "range " if moved.n < FEW else ""
    low, high = 100 * moved.low, 100 * moved.high
    digits = 0 if high - low >= 2 else 1  # "1 to 1" would be useless
    ends = f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{agent}: {was:.2f} -> {now:.2f} ({100 * moved.difference:+.{digits}f} %, {span}{ends})"
