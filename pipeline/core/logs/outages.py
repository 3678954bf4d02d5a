"""Outages of Slurm's nodes, from `sacctmgr --parsable2 show event` and `show reservation`, with times in UTC."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import NamedTuple

from pipeline.core.logs.slurm import sacctmgr_rows
from pipeline.errors import UserError

EXPECTED = "'sacctmgr --parsable2 show event' or 'show reservation format=Name,Start,End,NodeNames,Flags'"
COLUMNS, EVENT, RESERVATION = ("TimeStart", "TimeEnd", "NodeName"), "State", "Flags"  # of both, events, reservations
MAINTENANCE = "MAINT"  # the flag of reservations in which no job runs
MOST_NODES = 20_000  # of one list
PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]+\][^,\[\]]*)*")
PIECE = re.compile(r"\[([^\[\]]+)\]|([^\[\]]+)")
RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


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
    for number, row in sacctmgr_rows(path, [(*COLUMNS, RESERVATION), (*COLUMNS, EVENT)], EXPECTED):
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
