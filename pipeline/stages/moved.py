"""Changes of agents' results since the last commit, printed by `compare`.

They are not written: no output depends on the contents of git and of DVC's cache.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from pipeline.comparing.moved import gap, line
from pipeline.comparing.resampling import windows
from pipeline.comparing.statistics import ALL
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage import evidence
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.simulation.results import COST_COLUMNS
from pipeline.tracking.stored_outputs import StoredOutputs

OBJECTIVES_FILE = storage.REPORTS / "objectives.csv"
JOBSETS = "jobsets.parquet"


def run(params: Params) -> None:
    """Print a line for each agent that changed since the last commit, and the number of the others."""
    head, committed = evidence.head(), {out.path: out.md5 for out in evidence.committed_lock().outs}
    if head is None or not committed:
        return
    with tempfile.TemporaryDirectory() as scratch:
        stored = StoredOutputs(Path(scratch))
        folders = {agent: storage.results_folder("agents", agent).as_posix() for agent in params.agents}
        moved = [agent for agent, out in folders.items() if not stored.is_here(out, committed.get(out, ""))]
        objectives = evidence.committed_table(OBJECTIVES_FILE, ("policy", "load", "mean"))
        means: dict[str, float] = {}
        if objectives is not None:
            over = objectives[objectives["load"] == ALL].drop_duplicates("policy")
            means = dict(zip(over["policy"], over["mean"].astype(float), strict=True))
        for agent in moved:
            say(_line(params, agent, means.get(agent), committed, stored))
    same = len(params.agents) - len(moved)
    what = f"against {head.id[:10]}, each by its objective over all loads; " if moved else f"against {head.id[:10]}: "
    say(f"compare: {what}{same} agent{'s' if same != 1 else ''} unchanged; all of them: reports/comparison.md")


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
        return line(agent, was, mean, None, "the previous results are in no cache here")
    try:
        moved = gap(agent, _results(params, agent, before), now, params.evaluation, params.seed)
    except (UserError, ValueError):  # other code wrote them, or they have other loads
        return line(agent, was, mean, None, "other columns or loads")
    return line(agent, was, mean, moved)


def _results(params: Params, agent: str, place: Path) -> pd.DataFrame:
    """Return jobset results, with the agent's objective as `mean_slowdown`."""
    row = params.agents[agent]
    problem = problem_of(params, row.scenario)
    frame = storage.read_table(place / JOBSETS, problem.tables.jobsets)
    column, _ = COST_COLUMNS.get(row.objective, (row.objective, 1))
    frame = frame.assign(mean_slowdown=frame[column])
    return windows(frame) if problem.comparison.tested(params, row.scenario).same_windows else frame
