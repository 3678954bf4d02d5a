"""The rows of a dump as numbers and words, checked: one row a run of a job, a step, or a job that never ran."""

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.accounting.fields import is_unknown, read_each
from pipeline.core import FloatArray
from pipeline.storage.files import check_table


def _number(nullable: bool = True, least: float = 0.0) -> pa.Column:
    return pa.Column("float64", pa.Check.ge(least, error=f"at least {least:g}"), nullable=nullable)


RECORDS = pa.DataFrameSchema(
    {
        "job": pa.Column(str, pa.Check.str_length(min_value=1, error="an id")),
        **{name: pa.Column(bool) for name in ("step", "array", "het", "placed")},
        **{name: pa.Column(str) for name in ("user", "account", "partition", "qos", "state")},
        **{name: _number() for name in ("submit", "eligible", "start", "end")},  # s since 1970
        "elapsed": _number(),  # s
        "limit": _number(),  # s; inf: without end
        **{name: _number() for name in ("cpus", "nodes", "gpus")},
        "memory": _number(),  # GiB of all its nodes
    },
    strict=True,
    ordered=True,
    name="Records",
)


def records(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return what rows of texts say, indexed as they are; what is unknown is nan.

    Args:
        rows: of a dump, under sacct's names.
        path: of the dump.

    Raises:
        UserError: a field is not what Slurm writes; it is named with its line.
    """
    alloc, asked = (_numbers(rows, name, "tres", path, 4) for name in ("AllocTRES", "ReqTRES"))
    counts = {name: _numbers(rows, name, "count", path) for name in ("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes")}
    cpus = _first(alloc[:, 0], counts["AllocCPUS"], counts["NCPUS"], asked[:, 0], counts["ReqCPUS"])
    nodes = _first(counts["NNodes"], alloc[:, 3], asked[:, 3])
    whole, of_cpu, of_node = _numbers(rows, "ReqMem", "memory", path, 3).T
    listed = _texts(rows, "JobID" if "JobID" in rows else "JobIDRaw")
    frame = pd.DataFrame({"job": _texts(rows, "JobIDRaw" if "JobIDRaw" in rows else "JobID")}, index=rows.index)
    frame["step"] = frame["job"].str.contains(".", regex=False)
    frame["array"], frame["het"] = listed.str.contains("_"), listed.str.contains("+", regex=False)
    frame["placed"] = ~rows["NodeList"].map(is_unknown) if "NodeList" in rows else True
    for name in ("User", "Account", "Partition", "QOS"):
        frame[name.lower()] = _texts(rows, name)
    frame["state"] = _texts(rows, "State").str.split().str[0].fillna("")  # CANCELLED by 1000
    for name in ("Submit", "Eligible", "Start", "End"):
        frame[name.lower()] = _numbers(rows, name, "moment", path)
    frame["elapsed"] = _first(_numbers(rows, "ElapsedRaw", "count", path), _numbers(rows, "Elapsed", "span", path))
    frame["limit"] = _first(*(_numbers(rows, name, "limit", path) for name in ("TimelimitRaw", "Timelimit")))
    frame["cpus"], frame["nodes"] = cpus, nodes
    frame["gpus"] = _first(alloc[:, 2], asked[:, 2])
    frame["memory"] = _first(alloc[:, 1], asked[:, 1], whole + of_cpu * cpus + of_node * nodes)
    return check_table(frame, RECORDS, str(path))


def _texts(rows: pd.DataFrame, name: str) -> pd.Series:
    return rows[name].astype(str) if name in rows else pd.Series("", index=rows.index, dtype=object)


def _numbers(rows: pd.DataFrame, name: str, read: str, path: Path, columns: int = 1) -> FloatArray:
    if name in rows:
        return read_each(rows[name], read, path)
    return np.full(len(rows) if columns == 1 else (len(rows), columns), np.nan)


def _first(*found: FloatArray) -> FloatArray:
    """Return of each row the first number that is known."""
    known = found[0]
    for other in found[1:]:
        known = np.where(np.isnan(known), other, known)
    return known
