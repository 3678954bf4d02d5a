"""`python -m pipeline import slurm`: job table and log from accounting dumps, with a count of dropped and fixed rows.

The rows of a dump become checked numbers and words: one row per run of a job, step, or job that never ran.
"""

import secrets
from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.accounting.dumps import dump_rows
from pipeline.accounting.fields import Unread, is_unknown, read_each, state
from pipeline.accounting.jobs import COMPLETED, jobs_among, one_by_one
from pipeline.accounting.output import account_of, output_files, pseudonyms, read_key, write_import
from pipeline.core.logs.trace import Sieve
from pipeline.core.storage.files import OWNER, check_out, write
from pipeline.core.types import FloatArray
from pipeline.errors import UserError
from pipeline.progress import progress

KEY, NAMES = "users.key", "users.csv"


def records(rows: pd.DataFrame, unread: Unread) -> pd.DataFrame:
    """Convert a dump's rows of texts, indexed by line; unknown numbers are nan, and `unread` gets the invalid lines.

    Times are in seconds; moments count from 1970. A limit of inf means no limit. Memory is in GiB, on all nodes.
    """
    numbers = partial(_numbers, rows, unread)
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
    never = (frame["state"] == "CANCELLED") & (rows["Start"] == rows["End"])  # before Slurm placed it
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
    return frame[~frame.index.isin(unread.lines)]


def _texts(rows: pd.DataFrame, name: str) -> pd.Series:
    return rows[name].astype(str) if name in rows else pd.Series("", index=rows.index, dtype="str")


def _numbers(rows: pd.DataFrame, unread: Unread, name: str, read: str, columns: int = 1) -> FloatArray:
    if name in rows and len(rows):
        return read_each(rows[name], read, unread)
    return np.full(len(rows) if columns == 1 else (len(rows), columns), np.nan)


def _first(*found: FloatArray) -> FloatArray:
    """Return the first known number of each row."""
    return reduce(lambda known, other: np.where(np.isnan(known), other, known), found)


def run(
    files: Sequence[Path],
    out: Path,
    key_file: Path | None = None,
    name_users: bool = False,
    partial: bool = False,
    cluster: str | None = None,
) -> tuple[dict[str, object], list[str]]:
    """Import dumps into the folder `out`, and report them as data and as lines.

    Without `key_file`, the key is in the folder, and created if missing. `name_users` writes the number of each user.
    `partial` accepts a cut last line, a single user, and up to half of the lines unreadable. `cluster` selects one of
    several. UserError, and no file, if a dump is unreadable or holds no log of a site.
    """
    dumps = [(path, Sieve()) for path in files]
    which = f"{files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''}"
    jobs = one_by_one(_read(dumps, which, partial, cluster), [sieve for _, sieve in dumps])
    _must_be_a_log(jobs, which, partial)
    account = account_of(
        [
            (str(path), what, found.reason, found.rows, found.first_line)
            for path, sieve in dumps
            for what, all_found in (("dropped", sieve.dropped), ("fixed", sieve.repaired))
            for found in all_found
        ]
    )
    stored = key_file is not None or (out / KEY).exists()
    key_file = key_file or out / KEY
    key = read_key(key_file) if stored else secrets.token_hex(32).encode()
    users = pseudonyms([*jobs["user"], *jobs["account"]], key)
    content = output_files(out, jobs, users, account)  # all files, before the first is written
    if name_users:
        rows = [f"{users[name]},{name}\n" for name in sorted(set(jobs["user"]) - {""})]
        content[NAMES] = "".join(["number,user\n", *rows])
    for name in content:
        check_out(out / name, [name], files, "import")
    if not stored:
        write(key_file, key + b"\n", OWNER)
    dropped = int(account.loc[account["what"] == "dropped", "rows"].sum())
    return write_import(out, jobs, account, content, f"{dropped:,} of {len(jobs) + dropped:,} rows are not jobs")


def _read(dumps: Sequence[tuple[Path, Sieve]], which: str, partial: bool, cluster: str | None) -> pd.DataFrame:
    parts: list[pd.DataFrame] = []
    for number, (path, sieve) in enumerate(dumps):
        with progress(f"read {path}, percent", 100, brief=True) as advance:
            unread = Unread()
            for rows in dump_rows(path, sieve, unread, partial, advance):
                found = records(rows, unread)
                parts.append(jobs_among(found, sieve, cluster).assign(file=number))
            _leave_out(unread, path, sieve, partial)
    found = pd.concat(parts) if parts else pd.DataFrame()
    if not len(found):
        why = "; ".join(f"{what.rows:,} {what.reason}" for _, sieve in dumps for what in sieve.dropped)
        raise UserError(f"{which}: expected jobs that ran, found none{f' ({why})' if why else ''}")
    clusters = {str(name): len(jobs) for name, jobs in found.groupby("cluster") if not is_unknown(str(name))}
    if len(clusters) > 1:
        names = ", ".join(f"{name} ({count:,} jobs)" for name, count in clusters.items())
        raise UserError(f"{which}: expected the jobs of one cluster, found {names}; choose one with --cluster")
    return found


def _leave_out(unread: Unread, path: Path, sieve: Sieve, partial: bool) -> None:
    """Count the lines that cannot be read; refuse too many of them."""
    lines = np.array(sorted(unread.lines), dtype=np.int64)
    if len(lines) > (0.5 if partial else 0.1) * unread.rows:
        more = f" ({len(lines):,} of {unread.rows:,} lines are so; up to a tenth is left out, half with --partial)"
        raise UserError(f"{path}:{unread.first}: {unread.why}{more}")
    sieve.keep(lines, {f"cannot be read: {unread.why}": np.ones(len(lines), dtype=bool)})


def _must_be_a_log(jobs: pd.DataFrame, which: str, partial: bool) -> None:
    states, users = jobs["state"].value_counts(), jobs["user"].nunique()
    if COMPLETED not in states:
        found = ", ".join(f"{name} {count:,}" for name, count in states.items())
        raise UserError(f"{which}: expected completed jobs, found none among {len(jobs):,} ({found})")
    if users < 2 and not partial:
        raise UserError(
            f"{which}: expected the jobs of all users, found a single user; "
            "dump with --allusers as root or operator, or accept it with --partial"
        )
