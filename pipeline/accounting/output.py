"""Files of an import: a job table, a log of all resources, one in the Standard Workload Format, and a count of rows.

Users and accounts become numbers that cannot be traced without the key. A number is the first bits of a name's
HMAC-SHA-256: the same key gives a user the same number in every import, and without it names cannot be guessed.
"""

import hashlib
import hmac
import stat
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.accounting.jobs import COMPLETED
from pipeline.core.logs.slurm import LOG
from pipeline.core.logs.swf import FIELDS
from pipeline.core.logs.trace import held_at_once
from pipeline.core.schemas.columns import integers, table
from pipeline.core.storage.files import check_table, write
from pipeline.errors import UserError
from pipeline.interactive.scheduling.user_jobs import user_jobs_schema
from pipeline.problems.machines.env.tables import user_job_columns

KB_OF_GIB = 1024.0**2
DIGITS = 12  # enough for arrivals over years, to the second
DONE, FAILED, CANCELLED = 1, 0, 5  # field 11 of SWF

ACCOUNT = table(
    "ImportAccount",
    {
        "file": pa.Column(str),
        "what": pa.Column(str, pa.Check.isin(["dropped", "fixed"])),
        "why": pa.Column(str),
        "rows": integers(1),
        "first_line": integers(1),
    },
    unique=(),
)
SWF = pa.DataFrameSchema({f"field_{k}": integers(-1) for k in range(1, FIELDS + 1)}, strict=True, name="Swf")
LEAST = 16  # bytes of a key
MOST = 2**31 - 1  # numbers are between 1 and this, as readers of SWF accept them


def account_of(rows: Iterable[tuple[str, str, str, int, int]]) -> pd.DataFrame:
    """Return rows, even if there are none, as a table with the columns of ACCOUNT."""
    words = {name: "str" if place < 3 else "int64" for place, name in enumerate(ACCOUNT.columns)}
    return pd.DataFrame(rows, columns=list(words)).astype(words)


def write_import(
    out: Path, jobs: pd.DataFrame, account: pd.DataFrame, files: Mapping[str, str], more: str
) -> tuple[dict[str, object], list[str]]:
    """Write the files of an import into a folder, and return its result: as data, and as lines."""
    for name, text in files.items():
        write(out / name, text.encode())
    users = jobs["user"].nunique()
    return {"jobs": len(jobs), "users": users, "account": account, "files": [str(out / name) for name in files]}, [
        f"{len(jobs):,} jobs of {users:,} users; {more}",
        *(f"{row.what} {row.rows:,}: {row.why} ({row.file}:{row.first_line})" for row in account.itertuples()),
        f"written to {out}: {', '.join(files)}",
    ]


def output_files(out: Path, jobs: pd.DataFrame, users: Mapping[str, int], account: pd.DataFrame) -> dict[str, str]:
    """Return the checked contents of jobs.csv, log.csv, log.swf and account.csv; UserError if jobs break a rule."""
    per_node = {"cpu": jobs["cpus"], "memory": jobs["memory"], "gpu": jobs["gpus"]}
    held = {name: amount / jobs["nodes"] for name, amount in per_node.items() if name == "cpu" or amount.any()}
    columns = {"job": jobs["job"], "arrival": jobs["arrival"] - jobs["arrival"].iloc[0], "duration": jobs["duration"]}
    table = pd.DataFrame(columns | {"estimate": jobs["limit"], "nodes": jobs["nodes"]} | held)
    schema = user_jobs_schema(user_job_columns(list(held)), ["estimate", "nodes"])
    return {
        "jobs.csv": _csv(check_table(table, schema, str(out / "jobs.csv"))),
        "log.csv": _log(jobs, per_node, users, out),
        "log.swf": _swf(jobs, users, out),
        "account.csv": _csv(check_table(account, ACCOUNT, str(out / "account.csv"))),
    }


def _csv(frame: pd.DataFrame) -> str:
    return str(frame.to_csv(index=False, float_format=f"%.{DIGITS}g", lineterminator="\n"))


def _log(jobs: pd.DataFrame, per_node: Mapping[str, pd.Series], users: Mapping[str, int], out: Path) -> str:
    """Return a log with all resources and partitions, which `pipeline.core.logs.slurm` reads."""
    times = {"submit": jobs["arrival"], "wait": jobs["start"] - jobs["arrival"], "run": jobs["duration"]}
    others = {"limit": jobs["limit"], "user": jobs["user"].map(users), "nodes": jobs["nodes"]}
    held = {name: amount / jobs["nodes"] for name, amount in per_node.items()}
    words = {"partition": jobs["partition"].str.replace(",", "|"), "qos": jobs["qos"]}  # a job may name several
    words["account"] = jobs["account"].map(users).astype("str").replace("-1", "")
    numbers = pd.DataFrame(times | others | held).astype("float64")
    return _csv(check_table(numbers.assign(**words)[list(LOG.schema.columns)], LOG.schema, str(out / "log.csv")))


def _swf(jobs: pd.DataFrame, users: Mapping[str, int], out: Path) -> str:
    """Return a log in SWF 2.2: jobs numbered from 1 in the order of the job table."""
    queues, partitions = _numbered(jobs["qos"]), _numbered(jobs["partition"])
    kb = jobs["memory"] * KB_OF_GIB / jobs["cpus"]
    status = np.select([jobs["state"] == COMPLETED, jobs["state"] == "CANCELLED"], [DONE, CANCELLED], FAILED)
    given = {
        1: np.arange(1, len(jobs) + 1),
        2: jobs["arrival"] - jobs["arrival"].iloc[0],
        3: jobs["start"] - jobs["arrival"],
        4: jobs["duration"],
        5: jobs["cpus"],
        8: jobs["cpus"],
        9: jobs["limit"],
        10: kb.round().where(jobs["memory"] > 0, -1),
        11: status,
        12: jobs["user"].map(users),
        13: jobs["account"].map(users),
        15: jobs["qos"].map(queues),
        16: jobs["partition"].map(partitions),
    }
    columns = {f"field_{k}": given.get(k, -1) for k in range(1, FIELDS + 1)}
    rows = check_table(pd.DataFrame(columns, index=jobs.index).astype("int64"), SWF, str(out / "log.swf"))
    return _header(jobs, queues, partitions) + str(rows.to_csv(sep=" ", header=False, index=False, lineterminator="\n"))


def _header(jobs: pd.DataFrame, queues: Mapping[str, int], partitions: Mapping[str, int]) -> str:
    start, end = jobs["start"].to_numpy(), (jobs["start"] + jobs["duration"]).to_numpy()
    first, last = jobs["arrival"].min(), end.max()
    held = int(held_at_once(start, end, jobs["cpus"].to_numpy()))
    said = [("Version", "2.2"), ("Computer", "Slurm"), ("MaxJobs", len(jobs)), ("MaxRecords", len(jobs))]
    said += [("UnixStartTime", int(first)), ("StartTime", _day(first)), ("EndTime", _day(last))]
    said += [("MaxProcs", held), ("Note", "MaxProcs is the most CPUs that these jobs held at one time")]
    said += [("Note", "field 2 is when a job could start: its submission, or when it became eligible")]
    said += [(word, f"{number} {name}") for word, names in (("Queue", queues), ("Partition", partitions))
             for name, number in names.items() if name]  # fmt: skip
    return "".join(f"; {word}: {value}\n" for word, value in said)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _numbered(names: pd.Series) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(set(names) - {""}), 1)} | {"": -1}


def read_key(path: Path) -> bytes:
    """Return the key of a file. Raises UserError: it is missing, short, or readable by others."""
    try:
        mode, key = stat.S_IMODE(path.stat().st_mode), path.read_bytes().strip()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    if mode & 0o077:
        raise UserError(f"{path}: expected a key that only its owner may read (mode 600), found mode {mode:o}")
    if len(key) < LEAST:
        raise UserError(f"{path}: expected a key of {LEAST} bytes or more, found {len(key)}")
    return key


def pseudonyms(names: Iterable[str], key: bytes) -> dict[str, int]:
    """Return a number for each name; -1 for an empty one. Raises UserError: two names get one number."""
    numbers: dict[str, int] = {}
    for name in sorted(set(names) - {""}):
        digest = hmac.new(key, name.encode(), hashlib.sha256).digest()
        numbers[name] = 1 + int.from_bytes(digest[:8]) % MOST
    if len(set(numbers.values())) < len(numbers):
        raise UserError("two users get one number by this key: use another with --key-file")
    return numbers | {"": -1}
