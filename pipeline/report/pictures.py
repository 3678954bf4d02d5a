"""Pictures inside the page: as data, each with its numbers in words for readers who cannot see it."""

import base64
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import NamedTuple

import pandas as pd


class Picture(NamedTuple):
    """A picture and its words."""

    title: str
    alt: str
    source: str  # data: URI


class Shown(NamedTuple):
    """A figure of the papers with its claims: paper, claim, and rows of parts with verdicts."""

    title: str
    picture: Picture | None
    claims: list[tuple[str, str, list[dict[Hashable, str]]]]


def data_uri(png: bytes) -> str:
    """Return a PNG as a URI that needs no file.

    >>> data_uri(b"abc")
    'data:image/png;base64,YWJj'
    """
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def figures(
    drawn: Mapping[str, bytes], summary: pd.DataFrame, curves: Mapping[str, pd.DataFrame], bounded: Collection[str] = ()
) -> Iterator[Picture]:
    """Return the figures of `compare`, those by load first.

    `drawn` are PNGs by file name, without suffix; `curves` are the tables CURVE of each agent's finetuning.
    """
    first = [f"slowdown_{scenario}" for scenario in summary["scenario"].unique()]
    order = [name for name in first if name in drawn]
    for name in [*order, *sorted(set(drawn) - set(order))]:
        kind, _, subject = name.partition("_")
        title = name.replace("_", " ")
        alt = f"Figure {title}"
        if kind == "slowdown" and (summary["scenario"] == subject).any():
            what = "Mean bounded slowdown" if subject in bounded else "Mean slowdown"
            title = f"{what}, scenario {subject}"
            alt = f"{what} by load in scenario {subject}, lowest first: {_by_load(summary, subject)}."
        elif kind == "learning" and subject in curves:
            title, alt = f"{subject} while learning", _learning(curves[subject], subject)
        elif kind == "backlog":
            title = f"Jobs waiting, scenario {subject}"
            alt = f"{title}, over its steps; the table of streams has their growth"
        yield Picture(title, alt, data_uri(drawn[name]))


def _by_load(summary: pd.DataFrame, scenario: str) -> str:
    rows = summary[summary["scenario"] == scenario].sort_values("load")
    order = rows.groupby("policy")["slowdown"].mean().sort_values(kind="stable").index
    lines = []
    for policy in order:
        mine = rows[rows["policy"] == policy].drop_duplicates("load")
        ends = mine.iloc[[0, -1]].drop_duplicates("load")
        lines.append(f"{policy} {', '.join(f'{r.slowdown:.2f} at load {r.load}' for r in ends.itertuples())}")
    return "; ".join(lines)


def _learning(curve: pd.DataFrame, agent: str) -> str:
    points = curve[curve["metric"].str.startswith("validation")].sort_values("update")
    if points.empty:
        return f"Learning curve of {agent}"
    best = points.sort_values("value", kind="stable").iloc[0]
    first, last = points.iloc[0], points.iloc[-1]
    return (
        f"Learning curve of {agent} on validation jobsets: {first['value']:.4g} at update {first['update']}, lowest "
        f"{best['value']:.4g} at update {best['update']}, {last['value']:.4g} at the last update, {last['update']}."
    )


def papers(table: pd.DataFrame, drawn: Mapping[str, bytes]) -> Iterator[Shown]:
    """Return the papers' figures with their claims.

    `table` has a row for each part of a claim (PAPERS), `drawn` the PNG by file name without its suffix, if drawn.
    """
    rows = table.fillna("").astype(str)
    for (name, title), group in rows.groupby(["figure", "title"], sort=False):
        listed = [
            (str(paper), str(claim), parts.to_dict("records"))
            for (paper, claim), parts in group.groupby(["paper", "claim"], sort=False)
        ]
        png = drawn.get(str(name).removesuffix(".png"))
        alt = f"{title}. {' '.join(f'Found: {found}.' for found in group['found'])}"
        yield Shown(str(title), None if png is None else Picture(str(title), alt, data_uri(png)), listed)
