"""Parsers of Slurm's fields: times, spans, limits, amounts; each parses a text or raises ValueError.

Sources: the manual pages sacct(1) and slurm.conf(5) of Slurm 22.05, and its output on a real cluster.
"""

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pandas as pd

from pipeline.core.types import FloatArray

UNKNOWN = frozenset({"", "unknown", "none", "n/a", "(null)", "none assigned", "partition_limit", "invalid"})
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
SPAN = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2})(?:\.\d+)?")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]?)([cn]?)")
MIB = {"": Fraction(1)} | {word: Fraction(1024) ** power for power, word in enumerate("KMGTPE", -1)}
PER_CPU = (2**63, 2**31)  # flags added to an amount in MiB; the rest of the amount is per CPU
GPU = re.compile(r"(?:gres[:/])?gpu(?:[:=](\d+)|:([^:=]+)(?:[:=](\d+))?)?")
MOST = 1e12  # of a number
DAY_S = 86_400
NOT_ENDED = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT", "STOPPED",
             "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")  # fmt: skip
ENDED = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
         "REQUEUED", "RESIZING", "REVOKED", "TIMEOUT")  # fmt: skip


class Unread:
    """The lines of a dump that cannot be read."""

    def __init__(self) -> None:
        self.rows, self.lines = 0, set[int]()  # rows: of the whole dump
        self.first, self.why = 0, ""  # the first of the lines, and the reason

    def add(self, lines: Iterable[int], why: str) -> None:
        """Add lines that cannot be read, and the reason."""
        found = set(lines)
        if found and (not self.lines or min(found) < self.first):
            self.first, self.why = min(found), why
        self.lines |= found


def read_each(texts: pd.Series, read: str, unread: Unread) -> FloatArray:
    """Return the numbers of a column of texts, [R] or [R, K]; each distinct text is read once.

    Texts are indexed by line and named after their column. `read` is their kind, a key of READERS. `unread` collects
    the lines of invalid texts, which become nan.
    """
    reader, expected = READERS[read]
    codes, words = pd.factorize(texts)
    values = []
    for code, word in enumerate(words):
        try:
            values.append(reader(word))
        except ValueError:
            unread.add(texts.index[codes == code], f"expected {expected} as {texts.name}, found '{word[:40]}'")
            values.append(np.full_like(np.asarray(reader("")), math.nan))
    return np.asarray(values, dtype=np.float64)[codes]


def is_unknown(text: str) -> bool:
    """Return whether the text is one of Slurm's words for unknown."""
    return text.lower() in UNKNOWN


def state(text: str) -> str:
    """Return the state of a job.

    >>> state("CANCELLED by 1000"), state("OUT_OF_ME+"), state("RUNNING+")
    ('CANCELLED', 'OUT_OF_MEMORY', 'RUNNING')
    """
    word = text.split(maxsplit=1)[0].upper() if text.strip() else ""
    cut = word.removesuffix("+")
    return next((full for full in (*ENDED, *NOT_ENDED) if word != cut and full.startswith(cut)), cut)


def moment(text: str) -> float:
    """Return a time, read as UTC, in seconds since 1970, or nan; the start of 1970 in any time zone means unknown."""
    if is_unknown(text):
        return math.nan
    if text.isascii() and text.isdigit():  # SLURM_TIME_FORMAT=%s
        seconds = float(text)
    elif MOMENT.fullmatch(text):
        seconds = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    else:
        raise ValueError(text)
    return seconds if seconds > DAY_S else math.nan


def count(text: str) -> float:
    """Return a whole number, or nan."""
    if is_unknown(text):
        return math.nan
    if not (text.isascii() and text.isdigit()) or float(text) > MOST:
        raise ValueError(text)
    return float(text)


def span(text: str) -> float:
    """Return seconds of [hours:]minutes:seconds or days-hours[:minutes[:seconds]], or nan."""
    if is_unknown(text):
        return math.nan
    found = SPAN.fullmatch(text)
    if not found or not (found[1] or ":" in text):
        raise ValueError(text)
    parts = [int(part) for part in found[2].split(":")]
    parts = [*parts, 0, 0][:3] if found[1] else [0, *parts][-3:]
    return float(((int(found[1] or 0) * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2])


def limit(text: str) -> float:
    """Return the seconds of a time limit in minutes, or as a span; unlimited: inf, unknown: nan."""
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    return 60 * count(text) if text.isdigit() or is_unknown(text) else span(text)


def memory(text: str) -> tuple[float, float, float]:
    """Return GiB per job, per CPU (4000Mc) and per node (16Gn); two of them are 0."""
    if is_unknown(text) or text.endswith("?"):
        return math.nan, 0.0, 0.0
    if not (found := AMOUNT.fullmatch(text)):
        raise ValueError(text)
    mib, of = Fraction(found[1]) * MIB[found[2]], found[3]
    if flag := next((flag for flag in PER_CPU if mib >= flag), 0):
        mib, of = mib - flag, "c"
    gib = float(mib / 1024)
    return gib * (not of), gib * (of == "c"), gib * (of == "n")


def tres(text: str) -> tuple[float, float, float, float]:
    """Return CPUs, GiB, GPUs and nodes of a list of trackable resources; missing GPUs are 0, other missing ones nan."""
    if is_unknown(text):
        return math.nan, math.nan, math.nan, math.nan
    parts = re.sub(r"\(.*?\)", "", text).split(",")
    given = dict(part.split("=") for part in parts if not GPU.fullmatch(part))
    if any(name.split(":")[0] == "gres/gpu" for name in given):
        raise ValueError(text)
    cpus, nodes = count(given.get("cpu", "")), count(given.get("node", ""))
    whole, of_cpu, of_node = memory(given.get("mem", ""))
    gib = whole + (of_cpu and of_cpu * cpus) + (of_node and of_node * nodes)
    return cpus, gib, gres(text), nodes


def gres(text: str) -> float:
    """Return the GPUs of a list; typed ones count if there is no total.

    >>> gres("gpu:tesla:2(IDX:0-1)"), gres("gres/gpu:a100=3,gres/gpu:v100=1,gres/gpu=4"), gres("gres:gpu:2,mic:1")
    (2.0, 4.0, 2.0)
    """
    if is_unknown(text):
        return math.nan
    found = [match for part in re.sub(r"\(.*?\)", "", text).split(",") if (match := GPU.fullmatch(part))]
    typed = sum(float(match[3] or 1) for match in found if match[2])
    whole = [float(match[1] or 1) for match in found if not match[2]]
    return sum(whole) if whole else typed


READERS = {
    "moment": (moment, "a time as 2026-01-31T08:00:00 (unset SLURM_TIME_FORMAT)"),
    "count": (count, "a whole number (sacct --noconvert)"),
    "span": (span, "a time as 1-02:30:00"),
    "limit": (limit, "minutes, a time as 1-02:30:00 or UNLIMITED"),
    "memory": (memory, "an amount as 4000M, 4000Mc or 16Gn"),
    "gres": (gres, "resources as gpu:a100:2"),
    "tres": (tres, "resources as cpu=4,mem=16000M,node=1,gres/gpu=2"),
}
