"""`python -m pipeline import journal`: from what a controller wrote to a job table, a log, and its decisions.

A job arrives when it was eligible, and one that was submitted held for the controller when it was submitted. How it
ended is not known; it counts as completed. Of decisions there is a row for each order that was another than before,
with the probability with which it was drawn: 1 where the policy does not draw.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.accounting.jobs import COMPLETED, JOBS, YEAR
from pipeline.accounting.written import MOST, account_of, made
from pipeline.errors import UserError
from pipeline.schemas.columns import integers, table
from pipeline.steering.journal import JOURNAL, Line, lines
from pipeline.steering.replaying import Ran
from pipeline.storage.files import check_table, write

LEFT, TORN, TWICE, NO_CPUS = (
    "gone without being seen to run",
    "a line that was never written whole",
    "the same run again",
    "no CPUs",
)
EARLY = "started before it was eligible: arrives when it started"
SHORT = "ran less than a second: 1 s taken"
NO_LIMIT = f"no time limit: {YEAR / 86400:.0f} days taken"
DECISIONS = table(
    "Decisions",
    {
        "time": pa.Column(float),  # s since 1970
        **{name: pa.Column(str) for name in ("partitions", "policy", "digest")},
        "waiting": integers(0),
        "first": pa.Column(str),  # the job at the head
        "order": pa.Column(str),  # all of them
        "temperature": pa.Column(float, pa.Check.ge(0)),  # 0: not drawn
        "probability": pa.Column(float, pa.Check.in_range(0, 1)),  # of the job at the head
        "log_probability": pa.Column(float, pa.Check.le(0)),  # of the order as a whole
    },
    unique=(),
)


def run(folder: Path, out: Path) -> list[str]:
    """Import the journal of a folder, and return what to say of it.

    Raises:
        UserError: there is no journal, or no job ended in it; nothing is written then.
    """
    found = list(lines(folder))
    jobs, dropped = _jobs(found, folder)
    decisions = check_table(_decisions(found), DECISIONS, str(out / "decisions.csv"))
    users = {name: 1 + int(name, 16) % MOST if name else -1 for name in {*jobs["user"], ""}}
    account = _account(dropped)
    content = made(out, jobs, users, account)  # all of it, before the first is written
    content["decisions.csv"] = str(decisions.to_csv(index=False, float_format="%.12g", lineterminator="\n"))
    for name, text in content.items():
        write(out / name, text.encode())
    told = sum(decisions["temperature"] > 0)
    return [
        f"{len(jobs):,} jobs of {jobs['user'].nunique():,} users; {len(decisions):,} decisions, {told:,} of them drawn",
        *(f"{row.what} {row.rows:,}: {row.why} ({row.file}:{row.first_line})" for row in account.itertuples()),
        f"written to {out}: {', '.join(content)}",
    ]


def _jobs(written: Sequence[Line], folder: Path) -> tuple[pd.DataFrame, list[tuple[str, str, Line]]]:
    """Return JOBS, and of each row that is none or was mended, which of both and why."""
    found: dict[tuple[int, float], dict[str, str | float | int]] = {}
    said: list[tuple[str, str, Line]] = []
    for line in written:
        if line.row is None:
            said.append(("dropped", TORN, line))
        elif line.row.get("kind") == "left":
            said.append(("dropped", LEFT, line))
        elif line.row.get("kind") == "ran":
            try:
                ran = Ran.model_validate(line.row)
            except ValueError:
                raise UserError(f"{line.path}:{line.number}: expected a job as a controller writes it") from None
            key = (ran.job, ran.submit)
            why = TWICE if key in found else NO_CPUS if not ran.units.get("cpu", 0.0) > 0 else ""
            if why:
                said.append(("dropped", why, line))
            else:
                found[key] = _job(ran)
                said += [("mended", what, line) for what in _mended(ran)]
    if not found:
        raise UserError(f"{folder / JOURNAL}: expected jobs that ran, found none")
    frame = pd.DataFrame([row for _, row in sorted(found.items(), key=lambda one: (one[1]["arrival"], one[0][0]))])
    again = frame.groupby("job").cumcount()
    frame["job"] = np.where(again > 0, frame["job"] + "-" + (again + 1).astype(str), frame["job"])
    return check_table(frame[list(JOBS.columns)], JOBS, str(folder / JOURNAL)), said


def _mended(ran: Ran) -> Iterator[str]:
    if ran.eligible > ran.start:
        yield EARLY
    if ran.end - ran.start < 1.0:
        yield SHORT
    if ran.limit_s is None:
        yield NO_LIMIT


def _job(ran: Ran) -> dict[str, str | float | int]:
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
                told = [drawn.get("temperature", 0.0), drawn.get("head", 1.0), drawn.get("log", 0.0)]
                numbers = [min(float(one), limit) for one, limit in zip(told, (np.inf, 1.0, 0.0), strict=True)]
                first = [float(str(line.row["time"])), where, pool["policy"], pool["digest"], int(pool["waiting"])]
            except (KeyError, TypeError, ValueError, AttributeError):
                raise UserError(f"{line.path}:{line.number}: expected a tick as a controller writes it") from None
            rows.append([*first, order[0], " ".join(order), *numbers])
    frame = pd.DataFrame(rows, columns=list(DECISIONS.columns))
    return frame.astype({name: str(column.dtype) for name, column in DECISIONS.columns.items()})


def _account(said: Sequence[tuple[str, str, Line]]) -> pd.DataFrame:
    counts: dict[tuple[str, str, str], list[int]] = {}
    for what, why, line in said:
        counts.setdefault((str(line.path), what, why), [0, line.number])[0] += 1
    return account_of([(*key, count, first) for key, (count, first) in counts.items()])
