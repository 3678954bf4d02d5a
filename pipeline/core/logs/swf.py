"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2: one job per line, in 18 fields.

docs/logs.md has the rules for reading, repairing, dropping and refusing, which are the same for every problem.

The processors are pooled: a job runs on one node and holds all its processors and their memory. The machine has
MaxProcs processors, else MaxNodes, else an unknown number. Its memory is unknown, and is taken as the most that the
log's jobs held at one time, but at most the number of processors times the largest known memory of one. The former is a
lower bound. The latter would be too large where few jobs need much memory, so that memory would never be short (HPC2N:
1.7 times as much). With `per_node`, each processor is a machine, a job runs on as many nodes as it has processors, and
memory is left out.
"""

from pathlib import Path

import numpy as np

from pipeline.core.logs.lines import FIELDS, Lines, job_lines
from pipeline.core.logs.plausible import least_held
from pipeline.core.logs.rows import opened
from pipeline.core.logs.trace import CORES, GIB, Columns, Facts, MachineTable, Sieve, Trace, in_order, jobs
from pipeline.core.types import THOUSANDTHS
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

KB_OF_GIB = 1024.0**2
PARTIAL = "partial execution, which its job's summary line covers"
NO_ARRIVAL, NO_RUN, NO_PROCESSORS = "arrival unknown", "run time unknown", "no processors"
NEVER_RAN = "run time 0, cancelled or without processors: never ran"
NEGATIVE_WAIT = "negative wait: unknown"
SHORT = f"{FIELDS - 1} columns: last one taken as unknown"
FRACTIONS = "fraction of a processor: rounded"
NO_ESTIMATE, NO_MEMORY = "estimate unknown: its run time taken", "memory unknown: holds none"
ABSURD = "memory beyond 1e9 GiB"
MOST_GIB = 1e9
MOST_USER = 2**31
MOST_MACHINES = 1_000_000  # each processor one
NO_SIZE = "no MaxProcs header: the machine is unknown, with at least {:,.0f} processors"
PARTITIONS = "jobs of {} partitions: taken as one machine"
PARTIALS, COMPLETED, CANCELLED = (2, 3, 4), 1, 5  # of a status


def read(path: Path, on_progress: ProgressCallback = no_progress, *, per_node: bool = False) -> Trace:
    """Read a log; a UserError if that fails, a line is not a job, or no job is left."""
    parts, sieve, sizes, rows, partitions = list[Columns](), Sieve(), dict[str, int](), 0, set[float]()
    estimates = memory = False
    with opened(path) as (content, percent):
        for lines in job_lines(content, path):
            part = _part(lines, sieve, per_node)
            sizes = lines.sizes
            estimates |= bool((lines.fields[:, 8] > 0).any())
            memory |= not per_node and bool((part["demand"][:, 1] > 0).any())
            partitions |= set(np.unique(lines.fields[:, 15]).tolist()) - {-1.0}
            parts.append(part)
            rows += len(lines.number)
            on_progress(percent(), f"{rows:,} jobs")
    if not estimates:
        sieve.forget(NO_ESTIMATE)
    if not memory:
        sieve.forget(NO_MEMORY)
        parts = [part | {"demand": part["demand"][:, :1]} for part in parts]
    facts = Facts(("cpu", "memory"), (CORES, GIB)) if memory else Facts(("cpu",), (CORES,))
    trace = in_order(parts, sieve, facts._replace(has_estimates=estimates), rows, path)
    size = sizes.get("MaxProcs") or sizes.get("MaxNodes") or 0
    if not size:
        sieve.repair(NO_SIZE.format(least_held(trace, 0)), np.zeros(1, dtype=np.int64))
    if len(partitions) > 1:
        sieve.repair(PARTITIONS.format(len(partitions)), np.zeros(1, dtype=np.int64))
    machines = _machines(trace, size, per_node, path) if size else None
    return trace._replace(machines=machines, repaired=sieve.repaired)


def _part(lines: Lines, sieve: Sieve, per_node: bool) -> Columns:
    """Return the usable jobs, and count repaired and dropped ones."""
    id, submit, wait, run, allocated, _, used_kb, requested, estimate, requested_kb, status, user = lines.fields.T[:12]
    wanted = np.maximum(allocated, requested)
    processors = np.floor(wanted + 0.5)
    gib = np.maximum(np.where(requested_kb > 0, requested_kb, used_kb), 0) * processors / KB_OF_GIB
    causes = {PARTIAL: np.isin(status, PARTIALS), NO_ARRIVAL: submit < 0, NO_RUN: run < 0}
    causes[NEVER_RAN] = (run == 0) & ((status == CANCELLED) | ((allocated <= 0) & (status != COMPLETED)))
    kept = sieve.keep(lines.number, causes | {NO_PROCESSORS: processors <= 0, ABSURD: gib > MOST_GIB})
    sieve.repair(SHORT, lines.short)
    repaired = {FRACTIONS: processors != wanted, NO_ESTIMATE: estimate <= 0, NO_MEMORY: gib == 0}
    repaired[NEGATIVE_WAIT] = (wait < 0) & (wait != -1)
    sieve.repair_each(lines.number, {reason: kept & found for reason, found in repaired.items()})
    return jobs(
        sieve, lines.number, kept, np.ones((len(run), 1)) if per_node else np.column_stack([processors, gib]),
        id=np.floor(id + 0.5),
        submit_s=submit,
        run_s=run,
        nodes=processors if per_node else 1,
        wait_s=np.where(wait >= 0, wait, np.nan),
        estimate_s=np.where(estimate > 0, estimate, np.nan),
        user=np.where((user >= 0) & (user < MOST_USER), user, -1),
    )  # fmt: skip


def _machines(trace: Trace, size: int, per_node: bool, path: Path) -> MachineTable:
    if not per_node:
        capacity = [size * THOUSANDTHS]
        if "memory" in trace.resources:
            memory = trace.demand[:, 1].astype(float)
            most = (memory / trace.demand[:, 0]).max() * capacity[0]
            capacity.append(int(min(trace.most_held(memory), most)))
        return MachineTable(np.array([capacity]), np.zeros(1, dtype=np.int64), trace.resources)
    if size > MOST_MACHINES:
        raise UserError(f"{path}: expected at most {MOST_MACHINES:,} processors as machines, found {size:,}")
    return MachineTable(np.full((size, 1), THOUSANDTHS), np.zeros(size, dtype=np.int64), trace.resources)
