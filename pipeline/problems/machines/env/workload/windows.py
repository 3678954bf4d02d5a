"""A log as jobs of a scenario's machines: windows of consecutive jobs, at the loads of the scenario.

Arrivals before `first_s` are left out; run times and their estimates are cut at `longest_s`; jobs that fit on none of
the machines are dropped. All of these are counted. Load = units that jobs hold times their run times, over capacity
times the time in which they arrive, mean over resources. At another load, gaps between arrivals are multiplied by
the log's load / this load. The log's load, predictions and the unit of time (the median run time) are those of the
training period.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.config import MachinePark, MachinesLog, MachinesScenario, Sampled
from pipeline.core.logs.plausible import SIZE, unconfirmed
from pipeline.core.logs.predictions import predict_run_times
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import TYPES, MachineTable, Trace, fits_somewhere
from pipeline.core.logs.windows import periods
from pipeline.core.types import ANY_KIND, LOG_NAME, NODES_NAME, THOUSANDTHS, BoolArray, FloatArray, IntArray, KeyArray
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.storage import grouped
from pipeline.progress import ProgressCallback

NO_MACHINE = "could run on none of the machines"


class Fitted(NamedTuple):
    """A log as jobs of some machines."""

    jobs: Jobs  # all jobs that are used, at the log's own times
    user: IntArray  # [J]  -1 = unknown
    wait: FloatArray  # [J]  wait on the real cluster; nan = unknown
    partition: IntArray  # [J]  index in partition_names
    partition_names: tuple[str, ...]
    group: IntArray  # [J]  index in group_names
    group_names: tuple[tuple[str, str], ...]  # account and QOS
    park: MachinePark
    load: dict[str, float]  # of the training period, per resource of the machines; 1 = all of it
    left_out: dict[str, int]  # number of dropped jobs, by reason
    capped: int  # jobs whose run time was cut
    unused: tuple[str, ...]  # resources of the log that the machines do not specify
    doubts: tuple[str, ...]  # implausible properties that are not accepted

    @property
    def own_load(self) -> float:
        """Return the log's own load, 1 = all of every resource."""
        return float(np.mean(list(self.load.values())))

    def window(self, start: int, size: int, load: int) -> Jobs:
        """Return consecutive jobs at a load in percent, the first one arriving at 0."""
        some = slice(start, start + size)
        jobs = Jobs._make(column[some] for column in self.jobs)
        return jobs._replace(arrival=(jobs.arrival - jobs.arrival[0]) * self.stretch(load))

    def stretch(self, load: int) -> float:
        """Return the factor that gaps between arrivals are multiplied by at a load in percent."""
        return 100 * self.own_load / load


def read_log(workload: MachinesLog, place: Path, on_progress: ProgressCallback) -> Trace:
    """Read a log file, or the log of a folder that also holds its file of machines."""
    linked, nodes = place.is_dir(), None
    if workload.nodes is not None:
        nodes = (place / NODES_NAME if linked else Path(workload.nodes)).resolve()
    path, instances = (place / LOG_NAME if linked else place).resolve(), workload.instances
    return read(path, workload.format, on_progress, nodes=nodes, instances=instances, per_node=workload.per_node)


def fitted(trace: Trace, workload: MachinesLog, scenario: MachinesScenario) -> Fitted:
    """Return a log as jobs of a scenario's machines, by the rules above.

    Raises:
        UserError: the log lacks what the scenario needs, or no job is left.
    """
    if scenario.policies_know == "estimates" and not trace.has_estimates:
        raise UserError("policies_know: the log has no estimates; expected durations")
    early = trace.submit_s < workload.first_s
    longest = np.inf if workload.longest_s is None else workload.longest_s
    kept = _only(trace, ~early)
    if not isinstance(scenario.machines, Sampled):
        park = grouped(scenario.machines, unit=1.0)
    elif kept.machines is None:
        raise UserError("machines.sample: the log has no machines; name their file as workload.nodes, or groups")
    else:
        park = sampled(kept.machines, scenario.machines, kept.kind_names, unit=1.0)
    moved = _on_park(kept, park)
    runs = fits_somewhere(moved)
    left = _only(moved, runs)
    learned = _learned(workload, len(left.id))
    known, duration = what_policies_know(scenario, left, learned), np.minimum(left.run_s, longest)
    jobs = Jobs(left.submit_s, duration, np.minimum(known, longest), left.demand, left.nodes, left.kinds)
    unit = float(np.median(duration[learned]))
    return Fitted(
        jobs=jobs,
        user=left.user,
        wait=left.wait_s,
        partition=left.partition,
        partition_names=left.partition_names,
        group=left.group,
        group_names=left.group_names,
        park=park.model_copy(update={"unit": unit}),
        load=_load(jobs, park, learned),
        left_out={f"arrived before {workload.first_s:g} s": int(early.sum()), NO_MACHINE: int((~runs).sum())},
        capped=int((left.run_s > longest).sum()),
        unused=tuple(name for name in trace.resources if name not in park.resources),
        doubts=unconfirmed(kept, workload.accept)
        if isinstance(scenario.machines, Sampled)
        else unconfirmed(moved, (*workload.accept, SIZE)),  # the machines are given, so that gaps are scaled to them
    )


def what_policies_know(scenario: MachinesScenario, trace: Trace, learned: IntArray) -> FloatArray:
    """Return the run time of each job [J] of a log as policies know it.

    Predictions are learned from the jobs with the indices `learned`.

    Raises:
        UserError: the log has too little for predictions.
    """
    if scenario.policies_know == "predictions":
        return predict_run_times(trace, learned)
    return trace.estimate_s if scenario.policies_know == "estimates" else trace.run_s


def _only(trace: Trace, kept: BoolArray) -> Trace:
    """Return some jobs of a log; raise UserError if there are none."""
    if not kept.any():
        raise UserError(f"workload: no job of {len(kept):,} is left: all come before first_s, or fit on no machine")
    return trace._replace(**{name: getattr(trace, name)[kept] for name in (*TYPES, "demand")})


def _learned(workload: MachinesLog, jobs: int) -> IntArray:
    """Return the indices of the training jobs; parts that exceed the log are refused elsewhere."""
    if workload.parts is None:
        return np.arange(max(1, periods(jobs, workload)["train"][1]))
    found = np.concatenate([np.arange(first, min(after, jobs)) for first, after in workload.parts.train])
    return found if len(found) else np.arange(jobs)


def _on_park(trace: Trace, park: MachinePark) -> Trace:
    """Return a log whose resources, kinds and machines are those of a park."""
    for name in park.resources:
        if name not in trace.resources:
            raise UserError(f"machines: the log has no resource '{name}'; there are: {', '.join(trace.resources)}")
    columns = [trace.resources.index(name) for name in park.resources]
    capacity, kind = np.array(park.capacity, dtype=np.int64), np.array(park.kind, dtype=np.int64)
    return trace._replace(
        demand=np.ascontiguousarray(trace.demand[:, columns]),
        kinds=kinds_at(park, trace.kinds, trace.kind_names),
        resources=park.resources,
        kind_names=park.kind_names,
        machines=MachineTable(capacity, kind, park.resources),
    )


def sampled(machines: MachineTable, chosen: Sampled, kind_names: Sequence[str], unit: float) -> MachinePark:
    """Return a sample of the machines of a log, in their order there.

    Raises:
        UserError: the log has fewer machines.
    """
    there = len(machines.kind)
    if chosen.sample > there:
        raise UserError(f"machines.sample: expected at most the log's {there} machines, got {chosen.sample}")
    rows = np.sort(np.random.default_rng(chosen.seed).choice(there, chosen.sample, replace=False))
    return MachinePark(
        resources=machines.resources,
        capacity=tuple(tuple(row) for row in machines.capacity[rows].tolist()),
        kind=tuple(machines.kind[rows].tolist()),
        kind_names=tuple(kind_names),
        unit=unit,
    )


def kinds_at(park: MachinePark, kinds: KeyArray, kind_names: Sequence[str]) -> KeyArray:
    """Return the bits of the cluster's kinds that jobs [J] may run on, given the bits of the log's kinds.

    A job that may run on any kind of the log also runs on kinds of the cluster that the log does not have.
    """
    found, place = np.unique(kinds, return_inverse=True)
    shared = [(kind_names.index(name), own) for own, name in enumerate(park.kind_names) if name in kind_names]
    moved = [
        int(ANY_KIND) if bits == ANY_KIND else sum(1 << own for there, own in shared if int(bits) >> there & 1)
        for bits in found
    ]
    return np.array(moved, dtype=np.uint64)[place]


def _load(jobs: Jobs, park: MachinePark, learned: IntArray) -> dict[str, float]:
    span = float(np.diff(jobs.arrival, append=jobs.arrival[-1])[learned].sum())  # up to the arrival of the next job
    if not span > 0:
        raise UserError("workload: all jobs of the log arrive at once, so that it has no load which could be changed")
    total = np.array(park.capacity, dtype=np.int64).sum(axis=0)
    work = jobs.nodes[learned] * jobs.duration[learned]
    held = [float(work @ jobs.demand[learned][:, r]) for r in range(jobs.demand.shape[1])]
    load = {name: float(held[r] / (total[r] * span)) for r, name in enumerate(park.resources) if total[r]}
    if not any(load.values()):
        raise UserError("workload: no job of the log holds anything that the machines have, so that it has no load")
    return load


def describe(trace: Trace, fit: Fitted, loads: Mapping[int, float]) -> list[str]:
    """Return notes on a log for users; `loads` are the factors of gaps between arrivals, by load."""
    jobs, total = fit.jobs, np.array(fit.park.capacity, dtype=np.int64).sum(axis=0)
    amounts = ", ".join(f"{n / THOUSANDTHS:,g} {name}" for name, n in zip(fit.park.resources, total, strict=True))
    return [
        *trace.notes,
        *(f"left out: {count:,} jobs that {why}" for why, count in fit.left_out.items() if count),
        f"{len(jobs.arrival):,} jobs are used; {fit.capped:,} of them run longer than the longest and are cut",
        *([f"unused resources, which the machines do not have: {', '.join(fit.unused)}"] if fit.unused else []),
        f"{len(fit.park.kind):,} machines: {amounts}; unit of time {fit.park.unit:g} s, the median run time",
        f"own load {fit.own_load:.1%}: {', '.join(f'{name} {share:.1%}' for name, share in fit.load.items())}",
        "median and own load are those of the training period",
        f"gaps between arrivals: {', '.join(f'{gap:.3g} times at load {load}' for load, gap in loads.items())}",
    ]
