"""Outages of a site's nodes, converted to outages of the replay's machines."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pipeline.core.logs.slurm import Outage, read_outages
from pipeline.core.logs.trace import Trace
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import Fitted
from pipeline.sites.replay import Outages


def read_all(files: Iterable[Path], trace: Trace) -> tuple[list[Outage], str]:
    """Return the outages of the log's nodes, and a line about them.

    Raises:
        UserError: a file cannot be read, or names none of the nodes.
    """
    found, others, unknown = list[Outage](), 0, set[str]()
    known = set(trace.machines.names) if trace.machines else set[str]()
    for file in files:
        outages, left = read_outages(file)
        names = {one.node for one in outages}
        if names and not known & names:
            what = "of the log's file of nodes" if known else "of a log with a file of nodes (--nodes)"
            raise UserError(f"{file}: expected outages {what}, found those of {min(names)}")
        found += [one for one in outages if one.node in known]
        unknown |= names - known
        others += left
    announced = sum(one.announced for one in found)
    parts = [
        f"{len(found):,} outages of {len({one.node for one in found}):,} nodes, {announced:,} of them announced",
        *([f"{others:,} reservations without the flag MAINT are not replayed"] if others else []),
        *([f"{len(unknown):,} unknown nodes, such as {min(unknown)}"] if unknown else []),
    ]
    return found, "; ".join(parts)


def outages_of(found: Sequence[Outage], trace: Trace, fit: Fitted) -> Outages:
    """Convert outages of a log's nodes to outages of its scenario's machines, in seconds from the first job on.

    Identical nodes become the scenario's identical machines, in the same order. Outages of a node without a machine are
    left out. An outage without an end lasts until the last job of the log ends.
    """
    machine, jobs = _machines(trace, fit), fit.jobs
    last = float((jobs.arrival + np.nan_to_num(fit.wait) + jobs.duration).max())
    rows = [
        (machine[one.node], one.begin, min(one.end, last), one.announced)
        for one in found
        if one.node in machine and one.begin < last
    ]
    at, begin, end, announced = np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy()
    return Outages(at.astype(np.int64), begin - jobs.arrival[0], end - jobs.arrival[0], announced > 0)


def _machines(trace: Trace, fit: Fitted) -> dict[str, int]:
    """Return the machine of each node."""
    park, known, places = fit.park, trace.machines, dict[tuple[object, ...], list[int]]()
    if known is None or not known.names:
        return {}
    for k, (amounts, kind) in enumerate(zip(park.capacity, park.kind, strict=True)):
        places.setdefault((*amounts, park.kind_names[kind]), []).append(k)
    columns = [known.resources.index(name) for name in park.resources]
    names, found = trace.kind_names if len(trace.kind_names) > 1 else ("",), dict[str, int]()
    for amounts, kind, name in zip(known.capacity[:, columns].tolist(), known.kind, known.names, strict=True):
        if same := places.get((*amounts, names[kind])):
            found[name] = same.pop(0)
    return found
