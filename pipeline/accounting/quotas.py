"""Quotas of a Slurm cluster, from `sacctmgr --parsable2 show qos` and `sacctmgr --parsable2 show assoc`.

Associations need the columns `format=Account,User,ParentName,GrpJobs,GrpTRES,MaxJobs`. A quota of an account also
applies to accounts below it. MaxJobs of an account applies to each of its users; `sacctmgr` prints inherited values.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from pipeline.core.config.evaluation import Quota
from pipeline.core.logs.slurm import sacctmgr_rows, whole
from pipeline.errors import UserError

OF_QOS = {"all": ("GrpTRES", "GrpJobs"), "user": ("MaxTRESPU", "MaxJobsPU"), "account": ("MaxTRESPA", "MaxJobsPA")}
NEEDED = ("Name", "Priority", *(name for pair in OF_QOS.values() for name in pair))
OF_ACCOUNT, PARENT = ("Account", "User", "GrpTRES", "GrpJobs", "MaxJobs"), "ParentName"
EXPECTED = (
    "'sacctmgr --parsable2 show qos' or 'sacctmgr --parsable2 show assoc "
    "format=Account,User,ParentName,GrpJobs,GrpTRES,MaxJobs'"
)

Row = Mapping[str, str]
Numbers = Callable[[Iterable[str]], Mapping[str, int]]  # maps names of accounts to numbers in the log


def read_quotas(path: Path, numbers: Numbers) -> tuple[list[Quota], dict[str, int], list[str]]:
    """Return the quotas of a file, the priorities of its QOS, and lines on limits that are left out.

    Raises:
        UserError: the file has other columns, or a row cannot be read.
    """
    found, priorities, left = list[Quota](), dict[str, int](), Counter[str]()
    rows = list(sacctmgr_rows(path, (NEEDED, (*OF_ACCOUNT, PARENT)), EXPECTED))
    if rows and "Name" in rows[0][1]:
        for line, row in rows:
            priorities[row["Name"]] = whole(row, "Priority", f"{path}, line {line}", "0")
            for each, names in OF_QOS.items():
                values = _limits(row, names, left, f"{path}, line {line}")
                found += [Quota(each=each, qos=row["Name"], **values)] if values else []  # type: ignore[arg-type]
    else:
        found += _of_accounts([row for _, row in rows], numbers, left, path)
    return (
        found,
        priorities,
        [f"{path}: {count:,} limits not replayed: {what}" for what, count in sorted(left.items()) if count],
    )


def _limits(row: Row, names: tuple[str, ...], left: Counter[str], where: str) -> dict[str, int]:
    """Return the numbers of processors and jobs that a row allows."""
    values: dict[str, int] = {}
    tres, jobs = (row[name] for name in names)
    for part in filter(None, tres.split(",")):
        name, _, amount = part.partition("=")
        if name == "cpu":
            values["cpus"] = _whole(amount, names[0], where)
        else:
            left[f"{names[0]} of {name.partition('/')[0]}"] += 1
    if jobs:
        values["jobs"] = _whole(jobs, names[1], where)
    return values


def _whole(text: str, name: str, where: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{where}: {name}: expected a whole number above 0, found {text[:40]!r}")
    return int(text)


def _of_accounts(rows: list[Row], numbers: Numbers, left: Counter[str], path: Path) -> Iterator[Quota]:
    """Yield the quotas of accounts with those below them, then those of each of their users."""
    if len({row.get("Cluster", "") for row in rows}) > 1:
        raise UserError(f"{path}: expected associations of one cluster, found several: add 'where cluster=NAME'")
    accounts = {row["Account"]: row for row in rows if not row["User"]}
    above = {name: list(_upward(name, accounts)) for name in accounts}
    number = {name: str(one) for name, one in numbers(accounts).items()}
    most: dict[int, list[str]] = {}
    for name, row in accounts.items():
        if values := _limits(row, ("GrpTRES", "GrpJobs"), left, f"{path}, account {name}"):
            mine = () if name == "root" else tuple(sorted(number[one] for one in above if name in above[one]))
            yield Quota(accounts=mine, cpus=values.get("cpus"), jobs=values.get("jobs"))
        if row["MaxJobs"]:
            jobs = _whole(row["MaxJobs"], "MaxJobs", f"{path}, account {name}")
            most.setdefault(jobs, []).append(number[name])
    for jobs, members in most.items():
        yield Quota(each="user", accounts=tuple(sorted(members)), jobs=jobs)
    for row in rows:
        if row["User"]:
            own = row["MaxJobs"] != accounts.get(row["Account"], row)["MaxJobs"]
            left["of single users"] += own + sum(bool(row[name]) for name in ("GrpTRES", "GrpJobs"))


def _upward(name: str, accounts: Mapping[str, Row]) -> Iterator[str]:
    """Yield an account and those above it."""
    seen = set[str]()
    while name in accounts and name not in seen:
        seen.add(name)
        yield name
        name = accounts[name][PARENT]
