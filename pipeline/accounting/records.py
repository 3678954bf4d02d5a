"""The rows of a dump as numbers and words, checked: one row a run of a job, a step, or a job that never ran."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.accounting.fields import Unread, is_unknown, read_each, state
from pipeline.core import FloatArray
from pipeline.schemas.columns import table
from pipeline.storage.files import check_table


def _number(nullable: bool = True, least: float = 0.0) -> pa.Column:
    return pa.Column("float64", pa.Check.ge(least, error=f"at least {least:g}"), nullable=nullable)


RECORDS = table(
    "Records",
    {
        "job": pa.Column(str, pa.Check.str_length(min_value=1, error="an id")),
        **{name: pa.Column(bool) for name in ("step", "array", "het", "placed")},
        **{name: pa.Column(str) for name in ("user", "account", "partition", "qos", "cluster", "listed", "state")},
        **{name: _number() for name in ("submit", "eligible", "start", "end")},  # s since 1970
        "elapsed": _number(),  # s
        "limit": _number(),  # s; inf: without end
        **{name: _number() for name in ("cpus", "nodes", "gpus")},
        "memory": _number(),  # GiB of all its nodes
    },
    unique=(),
)


def records(rows: pd.DataFrame, path: Path, unread: Unread) -> pd.DataFrame:
    """Return what rows of texts say, indexed by line; what is unknown is nan.

    Args:
        rows: of a dump, under sacct's names.
        path: of the dump.
        unread: takes the lines with a field that is not what Slurm writes; they are left out.
    """
    numbers = partial(_numbers, rows, path, unread)
    alloc, asked = (numbers(name, "tres", 4) for name in ("AllocTRES", "ReqTRES"))
    counts = {name: numbers(name, "count") for name in ("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes")}
    cpus = _first(alloc[:, 0], counts["AllocCPUS"], counts["NCPUS"], asked[:, 0], counts["ReqCPUS"])
    nodes = _first(counts["NNodes"], alloc[:, 3], asked[:, 3])
    whole, of_cpu, of_node = numbers("ReqMem", "memory", 3).T
    memory = whole + of_cpu * cpus + of_node * nodes
    listed = _texts(rows, "JobID" if "JobID" in rows else "JobIDRaw")
    frame = pd.DataFrame({"job": _texts(rows, "JobIDRaw" if "JobIDRaw" in rows else "JobID")}, index=rows.index)
    unread.add(rows.index[~frame["job"].str.match(r"\d")], "expected the number of a job as JobIDRaw or JobID")
    frame["step"] = frame["job"].str.contains(".", regex=False)
    frame["array"], frame["het"] = listed.str.contains("_"), listed.str.contains("+", regex=False)
    frame["state"] = rows["State"].map(state)
    never = (frame["state"] == "CANCELLED") & (rows["Start"] == rows["End"])  # where Slurm placed none
    frame["placed"] = ~rows["NodeList"].map(is_unknown) if "NodeList" in rows else ~never
    for name in ("User", "Account", "Partition", "QOS", "Cluster"):
        frame[name.lower()] = _texts(rows, name)
    frame["listed"] = listed
    for name in ("Submit", "Eligible", "Start", "End"):
        frame[name.lower()] = numbers(name, "moment")
    frame["elapsed"] = _first(numbers("ElapsedRaw", "count"), numbers("Elapsed", "span"))
    frame["limit"] = _first(*(numbers(name, "limit") for name in ("TimelimitRaw", "Timelimit")))
    frame["cpus"], frame["nodes"] = cpus, nodes
    gpus, per_node = _first(alloc[:, 2], asked[:, 2]), _first(numbers("AllocGRES", "gres"), numbers("ReqGRES", "gres"))
    frame["gpus"] = np.where(gpus > 0, gpus, per_node * np.fmax(nodes, 1))
    frame["memory"] = _first(alloc[:, 1], asked[:, 1], memory)
    return check_table(frame.loc[~frame.index.isin(unread.lines), list(RECORDS.columns)], RECORDS, str(path))


def _texts(rows: pd.DataFrame, name: str) -> pd.Series:
    return rows[name].astype(str) if name in rows else pd.Series("", index=rows.index, dtype="str")


def _numbers(rows: pd.DataFrame, path: Path, unread: Unread, name: str, read: str, columns: int = 1) -> FloatArray:
    if name in rows and len(rows):
        return read_each(rows[name], read, path, unread)
    return np.full(len(rows) if columns == 1 else (len(rows), columns), np.nan)


def _first(*found: FloatArray) -> FloatArray:
    """Return of each row the first number that is known."""
    known = found[0]
    for other in found[1:]:
        known = np.where(np.isnan(known), other, known)
    return known
