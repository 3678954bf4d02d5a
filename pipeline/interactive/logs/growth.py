"""A log that has grown since a champion was judged on it: its new jobs as a test period, and how they differ.

The training and validation periods stay the same, so that loads keep their meaning; all jobs after the last one of the
judged log are the test period. Changes are between the judged log's own test period and the new one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.config import Counts, GroupsLog, MachinesLog, Params, PoolLog, PoolScenario, repository_root
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import DAY_S, Trace
from pipeline.core.types import THOUSANDTHS
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback

AnyLog = PoolLog | MachinesLog | GroupsLog
MANY = 100_000  # windows, so all


class Change(NamedTuple):
    """One property of the input, when the champion was judged and now."""

    what: str
    judged: float
    now: float


class Growth(NamedTuple):
    """New jobs of a log."""

    params: Params  # with only this scenario, whose test period is the new jobs
    jobs: int  # number of new ones
    days: float  # from the first new job to the last
    judged_days: float  # of the judged test period
    changes: list[Change]


def logged(params: Params) -> dict[str, AnyLog]:
    """Return the logs of scenarios, except resampled ones."""
    found = {}
    for name, row in params.scenarios.items():
        workload = params.workload_of(row) if isinstance(row, PoolScenario) else row.workload
        resampled = isinstance(workload, MachinesLog) and workload.parts is not None
        if isinstance(workload, PoolLog | MachinesLog | GroupsLog) and not resampled:
            found[name] = workload
    return found


def grown(params: Params, scenario: str, path: Path, on_progress: ProgressCallback) -> Growth:
    """Return the new jobs of a log; UserError if it does not begin like the scenario's own, or is not readable."""
    workload = logged(params)[scenario]
    own = repository_root() / workload.path
    judged, now = (_read(workload, log, on_progress) for log in (own, path))
    if (judged.submit_s[0], judged.run_s[0]) != (now.submit_s[0], now.run_s[0]):
        raise UserError(f"{path}: expected the log that the champion was judged on, grown; it does not begin as {own}")
    first = int(np.searchsorted(now.submit_s, judged.submit_s[-1], side="right"))
    learned = workload.train_share + workload.validation_share
    tested = slice(int(np.searchsorted(now.submit_s, _at(workload, judged, learned))), first)
    new = slice(first, None)
    return Growth(
        params=_on_new_jobs(params, scenario, workload, path, (judged, now)),
        jobs=len(now.id) - first,
        days=_days(now, new),
        judged_days=_days(now, tested),
        changes=list(_changes(now, tested, new)) if first < len(now.id) else [],
    )


def _read(workload: AnyLog, path: Path, on_progress: ProgressCallback) -> Trace:
    if isinstance(workload, GroupsLog):
        return read(path, workload.format, on_progress)
    nodes = None if workload.nodes is None else repository_root() / workload.nodes
    per_node = isinstance(workload, MachinesLog) and workload.per_node
    return read(path, workload.format, on_progress, nodes=nodes, instances=workload.instances, per_node=per_node)


def _at(workload: AnyLog, judged: Trace, share: float) -> float:
    """Return the end time of a period of the judged log; shares are of time for user groups, else of jobs."""
    begin, end = judged.submit_s[[0, -1]]
    if isinstance(workload, GroupsLog):
        return float(begin + share * (end - begin))
    return float(judged.submit_s[min(round(share * len(judged.id)), len(judged.id) - 1)])


def _on_new_jobs(params: Params, scenario: str, workload: AnyLog, path: Path, traces: tuple[Trace, Trace]) -> Params:
    """Return params with the grown log in the scenario, which is tested on the new jobs."""
    judged, now = traces
    if isinstance(workload, GroupsLog):
        part = (judged.submit_s[-1] - judged.submit_s[0]) / (now.submit_s[-1] - now.submit_s[0])
    else:
        part = np.searchsorted(now.submit_s, judged.submit_s[-1], side="right") / len(now.id)
    train = workload.train_share * float(part)
    moved = {"path": str(path.resolve()), "train_share": train, "validation_share": float(part) - train}
    if getattr(workload, "nodes", None) is not None:
        moved["nodes"] = str((repository_root() / str(getattr(workload, "nodes", ""))).resolve())
    log = workload.model_copy(update=moved)
    row = params.scenario(scenario)
    counts = {"jobsets": Counts(train=1, validation=1, test=MANY)}
    if isinstance(row, PoolScenario):
        return params.model_copy(update={"workload": log, "scenarios": {scenario: row.model_copy(update=counts)}})
    return params.model_copy(update={"scenarios": {scenario: row.model_copy(update={**counts, "workload": log})}})


def _days(trace: Trace, span: slice) -> float:
    times = trace.submit_s[span]
    return float(times[-1] - times[0]) / DAY_S if len(times) else 0.0


def _changes(trace: Trace, judged: slice, new: slice) -> Iterator[Change]:
    size = trace.demand[:, 0] * trace.nodes / THOUSANDTHS
    days = max(_days(trace, judged), 1 / DAY_S), max(_days(trace, new), 1 / DAY_S)
    spans = (judged, new)
    jobs, work = zip(*((len(trace.id[s]), float((size[s] * trace.run_s[s]).sum()) / 3600) for s in spans), strict=True)
    yield Change("jobs a day", jobs[0] / days[0], jobs[1] / days[1])
    yield Change(f"load ({trace.resources[0]} times hours, a day)", work[0] / days[0], work[1] / days[1])
    yield Change("median run time in s", *(float(np.median(trace.run_s[s])) for s in spans))
    yield Change(f"mean size ({trace.resources[0]})", *(float(np.mean(size[s])) for s in spans))
    if (trace.user[new] >= 0).any():
        yield Change("users", *(float(len(np.unique(trace.user[s]))) for s in spans))
        earlier = trace.user[: judged.start], trace.user[: new.start]
        strange = (float(np.mean(~np.isin(trace.user[s], e))) for s, e in zip(spans, earlier, strict=True))
        yield Change("part of the jobs by users who had none before", *strange)
