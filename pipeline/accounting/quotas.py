"""Quotas of a Slurm cluster, from `sacctmgr --parsable2 show qos` and `sacctmgr --parsable2 show assoc`.

Associations need the columns `format=Account,User,ParentName,GrpJobs,GrpTRES,MaxJobs`. A quota of an account also
applies to accounts below it. MaxJobs of an account applies to each of its users; `sacctmgr` prints inherited values.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.core.config.evaluation import Quota
from pipeline.core.logs.slurm import sacctmgr_rows, whole
from pipeline.errors import UserError

OF_QOS = {"all": ("GrpTRES", "GrpJobs"), "user": ("MaxTRESPU", "MaxJobsPU"), "account": ("MaxTRESPA", "MaxJobsPA")}
NEEDED = ("Name", "Priority", *(name for pair in OF_QOS.values() for name in pair))
OTHERS = ("GrpTRESMins", "GrpTRESRunMins", "GrpWall", "Flags")  # that change which jobs may run
OVER = "OverPartQOS"  # the flag that is replayed
OF_ACCOUNT, PARENT = ("Account", "User", "GrpTRES", "GrpJobs", "MaxJobs"), "ParentName"
EXPECTED = (
    "'sacctmgr --parsable2 show qos' or 'sacctmgr --parsable2 show assoc "
    "format=Account,User,ParentName,GrpJobs,GrpTRES,MaxJobs'"
)

Row = Mapping[str, str]
Numbers = Callable[[Iterable[str]], Mapping[str, int]]  # maps names of accounts and users to numbers in the log


class Quotas(NamedTuple):
    """What a file says."""

    quotas: list[Quota]
    priorities: dict[str, int]  # of its QOS
    users: int  # associations of users
    lines: list[str]  # on limits that are left out


def read_quotas(path: Path, numbers: Numbers) -> Quotas:
    """Return the quotas of a file.

    Raises:
        UserError: the file has other columns, or a row cannot be read.
    """
    found, priorities, left, users = list[Quota](), dict[str, int](), Counter[str](), 0
    rows = list(sacctmgr_rows(path, (NEEDED, (*OF_ACCOUNT, PARENT)), EXPECTED))
    if rows and "Name" in rows[0][1]:
        for line, row in rows:
            priorities[row["Name"]] = whole(row, "Priority", f"{path}, line {line}", "0")
            left.update(name for name in OTHERS if row.get(name, "") not in ("", OVER))
            over = OVER in row.get("Flags", "").split(",")
            for each, names in OF_QOS.items():
                values = _limits(row, names, left, f"{path}, line {line}")
                one = {"each": each, "qos": row["Name"], "over_partition": over, **values}
                found += [Quota.model_validate(one)] if values else []
    else:
        found += _of_associations([row for _, row in rows], numbers, left, path)
        users = sum(row["User"] != "" for _, row in rows)
    lines = [f"{path}: {count:,} limits not replayed: {what}" for what, count in sorted(left.items())]
    return Quotas(found, priorities, users, lines)


def _limits(row: Row, names: tuple[str, ...], left: Counter[str], where: str) -> dict[str, int]:
    """Return the numbers of processors and jobs that a row allows."""
    found: dict[str, int] = {}
    tres, jobs = (row.get(name, "") for name in names)
    parts = dict(part.partition("=")[::2] for part in tres.split(",") if part)
    left.update(f"{names[0]} of {name}" for name in parts if name != "cpu")
    for key, name, text in (("cpus", names[0], parts.get("cpu", "")), ("jobs", names[1], jobs)):
        if text and not text.isdecimal():
            raise UserError(f"{where}: {name}: expected a whole number, found {text[:40]!r}")
        if text and int(text) == 0:
            left[f"{name} of 0, which blocks all jobs"] += 1
        elif text:
            found[key] = int(text)
    return found


def _of_associations(rows: list[Row], numbers: Numbers, left: Counter[str], path: Path) -> Iterator[Quota]:
    """Yield the quotas of accounts (which include those below) and of users, then each account's limit per user."""
    accounts = {row["Account"]: row for row in rows if not row["User"]}
    if len(accounts) < sum(not row["User"] for row in rows):
        raise UserError(f"{path}: expected associations of one cluster, found several: add 'where cluster=NAME'")
    limited = [row for row in rows if row["Account"] != "root" and any(row[name] for name in OF_ACCOUNT[2:])]
    known = numbers([*accounts, *(row["User"] for row in rows if row["User"])]) if limited else {}
    above = {name: set(_upward(name, accounts)) for name in accounts}
    most: dict[int, list[str]] = {}
    for row in rows:
        name, user = row["Account"], row["User"]
        where = f"{path}, account {name}" + (f", user {user}" if user else "")
        group, each = _limits(row, ("GrpTRES", "GrpJobs"), left, where), _limits(row, ("", "MaxJobs"), left, where)
        own = user and row["MaxJobs"] != accounts.get(name, row)["MaxJobs"]
        below = [name] if user else [one for one in above if name in above[one]]
        users = (known[user],) if user and known else ()
        if group:
            yield Quota(accounts=_listed(below, accounts, known), users=users, **group)  # type: ignore[arg-type]
        if own and each:
            yield Quota(each="association", accounts=_listed(below, accounts, known), users=users, jobs=each["jobs"])
        elif each and not user:
            most.setdefault(each["jobs"], []).append(name)
    for jobs, names in most.items():
        yield Quota(each="association", accounts=_listed(names, accounts, known), jobs=jobs)


def _listed(names: Iterable[str], accounts: Mapping[str, Row], known: Mapping[str, int]) -> tuple[str, ...]:
    """Return the numbers of accounts; none if they are all that there are."""
    return () if set(names) >= set(accounts) else tuple(sorted(str(known[name]) for name in names))


def _upward(name: str, accounts: Mapping[str, Row]) -> Iterator[str]:
    """Yield an account and those above it."""
    seen = set[str]()
    while name in accounts and name not in seen:
        seen.add(name)
        yield name
        name = accounts[name][PARENT]
