"""Layout shared by all results pages: numbers, differences, tables and their markers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

UNDECIDED = {r"^cannot be .*": "undecided"}  # the word of earlier versions
BEGIN, END = "<!-- table: {} -->", "<!-- end of table -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a Markdown table; the first `words` columns are text, the others numbers."""
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(mean: float) -> str:
    """Return a number with about three digits.

    >>> [number(value) for value in (1.234, 12.34, 123.4, 12340.0)]
    ['1.23', '12.3', '123', '12,340']
    """
    return f"{mean:.2f}" if mean < 10 else f"{mean:.1f}" if mean < 100 else f"{mean:,.0f}"


FROM_END = "†"  # marks a lower slowdown with a clearly longer makespan


def change(own: float, other: float) -> str:
    """Return a relative difference in percent.

    >>> change(1.5, 1.0)
    '+50.0 %'
    """
    return f"{100 * (own / other - 1):+.1f} %"


def difference(row: pd.Series, digits: int = 1) -> str:
    """Return a relative difference with its 95 % interval, both in percent."""
    mean, low, high = (100 * row[name] for name in ("difference", "difference_low", "difference_high"))
    return f"{mean:+.{digits}f} % ({low:+.{digits}f} to {high:+.{digits}f})"


def paired_by_seed(rows: pd.DataFrame, mine: Sequence[str], its: Sequence[str], other: str) -> pd.DataFrame:
    """Return rows in which each run differs from `other` by its difference from the run with the same seed.

    `other` is the mean of these reference runs. Two continuations of the same start, or two uses of the same
    weights, share a seed, so a bootstrap over seeds must draw their difference.
    """
    wide = rows.pivot(index=["load", "jobset"], columns="policy", values="mean_slowdown")
    mean = wide[list(its)].mean(axis=1)
    parts = {own: mean + wide[own] - wide[one] for own, one in zip(mine, its, strict=True)} | {other: mean}
    frame = pd.DataFrame(parts).melt(ignore_index=False, var_name="policy", value_name="mean_slowdown").reset_index()
    units = [rows[["load", "jobset", "unit"]].drop_duplicates()] if "unit" in rows else []
    for one in units:  # sampling units, where loads share windows
        frame = frame.merge(one, on=["load", "jobset"])
    return frame.assign(unfinished=0)


def claims(path: Path) -> pd.DataFrame:
    """Return the papers' claims, one row a part; older tables have one verdict for all parts of a claim."""
    found = pd.read_csv(path)
    if "agrees" in found:
        found = found.rename(columns={"agrees": "verdict"}).assign(part="together, by the rules of then")
    return found


def placed(text: str, title: str, written: str) -> str:
    """Return a document with a table between its markers.

    Raises:
        ValueError: The markers do not occur exactly once.
    """
    begin = BEGIN.format(title)
    found, count = re.subn(
        re.escape(begin) + r".*?" + re.escape(END), lambda _: f"{begin}\n\n{written}\n\n{END}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"expected markers of table '{title}' once, found them {count} times")
    return found


def filled(text: str, tables: Mapping[str, str]) -> str:
    """Return a document with all its tables.

    Raises:
        ValueError: The document has markers of an unknown table.
    """
    for title, written in tables.items():
        text = placed(text, title, written)
    if extra := set(re.findall(BEGIN.format("(.*?)"), text)) - set(tables):
        raise ValueError(f"nothing writes the tables {', '.join(sorted(extra))}")
    return text


def by_hand(text: str) -> list[str]:
    """Return the separator lines of all tables outside markers."""
    outside = re.sub(BEGIN.format(".*?") + r".*?" + re.escape(END), "", text, flags=re.DOTALL)
    return re.findall(r"^\|[ :|-]*---[ :|-]*\|$", outside, flags=re.MULTILINE)
