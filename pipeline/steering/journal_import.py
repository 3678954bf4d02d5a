"""`python -m pipeline import journal`: job table, log and decisions from a controller's journal.

A job arrives when it becomes eligible; one that is submitted held for the controller arrives at its submission. Final
states of jobs are unknown and count as completed. Decisions have a row for each change of an order, with the
probability with which the order was drawn: 1 if orders are not drawn.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.accounting.jobs import COMPLETED, JOBS, YEAR
from pipeline.accounting.output import MOST, account_of, output_files, write_import
from pipeline.core.schemas.columns import integers, table
from pipeline.core.storage.files import check_table
from pipeline.errors import UserError
from pipeline.steering.journal import JOURNAL, Line, lines
from pipeline.steering.replay import RecordedJob

DECISIONS = table(
    "Decisions",
    {
        "time": pa.Column(float),  # s since 1970
        **{name: pa.Column(str) for name in ("partitions", "policy", "digest")},
        "waiting": integers(0),
        "first": pa.Column(str),  # the job at the head
        "order": pa.Column(str),  # all jobs
        "temperature": pa.Column(float, pa.Check.ge(0)),  # 0: not drawn
        "probability": pa.Column(float, pa.Check.in_range(0, 1)),  # of the job at the head
        "log_probability": pa.Column(float, pa.Check.le(0)),  # of the whole order
    },
    unique=(),
)


def run(folder: Path, out: Path) -> tuple[dict[str, object], list[str]]:
    """Import the journal of a folder, and report it as data and as lines.

    UserError, and no file, if no job ended in it.
    """
    found = list(lines(folder))
    jobs, notes = _jobs(found, folder)
    decisions = check_table(_decisions(found), DECISIONS, str(out / "decisions.csv"))
    users = {name: 1 + int(name, 16) % MOST if name else -1 for name in {*jobs["user"], ""}}
    counts: dict[tuple[str, str, str], list[int]] = {}
    for what, why, line in notes:
        counts.setdefault((str(line.path), what, why), [0, line.number])[0] += 1
    account = account_of([(*key, count, first) for key, (count, first) in counts.items()])
    content = output_files(out, jobs, users, account)  # all files, before the first is written
    content["decisions.csv"] = str(decisions.to_csv(index=False, float_format="%.12g", lineterminator="\n"))
    drawn = f"{len(decisions):,} decisions, {sum(decisions['temperature'] > 0):,} of them drawn"
    return write_import(out, jobs, account, content, drawn)


def _jobs(written: Sequence[Line], folder: Path) -> tuple[pd.DataFrame, list[tuple[str, str, Line]]]:
    """Return JOBS, and for each row that was dropped or fixed, which of the two, why, and its line."""
    found: dict[tuple[int, float], dict[str, str | float | int]] = {}
    notes: list[tuple[str, str, Line]] = []
    for line in written:
        if line.row is None:
            notes.append(("dropped", "a line that was never written whole", line))
        elif line.row.get("kind") == "left":
            notes.append(("dropped", "gone without being seen to run", line))
        elif line.row.get("kind") == "ran":
            try:
                ran = RecordedJob.model_validate(line.row)
            except ValueError:
                raise UserError(f"{line.path}:{line.number}: expected a job as a controller writes it") from None
            key = (ran.job, ran.submit)
            if key in found or not ran.units.get("cpu", 0.0) > 0:
                notes.append(("dropped", "the same run again" if key in found else "no CPUs", line))
                continue
            found[key] = _job(ran)
            fixes = {
                "started before it was eligible: arrives when it started": ran.eligible > ran.start,
                "ran less than a second: 1 s taken": ran.end - ran.start < 1,
                f"no time limit: {YEAR / 86400:.0f} days taken": ran.limit_s is None,
            }
            notes += [("fixed", why, line) for why, applies in fixes.items() if applies]
    if not found:
        raise UserError(f"{folder / JOURNAL}: expected jobs that ran, found none")
    frame = pd.DataFrame([row for _, row in sorted(found.items(), key=lambda one: (one[1]["arrival"], one[0][0]))])
    again = frame.groupby("job").cumcount()
    frame["job"] = np.where(again > 0, frame["job"] + "-" + (again + 1).astype(str), frame["job"])
    return check_table(frame[list(JOBS.columns)], JOBS, str(folder / JOURNAL)), notes


def _job(ran: RecordedJob) -> dict[str, str | float | int]:
    return {
        "job": str(ran.job),
        "user": ran.user,
        "account": "",
        "partition": ran.partition,
        "qos": "",
        "state": COMPLETED,
        "arrival": min(ran.eligible, ran.start),
        "start": ran.start,
        "duration": max(ran.end - ran.start, 1.0),
        "limit": YEAR if ran.limit_s is None else max(ran.limit_s, 1.0),
        "cpus": ran.units.get("cpu", 0.0),
        "memory": ran.units.get("memory", 0.0),
        "gpus": ran.units.get("gpu", 0.0),
        "nodes": ran.nodes,
    }


def _decisions(written: Sequence[Line]) -> pd.DataFrame:
    rows = []
    for line in written:
        pools = line.row.get("pools") if line.row and line.row.get("kind") == "tick" else None
        for pool in pools if isinstance(pools, list) else ():
            if not isinstance(pool, dict) or not pool.get("order"):
                continue
            assert line.row is not None
            try:
                order, drawn = [str(job) for job in pool["order"]], pool.get("drawn") or {}
                where = ",".join(pool["partitions"])
                found = [drawn.get("temperature", 0.0), drawn.get("head", 1.0), drawn.get("log", 0.0)]
                numbers = [min(float(one), limit) for one, limit in zip(found, (np.inf, 1.0, 0.0), strict=True)]
                first = [float(str(line.row["time"])), where, pool["policy"], pool["digest"], int(pool["waiting"])]
            except (KeyError, TypeError, ValueError, AttributeError):
                raise UserError(f"{line.path}:{line.number}: expected a tick as a controller writes it") from None
            rows.append([*first, order[0], " ".join(order), *numbers])
    frame = pd.DataFrame(rows, columns=list(DECISIONS.columns))
    return frame.astype({name: str(column.dtype) for name, column in DECISIONS.columns.items()})
