"""`python -m pipeline import slurm`: from what Slurm wrote to a job table and a log, with an account of every row."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.accounting.dumps import dump_rows
from pipeline.accounting.fields import Unread, is_unknown
from pipeline.accounting.jobs import COMPLETED, jobs_among, one_by_one
from pipeline.accounting.records import records
from pipeline.accounting.users import new_key, pseudonyms, read_key, store_key
from pipeline.accounting.written import account_of, made
from pipeline.errors import UserError
from pipeline.logs.lines import CHUNK
from pipeline.logs.trace import Sieve
from pipeline.progress import progress
from pipeline.storage.files import check_out, write

KEY, NAMES = "users.key", "users.csv"


class SlurmImport(NamedTuple):
    """What is imported, and how."""

    files: Sequence[Path]
    out: Path  # a folder
    key_file: Path | None = None  # None: beside what is written; made where there is none
    name_users: bool = False  # say which number is whose
    partial: bool = False  # a cut last line, one user, and up to half of the lines unreadable are no mistakes
    cluster: str | None = None  # whose jobs are wanted, where there are several


def run(wanted: SlurmImport, chunk: int = CHUNK) -> list[str]:
    """Import dumps, and return what to say of it.

    Args:
        wanted: what, and how.
        chunk: bytes that are read at a time.

    Raises:
        UserError: a dump cannot be read, or holds no log of a site; nothing is written then.
    """
    sieves = [Sieve() for _ in wanted.files]
    jobs = one_by_one(_read(wanted, sieves, chunk), sieves)
    _must_be_a_log(jobs, wanted)
    account = _account(wanted.files, sieves)
    key_file = wanted.key_file or wanted.out / KEY
    stored = wanted.key_file is not None or key_file.exists()
    key = read_key(key_file) if stored else new_key()
    users = pseudonyms([*jobs["user"], *jobs["account"]], key)
    content = made(wanted.out, jobs, users, account)  # all of it, before the first is written
    if wanted.name_users:
        rows = [f"{users[name]},{name}\n" for name in sorted(set(jobs["user"]) - {""})]
        content[NAMES] = "".join(["number,user\n", *rows])
    for name in content:
        check_out(wanted.out / name, [name], wanted.files, "import")
    if not stored:
        store_key(key_file, key)
    for name, text in content.items():
        write(wanted.out / name, text.encode())
    return _said(wanted, jobs, account, content)


def _read(wanted: SlurmImport, sieves: Sequence[Sieve], chunk: int) -> pd.DataFrame:
    parts: list[pd.DataFrame] = []
    for number, (path, sieve) in enumerate(zip(wanted.files, sieves, strict=True)):
        with progress(f"read {path}, percent", 100, brief=True) as advance:
            unread = Unread()
            for rows in dump_rows(path, sieve, unread, wanted.partial, advance, chunk):
                found = records(rows, path, unread)
                parts.append(jobs_among(found, sieve, wanted.cluster).assign(file=number))
            _leave_out(unread, path, sieve, wanted.partial)
    found = pd.concat(parts) if parts else pd.DataFrame()
    if not len(found):
        why = "; ".join(f"{what.rows:,} {what.reason}" for sieve in sieves for what in sieve.dropped)
        raise UserError(f"{_names(wanted)}: expected jobs that ran, found none{f' ({why})' if why else ''}")
    clusters = {str(name): len(jobs) for name, jobs in found.groupby("cluster") if not is_unknown(str(name))}
    if len(clusters) > 1:
        names = ", ".join(f"{name} ({count:,} jobs)" for name, count in clusters.items())
        raise UserError(f"{_names(wanted)}: expected the jobs of one cluster, found {names}; choose one with --cluster")
    return found


def _leave_out(unread: Unread, path: Path, sieve: Sieve, partial: bool) -> None:
    """Count the lines that cannot be read; many of them are no accident."""
    lines = np.array(sorted(unread.lines), dtype=np.int64)
    if len(lines) > (0.5 if partial else 0.1) * unread.rows:
        more = f" ({len(lines):,} of {unread.rows:,} lines are so; up to a tenth is left out, half with --partial)"
        raise UserError(f"{path}:{unread.first}: {unread.why}{more}")
    sieve.keep(lines, {f"cannot be read: {unread.why}": np.ones(len(lines), dtype=bool)})


def _must_be_a_log(jobs: pd.DataFrame, wanted: SlurmImport) -> None:
    states, users = jobs["state"].value_counts(), jobs["user"].nunique()
    if COMPLETED not in states:
        found = ", ".join(f"{name} {count:,}" for name, count in states.items())
        raise UserError(f"{_names(wanted)}: expected completed jobs, found none among {len(jobs):,} ({found})")
    if users < 2 and not wanted.partial:
        raise UserError(
            f"{_names(wanted)}: expected the jobs of all users, found one alone; "
            "dump with --allusers as root or operator, or take it as it is with --partial"
        )


def _names(wanted: SlurmImport) -> str:
    more = len(wanted.files) - 1
    return f"{wanted.files[0]}{f' and {more} more' if more else ''}"


def _account(files: Sequence[Path], sieves: Sequence[Sieve]) -> pd.DataFrame:
    return account_of(
        [
            (str(path), what, found.reason, found.rows, found.first_line)
            for path, sieve in zip(files, sieves, strict=True)
            for what, all_found in (("dropped", sieve.dropped), ("mended", sieve.repaired))
            for found in all_found
        ]
    )


def _said(wanted: SlurmImport, jobs: pd.DataFrame, account: pd.DataFrame, content: Iterable[str]) -> list[str]:
    dropped = int(account.loc[account["what"] == "dropped", "rows"].sum())
    said = [
        f"{len(jobs):,} jobs of {jobs['user'].nunique():,} users; {dropped:,} of {len(jobs) + dropped:,} rows are none",
        *(f"{row.what} {row.rows:,}: {row.why} ({row.file}:{row.first_line})" for row in account.itertuples()),
    ]
    return [*said, f"written to {wanted.out}: {', '.join(content)}"]
