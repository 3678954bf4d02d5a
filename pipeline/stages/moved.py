"""Changes of agents' results since the last commit, printed by `compare` and recorded in MLflow.

They are not written: no output depends on the contents of git and of DVC's cache.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

from pipeline.comparing.moved import line, metrics
from pipeline.comparing.statistics import ALL
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage import evidence
from pipeline.progress import say
from pipeline.tracking.changes import changes, results
from pipeline.tracking.digests import measured
from pipeline.tracking.stored_outputs import StoredOutputs

OBJECTIVES_FILE = storage.REPORTS / "objectives.csv"


def run(params: Params) -> dict[str, float]:
    """Print a line for each agent that changed since the last commit, and the number of the others; return metrics."""
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
