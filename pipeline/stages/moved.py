"""What `compare` says first: the agents that are not what the last commit has of them, and by how much.

It is said and nowhere written, so that no result depends on what git and DVC's cache hold.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from pipeline import storage
from pipeline.comparing.moved import Gap, gap, line
from pipeline.comparing.resampling import windows
from pipeline.comparing.statistics import ALL
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.simulation.results import COST_COLUMNS
from pipeline.storage import evidence
from pipeline.tracking.stored_outputs import StoredOutputs

OBJECTIVES_FILE = storage.REPORTS / "objectives.csv"
JOBSETS = "jobsets.parquet"


def run(params: Params) -> None:
    """Say which agents moved since the last commit; of the others only how many there are."""
    head, committed = evidence.head(), {out.path: out.md5 for out in evidence.committed_lock().outs}
    if head is None or not committed:
        return
    with tempfile.TemporaryDirectory() as scratch:
        stored = StoredOutputs(Path(scratch))
        moved = [agent for agent in params.agents if not _same(stored, committed, agent)]
        means = _means(evidence.committed_table(OBJECTIVES_FILE, ("policy", "load", "mean")))
        for agent in moved:
            say(_line(params, agent, means.get(agent), committed, stored))
    same = len(params.agents) - len(moved)
    what = f"against {head.id[:10]}, each by its objective over all loads; " if moved else f"against {head.id[:10]}: "
    say(f"compare: {what}{same} agent{'s' if same != 1 else ''} unchanged; all of them: reports/comparison.md")


def _same(stored: StoredOutputs, committed: Mapping[str, str], agent: str) -> bool:
    place = storage.results_folder("agents", agent).as_posix()
    return place in committed and stored.is_here(place, committed[place])


def _means(objectives: pd.DataFrame | None) -> dict[str, float]:
    """Return the mean of every agent over all loads."""
    if objectives is None:
        return {}
    over = objectives[objectives["load"] == ALL].drop_duplicates("policy")
    return dict(zip(over["policy"], over["mean"].astype(float), strict=True))


def _line(params: Params, agent: str, was: float | None, committed: Mapping[str, str], stored: StoredOutputs) -> str:
    place, scenario = storage.results_folder("agents", agent), params.agents[agent].scenario
    now = _results(params, agent, place)
    mean = float(now[now["policy"] == agent].groupby("load")["mean_slowdown"].mean().mean())
    if was is None:
        return line(agent, None, mean, None)
    drawn = storage.jobsets_folder(scenario).as_posix()
    if not stored.is_here(drawn, committed.get(drawn, "")):
        return line(agent, was, mean, None, "other jobsets")
    before = stored.find(place.as_posix(), committed.get(place.as_posix(), ""))
    if before is None:
        return line(agent, was, mean, None, "what it was is in no cache here")
    try:
        moved: Gap = gap(agent, _results(params, agent, before), now, params.evaluation, params.seed)
    except (UserError, ValueError):  # another code wrote them, or of other loads
        return line(agent, was, mean, None, "other columns or loads")
    return line(agent, was, mean, moved)


def _results(params: Params, agent: str, place: Path) -> pd.DataFrame:
    """Return jobset results, what the agent was trained for as `mean_slowdown`."""
    row = params.agents[agent]
    seam = problem_of(params, row.scenario)
    frame = storage.read_table(place / JOBSETS, seam.tables.jobsets)
    column, _ = COST_COLUMNS.get(row.objective, (row.objective, 1))
    frame = frame.assign(mean_slowdown=frame[column])
    return windows(frame) if seam.comparison.tested(params, row.scenario).same_windows else frame
