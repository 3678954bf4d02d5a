"""The log that `import slurm` writes, and nodes and outages as `scontrol` and `sacctmgr` print them.

The first line of `log.csv` names its columns. A job holds cpu, memory (GiB) and gpu on each of its nodes; it counts as
submitted when it is eligible. With a file of nodes, the kinds of machines are the sets of partitions that nodes belong
to, such as "cpu+long": a job fits every kind with its partition. Outages have times in UTC.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.core.config.parsing import read_text
from pipeline.core.logs.rows import Layout, schema
from pipeline.core.logs.task_rows import Tasks, read_tasks
from pipeline.core.logs.trace import WITH_GPUS, Columns, MachineTable, Trace, thousandths
from pipeline.core.types import ANY_KIND, MOST_KINDS, IntArray, KeyArray
from pipeline.errors import UserError
from pipeline.progress import ProgressCallback, no_progress

WORDS = ("partition", "account", "qos")
NODE, UNSET = "scontrol show node", ("", "(null)", "NONE", "none", "None", "N/A", "NO", "No")
LOG = Layout(
    schema("slurm", times="submit wait run limit user", amounts="nodes cpu memory gpu", words="partition account qos"),
    optional=("account", "qos"),
)
UNKNOWN, NO_NODES = "a time, the nodes or an amount unknown", "nodes, CPUs or run time not above 0"
NO_PARTITION = "in a partition that no node has"
OUTAGES = "'sacctmgr --parsable2 show event' or 'show reservation format=Name,Start,End,NodeNames,Flags'"
COLUMNS, EVENT, RESERVATION = ("TimeStart", "TimeEnd", "NodeName"), "State", "Flags"  # of both, events, reservations
MAINTENANCE = "MAINT"  # the flag of reservations in which no job runs
MOST_NODES = 20_000  # of one list
PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]+\][^,\[\]]*)*")
PIECE = re.compile(r"\[([^\[\]]+)\]|([^\[\]]+)")
RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
GPU = re.compile(r"gpu(?::[^:,(]+)?:(\d+)", re.ASCII)


class SlurmNode(NamedTuple):
    """A node."""

    name: str
    cpus: int
    mib: int
    gres: str
    partitions: tuple[str, ...]

    @property
    def gpus(self) -> int:
        """Return the number of its GPUs, of all types."""
        return sum(map(int, GPU.findall(self.gres)))


def records(text: str, first: str, where: str) -> list[dict[str, str]]:
    """Return the values of each record that scontrol prints, by key; UserError if the text begins with something else.

    Every record begins with the key `first`.
    """
    begun, *parts = re.split(rf"^(?={first}=)", text, flags=re.MULTILINE)
    if begun.strip():
        raise UserError(f"{where}: expected {first}=..., found {begun.strip()[:40]!r}")
    return [dict(re.findall(r"(?<!\S)([\w/]+)=(\S*)", part)) for part in parts]


def whole(row: Mapping[str, str], name: str, where: str, otherwise: str) -> int:
    """Return a whole number of a record; a UserError if it is none."""
    text = row.get(name, otherwise)
    if not re.fullmatch(r"\d{1,12}", text, re.ASCII):
        raise UserError(f"{where}: {name}: expected a whole number, found {text[:40]!r}")
    return int(text)


def sacctmgr_rows(path: Path, layouts: Sequence[Sequence[str]], expected: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and row of what `sacctmgr --parsable2` prints; a UserError if it has the columns of no layout."""
    head, *lines = read_text(path).removeprefix("\ufeff").splitlines() or [""]
    names = head.split("|")
    if lacking := min(([name for name in layout if name not in names] for layout in layouts), key=len):
        raise UserError(f"{path}: no column {lacking[0]}: expected the output of {expected}")
    for number, line in enumerate(lines, start=2):
        if line.count("|") != head.count("|") and line:
            raise UserError(f"{path}, line {number}: expected {len(names)} columns with bars between them")
        if line:
            yield number, dict(zip(names, line.split("|"), strict=True))


def nodes_of(text: str, where: str = NODE) -> tuple[SlurmNode, ...]:
    """Parse the output of `scontrol show node`; a UserError if it is something else."""
    found = []
    for row in records(text, "NodeName", where):
        at, gres = f"{where}, {row['NodeName']}", row.get("Gres", "")
        parts = tuple(sorted(part for part in row.get("Partitions", "").split(",") if part))
        amounts = whole(row, "CPUTot", at, "1"), whole(row, "RealMemory", at, "1")
        found.append(SlurmNode(row["NodeName"], *amounts, "" if gres in UNSET else gres, parts))
    return tuple(found)


def read(path: Path, on_progress: ProgressCallback = no_progress, *, nodes: Path | None = None) -> Trace:
    """Read a log, and its machines if `nodes` is given; UserError if a file or row is invalid, or no job is left."""
    machines, names = (None, [""]) if nodes is None else _machines(nodes)
    partitions, groups = dict[str, int](), dict[tuple[str, str], int]()

    def taken(frame: pd.DataFrame) -> Tasks:
        kinds = np.full(len(frame), ANY_KIND) if machines is None else _kinds(frame["partition"], names)
        words = {name: frame[name].fillna("").to_numpy() for name in WORDS}
        pairs = pd.Series([*zip(words["account"], words["qos"], strict=True)], dtype=object).to_numpy()
        numbers = {"partition": _numbers(words["partition"], partitions), "group": _numbers(pairs, groups)}
        return _tasks(frame, {"kinds": kinds, **numbers})

    facts = WITH_GPUS._replace(kind_names=tuple(names), has_estimates=True, machines=machines)
    found = read_tasks(path, LOG, taken, facts, on_progress)
    return found._replace(partition_names=tuple(partitions), group_names=tuple(groups))


def _numbers(names: np.ndarray, known: dict[Any, int]) -> IntArray:
    """Return the numbers of names; new names are added to those that are known."""
    codes, found = pd.factorize(names)
    return np.array([known.setdefault(name, len(known)) for name in found], dtype=np.int64)[codes]


def _tasks(frame: pd.DataFrame, others: Columns) -> Tasks:
    column = {name: frame[name].to_numpy() for name in frame.columns.drop(list(WORDS))}
    amount = np.column_stack([column[name] for name in WITH_GPUS.resources])
    needed = np.column_stack([column["submit"], column["run"], column["limit"], column["nodes"], amount])
    positive = (column["run"] > 0) & (column["limit"] > 0) & (column["nodes"] >= 1) & (column["cpu"] > 0)
    causes = {
        UNKNOWN: np.isnan(needed).any(axis=1),
        NO_NODES: ~positive | (amount < 0).any(axis=1),
        NO_PARTITION: others["kinds"] == 0,
    }
    columns = {
        "submit_s": column["submit"],
        "run_s": column["run"],
        "nodes": column["nodes"],
        "wait_s": np.where(column["wait"] >= 0, column["wait"], np.nan),
        "estimate_s": column["limit"],
        "user": np.nan_to_num(column["user"], nan=-1),
    }
    return Tasks(amount, causes, columns | others)


def _machines(path: Path) -> tuple[MachineTable, list[str]]:
    """Return the nodes that belong to partitions, and the names of their kinds."""
    found = [node for node in nodes_of(read_text(path), str(path)) if node.partitions]
    if not found:
        raise UserError(f"{path}: expected nodes with partitions, as '{NODE}' prints them, found none")
    kinds = ["+".join(node.partitions) for node in found]
    names = sorted(set(kinds))
    if len(names) > MOST_KINDS:
        raise UserError(f"{path}: expected at most {MOST_KINDS} different sets of partitions, found {len(names)}")
    capacity = thousandths(np.array([(node.cpus, node.mib / 1024, node.gpus) for node in found]))
    kind = np.array([names.index(kind) for kind in kinds])
    return MachineTable(capacity, kind, WITH_GPUS.resources, tuple(node.name for node in found)), names


def _kinds(partitions: pd.Series, names: Sequence[str]) -> KeyArray:
    """Return the kinds that jobs may run on; a job's partitions are separated by a bar."""
    codes, found = pd.factorize(partitions.fillna(""))
    sets = [set(name.split("+")) for name in names]
    bits = [sum(1 << k for k, one in enumerate(sets) if one & set(text.split("|"))) for text in found]
    whole = (1 << len(names)) - 1  # all kinds: the job runs on any machine
    return np.array([ANY_KIND if one == whole else one for one in bits], dtype=np.uint64)[codes]


class Outage(NamedTuple):
    """A time in which no job starts on a node."""

    node: str
    begin: float  # s since 1970
    end: float  # s since 1970; inf: it has not ended
    announced: bool  # a reservation, which Slurm knows before it begins


def read_outages(path: Path) -> tuple[list[Outage], int]:
    """Return the outages of a file, and the number of reservations that are left out because jobs run in them.

    Raises:
        UserError: the file has other columns, or a row cannot be read.
    """
    found, others = list[Outage](), 0
    for number, row in sacctmgr_rows(path, [(*COLUMNS, RESERVATION), (*COLUMNS, EVENT)], OUTAGES):
        reserved = EVENT not in row
        if reserved and MAINTENANCE not in row[RESERVATION].split(","):
            others += 1
            continue
        try:
            found += _outages(row, reserved)
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    return found, others


def _outages(row: Mapping[str, str], announced: bool) -> Iterator[Outage]:
    """Yield the outages of a row; events of the whole cluster name no node."""
    begin, end = (_seconds(row[name], name) for name in COLUMNS[:2])
    if begin == math.inf or begin > end:
        raise UserError(f"expected TimeStart before TimeEnd, found {row['TimeStart']!r} and {row['TimeEnd']!r}")
    for node in expand_hostlist(row["NodeName"]):
        if begin < end:
            yield Outage(node, begin, end, announced)


def _seconds(text: str, name: str) -> float:
    if text in ("Unknown", "None", ""):
        return math.inf
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{name}: expected a time as 2026-01-31T12:00:00, found {text[:40]!r}") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def expand_hostlist(text: str) -> list[str]:
    """Return the names of a list of nodes, in its order.

    >>> expand_hostlist("n[08-10,12],gpu1,r[1-2]c[1-2]")
    ['n08', 'n09', 'n10', 'n12', 'gpu1', 'r1c1', 'r1c2', 'r2c1', 'r2c2']

    Raises:
        UserError: it is not a list of nodes, or longer than any cluster's.
    """
    wrong = UserError(f"expected a list of nodes, found {text[:60]!r}")
    found: list[str] = []
    at = 0
    while at < len(text):
        match = PART.match(text, at)
        if match is None or not match[0] or (match.end() < len(text) and text[match.end()] != ","):
            raise wrong
        at = match.end() + 1
        pieces: list[list[str]] = []
        for inside, plain in PIECE.findall(match[0]):
            names = [] if inside else [plain]
            for one in inside.split(",") if inside else ():
                numbers = RANGE.fullmatch(one)
                first, last = (int(numbers[1]), int(numbers[2] or numbers[1])) if numbers else (0, -1)
                if numbers is None or not 0 <= last - first < MOST_NODES:
                    raise wrong
                names += [str(number).zfill(len(numbers[1])) for number in range(first, last + 1)]
            pieces.append(names)
        if len(found) + math.prod(map(len, pieces)) > MOST_NODES:
            raise UserError(f"a list of more than {MOST_NODES} nodes")
        found += ["".join(names) for names in product(*pieces)]
    return found
