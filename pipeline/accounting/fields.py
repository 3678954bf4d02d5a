"""What stands in fields that Slurm writes: moments, spans, limits, amounts; each reads a text or raises ValueError.

Sources: the manual pages sacct(1) and slurm.conf(5) of Slurm 22.05, and what that version wrote on a real cluster.
"""

import math
import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from pipeline.core import FloatArray
from pipeline.errors import UserError

UNKNOWN = frozenset({"", "unknown", "none", "n/a", "(null)", "none assigned", "partition_limit", "invalid"})
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
SPAN = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([cn]?)")
GIB = {"K": 2.0**-20, "M": 2.0**-10, "": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}  # without a letter: MiB
MOST = 1e12  # of a number


def read_each(texts: pd.Series, read: str, path: object) -> FloatArray:
    """Return the numbers of a column of texts, [R] or [R, K]; each distinct text is read once.

    Args:
        texts: [R]; indexed by line, named as the column.
        read: what they are; a key of EXPECTED.
        path: of the dump.

    Raises:
        UserError: one is none; the first is named with its line.
    """
    reader, expected = READERS[read]
    codes, words = pd.factorize(texts)
    values = []
    for code, word in enumerate(words):
        try:
            values.append(reader(word))
        except ValueError:
            line = texts.index[int(np.argmax(codes == code))]
            raise UserError(f"{path}:{line}: expected {expected} as {texts.name}, found '{word[:40]}'") from None
    return np.asarray(values, dtype=np.float64)[codes]


def is_unknown(text: str) -> bool:
    """Tell whether Slurm says by this text that there is nothing to say."""
    return text.lower() in UNKNOWN


def moment(text: str) -> float:
    """Return the seconds since 1970 of a time, taken as UTC, or nan."""
    if is_unknown(text):
        return math.nan
    if text.isascii() and text.isdigit():  # SLURM_TIME_FORMAT=%s
        return float(text) or math.nan
    if not MOMENT.fullmatch(text):
        raise ValueError(text)
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def count(text: str) -> float:
    """Return a whole number, or nan."""
    if is_unknown(text):
        return math.nan
    if not (text.isascii() and text.isdigit()) or float(text) > MOST:
        raise ValueError(text)
    return float(text)


def span(text: str) -> float:
    """Return seconds of [days-][hours:]minutes:seconds, or nan."""
    if is_unknown(text):
        return math.nan
    if not (found := SPAN.fullmatch(text)):
        raise ValueError(text)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def limit(text: str) -> float:
    """Return the seconds of a time limit in minutes, or as a span; without end inf, unknown nan."""
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    return span(text) if ":" in text else 60 * count(text)


def memory(text: str) -> tuple[float, float, float]:
    """Return GiB of a job, of each of its CPUs (as 4000Mc) and of each of its nodes (16Gn); two of them are 0."""
    if is_unknown(text):
        return math.nan, 0.0, 0.0
    if not (found := AMOUNT.fullmatch(text)):
        raise ValueError(text)
    gib = float(found[1]) * GIB[found[2]]
    return gib * (not found[3]), gib * (found[3] == "c"), gib * (found[3] == "n")


def tres(text: str) -> tuple[float, float, float, float]:
    """Return CPUs, GiB, GPUs and nodes of a list of trackable resources; what it does not name is nan, but GPUs are 0.

    GPUs of a type stand beside the sum of all; where only types stand, they are summed.
    """
    if is_unknown(text):
        return math.nan, math.nan, math.nan, math.nan
    given = dict(part.split("=") for part in text.split(","))
    gib = memory(given["mem"])[0] if "mem" in given else math.nan
    typed = [count(number) for name, number in given.items() if name.startswith("gres/gpu:")]
    gpus = count(given["gres/gpu"]) if "gres/gpu" in given else sum(typed)
    return count(given.get("cpu", "")), gib, gpus, count(given.get("node", ""))


READERS = {
    "moment": (moment, "a time as 2026-01-31T08:00:00 (unset SLURM_TIME_FORMAT)"),
    "count": (count, "a whole number (sacct --noconvert)"),
    "span": (span, "a time as 1-02:30:00"),
    "limit": (limit, "minutes, a time as 1-02:30:00 or UNLIMITED"),
    "memory": (memory, "an amount as 4000M, 4000Mc or 16Gn"),
    "tres": (tres, "resources as cpu=4,mem=16000M,node=1,gres/gpu=2"),
}
