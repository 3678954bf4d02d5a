"""Changes of agents' results between two states of the repository, paired over the same jobsets.

`compare` prints those since the last commit. In MLflow, each pipeline run is compared with the one before it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import FEW, windows
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core import storage
from pipeline.core.config import Evaluation, Params
from pipeline.core.storage import evidence
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.progress import remark
from pipeline.simulation.results import COST_COLUMNS
from pipeline.tracking.digests import StoredOutputs, measured
from pipeline.tracking.identity import PIPELINE_STAGE
from pipeline.tracking.record import FINISHED
from pipeline.tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run

JOBSETS = "jobsets.parquet"
OBJECTIVES_FILE = storage.REPORTS / "objectives.csv"
BEFORE = "before"
CHANGE = "Change"  # metric of all changed agents; MLflow sorts columns, capitals first
ENDS = ("", " lo", " up")  # of metrics: the change, and the ends of its interval
LETTERS = 8  # of an agent's name in a metric, more if needed: MLflow truncates the heads of columns after about 12
AGAINST = "against"  # tag of a pipeline run: the one with which it was compared
DESCRIPTION, PARENT = "mlflow.note.content", "mlflow.parentRunId"  # MLflow's tags
FIRST, LOST = "first run: no run before it", "no earlier run has its results in this clone"
NOT_HERE = "the previous results are in no cache here"
RECENT, LATEST = 100, 10  # runs that are looked at, and described


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
    for agent in params.agents:
        place, drawn = paired(params, [agent])
        if place not in now or now[place] == was.get(place):
            continue
        if place not in was:
            yield agent, "new"
            continue
        if was.get(drawn) != now.get(drawn):
            yield agent, "other jobsets"
            continue
        before, here = (stored.find(place, md5s.get(place, "")) for md5s in (was, now))
        if before is None or here is None:
            yield agent, NOT_HERE
        else:
            try:
                then, today = (results(params, agent, folder) for folder in (before, here))
                yield agent, gap(agent, then, today, params.evaluation, params.seed)
            except (UserError, ValueError):  # other code wrote them, or they have other loads
                yield agent, "other columns or loads"
    for path in _agents_of(now):
        if now[path] != was.get(path) and Path(path).name not in params.agents:
            yield Path(path).name, "not in params.yaml"


def paired(params: Params, agents: Iterable[str]) -> list[str]:
    """Return the outputs by which agents are compared: the results and the jobsets of each."""
    folders = ((storage.results_folder("agents", one), params.agents[one].scenario) for one in agents)
    places = (place.as_posix() for results, name in folders for place in (results, storage.jobsets_folder(name)))
    return list(dict.fromkeys(places))


def compare_runs(store: Store, params: Params, most: int = LATEST) -> None:
    """Describe the last pipeline runs by their changes since the run before each, and log these, unless that was done.

    Results must be in this clone, so a run of another clone is left to that one. Passed over are runs of earlier
    versions, which did not record the md5 of results, and those whose pipeline run was deleted.
    """

    def recent(stage: str) -> "Sequence[Run]":
        wanted = f"tags.stage = '{stage}'" + (f" AND attributes.status = '{FINISHED}'" if stage == "compare" else "")
        return store.client.search_runs([store.experiment], wanted, max_results=RECENT, order_by=["start_time DESC"])

    pipelines = {run.info.run_id: run for run in recent(PIPELINE_STAGE)}
    runs = [run for run in recent("compare") if run.data.tags.get(PARENT) in pipelines and _agents_of(_outputs(run))]
    first = {run.data.tags[PARENT]: run for run in runs}  # the first `compare` of each pipeline run
    asked = [(number, run) for number, run in first.items() if AGAINST not in pipelines[number].data.tags][:most]
    began = min([one.info.start_time for one in pipelines.values()], default=0)
    # There may be no DVC repository here, or another clone may take too long.
    with TemporaryDirectory() as scratch, suppress(UserError, OSError):
        stored = StoredOutputs(Path(scratch))
        for number, run in asked:
            earlier = [one for one in runs[runs.index(run) + 1 :] if one.data.tags[PARENT] != number]
            with store.exclusive("the comparisons"):
                pipeline = store.client.get_run(number)
                if AGAINST not in pipeline.data.tags:  # unless another clone was first
                    text = LOST if pipeline.info.start_time > began else FIRST
                    _describe(store, params, stored, earlier, run, pipeline, text)


def _describe(
    store: Store, params: Params, stored: StoredOutputs, earlier: "Sequence[Run]", run: "Run", pipeline: "Run",
    text: str,
) -> None:  # fmt: skip
    """Describe a pipeline run by its changes since the last earlier one whose results are here, else by a text."""
    from mlflow.entities import Metric, RunTag

    now = _outputs(run)
    if not all(stored.find(place, now[place]) for place in _agents_of(now)):
        return
    values, tags = dict[str, float](), list[RunTag]()
    for before in earlier:
        moved = dict[str, Gap | str]()
        for agent, what in changes(params, _outputs(before), now, stored):
            if what == NOT_HERE:
                break
            moved[agent] = what
        else:
            against = before.data.tags.get("dvc.exp.name") or before.data.tags["pipeline.id"]
            text, values = answer(moved, {agent: row.scenario for agent, row in params.agents.items()})
            text, tags = f"{text}; vs {against}", [RunTag(AGAINST, against)]
            break
    if pipeline.data.tags.get(DESCRIPTION, FIRST) in (FIRST, LOST):  # otherwise a user wrote it
        tags.append(RunTag(DESCRIPTION, text))
    points = [Metric(name, value, run.info.start_time, 0) for name, value in values.items()]
    store.client.log_batch(pipeline.info.run_id, metrics=points, tags=tags)


def _outputs(run: "Run") -> dict[str, str]:
    """Return the md5 of the results and jobsets that a run of `compare` read, by path."""
    return {one.dataset.name: one.dataset.digest for one in (run.inputs.dataset_inputs if run.inputs else [])}


def _agents_of(outputs: Mapping[str, str]) -> list[str]:
    folder = storage.results_folder("agents", "").as_posix()
    return [path for path in outputs if Path(path).parent.as_posix() == folder]


def results(params: Params, agent: str, place: Path) -> pd.DataFrame:
    """Return jobset results, with the agent's objective as `mean_slowdown`."""
    row = params.agents[agent]
    problem = problem_of(params, row.scenario)
    frame = storage.read_table(place / JOBSETS, problem.tables.jobsets)
    column, _ = COST_COLUMNS.get(row.objective, (row.objective, 1))
    frame = frame.assign(mean_slowdown=frame[column])
    return windows(frame) if problem.comparison.tested(params, row.scenario).same_windows else frame


def report_changes(params: Params) -> None:
    """Print a line for each agent that changed since the last commit, and the number of the others.

    The changes are not written to a file: no output depends on the contents of git and of DVC's cache.
    """
    head, committed = evidence.head(), {out.path: out.md5 for out in evidence.committed_lock().outs}
    if head is None or not committed:
        return
    now = dict[str, str]()
    for path in paired(params, params.agents):
        with suppress(FileNotFoundError):  # `compare` says what is missing
            now[path] = measured(Path(path))
    objectives = evidence.committed_table(OBJECTIVES_FILE, ("policy", "load", "mean"))
    means: dict[str, float] = {}
    if objectives is not None:
        over = objectives[objectives["load"] == ALL].drop_duplicates("policy")
        means = dict(zip(over["policy"], over["mean"].astype(float), strict=True))
    with TemporaryDirectory() as scratch:
        moved = dict(changes(params, committed, now, StoredOutputs(Path(scratch))))
    for agent, found in moved.items():
        rows = results(params, agent, storage.results_folder("agents", agent))
        mean = float(rows[rows["policy"] == agent].groupby("load")["mean_slowdown"].mean().mean())
        remark(line(agent, means.get(agent), mean, found))
    same = len(params.agents) - len(moved)
    what = f"against {head.id[:10]}, each by its objective over all loads; " if moved else f"against {head.id[:10]}: "
    remark(f"compare: {what}{same} agent{'s' if same != 1 else ''} unchanged; all of them: reports/comparison.md")


def gap(agent: str, was: pd.DataFrame, now: pd.DataFrame, settings: Evaluation, seed: int) -> Gap:
    """Return the change of an agent over all loads, paired over the same jobsets; ValueError if the jobsets differ.

    `was` and `now` are its jobset results, with the compared column as `mean_slowdown`.
    """
    both = pd.concat([now[now["policy"] == agent], was[was["policy"] == agent].assign(policy=BEFORE)])
    references = {BEFORE: dict.fromkeys(both["load"].unique(), BEFORE)}
    rows = comparison(both, "", references, settings, np.random.default_rng(seed))
    over = rows[rows["load"] == ALL].iloc[0]
    return Gap(over["difference"], over["difference_low"], over["difference_high"], int(over["n"]))


def answer(moved: Mapping[str, Gap | str], agents: Mapping[str, str]) -> tuple[str, dict[str, float]]:
    """Return where a run changed, the most changed first, and metrics in percent, of all agents and of each.

    `agents` are all agents with their scenarios. The interval of the mean is the mean of the intervals, so it is too
    wide rather than too narrow. If nothing changed, the metric is 0; without a pair of results there is none.

    >>> found = {"net": "new", "machines_evolved": Gap(0.25, 0.12, 0.5, 50)}
    >>> text, values = answer(found, {"machines_evolved": "machines", "net": "shares"})
    >>> text
    '+25 %, 12 to 50: machines (machines_evolved), shares (net: new)'
    >>> list(values.items())[2:]
    [('Change up', 50.0), ('machines', 25.0), ('machines lo', 12.0), ('machines up', 50.0)]
    """
    gaps = {agent: found for agent, found in moved.items() if isinstance(found, Gap)}
    every = [*gaps.values()] or [Gap(0.0, 0.0, 0.0, FEW)]
    mean, low, high = np.mean([one[:3] for one in every], axis=0).tolist()
    over = Gap(mean, low, high, min(one.n for one in every))
    shown = {CHANGE: over} if gaps or not moved else {}
    for agent, found in gaps.items():
        heads = (agent[:size] for size in range(LETTERS, len(agent)))
        shown[next((head for head in heads if sum(one.startswith(head) for one in agents) == 1), agent)] = found
    parts = ((f"{of}{end}", part) for of, one in shown.items() for end, part in zip(ENDS, one[:3], strict=True))
    where: dict[str, list[str]] = {}
    for agent in sorted(moved, key=lambda one: -abs(gaps[one].difference) if one in gaps else 0):
        label = agent if agent in gaps else f"{agent}: {moved[agent]}"
        where.setdefault(agents.get(agent, "unknown"), []).append(label)
    listed = ", ".join(f"{scenario} ({', '.join(inside)})" for scenario, inside in where.items())
    text = f"{percent(over)}: {listed}" if gaps else listed or "no result changed"
    return text, {name: round(100 * float(part), 2) for name, part in parts}


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
    return f"{agent}: {was:.2f} -> {now:.2f} ({percent(moved)})"


def percent(found: Gap) -> str:
    """Return a change with the ends of its interval, or the range of few jobsets."""
    span = "range " if found.n < FEW else ""
    low, high = 100 * found.low, 100 * found.high
    digits = 0 if high - low >= 2 else 1  # "1 to 1" would be useless
    return f"{100 * found.difference:+.{digits}f} %, {span}{low:.{digits}f} to {high:.{digits}f}"
