"""The page as one self-contained HTML text: values are escaped, pictures and style are inside, no file is loaded.

Pictures are inside as data, each with its numbers in words for readers who cannot see it.
"""

import base64
import json
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.words import OF_STREAMS, closing, listed
from pipeline.core.schemas import HINDSIGHT_SUMMARY, STREAM_SUMMARY, empty
from pipeline.core.storage.evidence import Lock
from pipeline.report import template
from pipeline.report.answers import COMMAND, Answer, Evidence, advised, answers
from pipeline.report.changes import MOST_SHOWN, NONE, Changes, flat
from pipeline.report.tables import SPOKEN, references, scenarios, streams, unfinished, verdicts

WORDS = ("digest", "sha", "md5")  # that name a digest on a card


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


class Origin(NamedTuple):
    """Origin of the page's code and data."""

    commit: str  # "" without git
    subject: str
    dirty: Sequence[str]  # files that differ from the commit
    packages: Mapping[str, str]  # versions
    remote: bool  # whether DVC can pull the data from a remote


class Digest(NamedTuple):
    """An output in dvc.lock, or a digest on a model's card."""

    path: str
    md5: str
    size: str


class Content(NamedTuple):
    """Content of the page."""

    comparison: pd.DataFrame
    delay: pd.DataFrame  # the same by waiting time, for scenarios with user groups
    summary: pd.DataFrame
    objectives: pd.DataFrame  # only agents, each by its objective
    agents: Mapping[str, str]  # each with its objective
    confidence: float
    resamples: int
    seed: int
    figures: Sequence[Picture]
    papers: Sequence[Shown]
    schedule: Picture | None
    notes: Sequence[str]  # what is missing or out of date
    changes: Changes
    parameters: str  # text of params.yaml
    digests: Sequence[Digest]
    cards: Sequence[Digest]
    origin: Origin
    streams: pd.DataFrame = empty(STREAM_SUMMARY)  # metrics that only streams have
    bounded: Collection[str] = ()  # scenarios whose slowdown is bounded
    foreseen: pd.DataFrame = empty(HINDSIGHT_SUMMARY)  # fraction of the gap to hindsight that policies close
    words: Mapping[str, str] = MappingProxyType({})  # external agents with their names for --policy
    sites: Mapping[str, tuple[str, str]] = MappingProxyType({})  # order to use and reason, by the advice


def html(content: Content) -> str:
    """Return the page."""
    evidence = Evidence(content.comparison, content.delay, content.objectives, content.words)
    found = answers(evidence, content.agents, content.bounded, set(content.streams["scenario"]))
    return template("page.html").render(
        it=content,
        answers=[
            *(advised(one, content.sites) for one in found),
            *overloads(content.streams, content.agents, content.words),
        ],
        most_shown=MOST_SHOWN,
        closing=closing(content.foreseen, content.agents, content.confidence),
        verdicts=verdicts(content.objectives, content.agents),
        references=[SPOKEN[name] for name in references(content.objectives)],
        scenarios=[*scenarios(content.comparison, content.bounded), *scenarios(content.delay, (), "mean waiting time")],
        streams=streams(content.streams),
        of_streams=OF_STREAMS,
        unfinished=unfinished(content.summary),
        jobs=f"{int(content.summary['jobs'].sum()):,}".replace(",", " "),
        percent=f"{100 * content.confidence:g} %",
    )


def overloads(streams: pd.DataFrame, agents: Collection[str], words: Mapping[str, str]) -> Iterator[Answer]:
    """Yield the answer for every overload in `streams`, by growth of the backlog and finished jobs.

    `words` are the --policy names of policies that are not models.
    """
    for scenario, rows in streams[streams["overload"]].groupby("scenario", sort=False):
        order = rows.groupby("policy")["growth"].mean().sort_values(kind="stable")
        use, *others = map(str, order.index)
        mine = rows[rows["policy"] == use].set_index("load")
        apart = rows["growth_low"] > rows["load"].map(mine["growth_high"])
        open_ = [name for name in others if not apart[rows["policy"] == name].any()]
        each = [
            f"at {load} % {row['growth']:+.2f} ({row['growth_low']:+.2f} to {row['growth_high']:+.2f}) and "
            f"{row['finished']:.2f} ({row['finished_low']:.2f} to {row['finished_high']:.2f})"
            for load, row in mine.iterrows()
        ]
        why = f"least growth of the backlog. In 100 steps it grows, and jobs finish, by: {'; '.join(each)}."
        command = COMMAND.format(scenario=scenario, policy=words.get(use, f"models/{use}" if use in agents else use))
        near = f"growth not clearly apart from that of {use} at any load: {listed(open_)}." if open_ else ""
        n = int(mine["n"].iloc[0])
        yield Answer(str(scenario), "growth", False, use, why, command, [], [], 0.0, n, [], near, [])


def digests(lock: Lock) -> list[Digest]:
    """Return every output of a dvc.lock."""
    return [Digest(out.path, out.md5 or NONE, f"{out.size:,}".replace(",", " ")) for out in lock.outs]


def cards(written: Mapping[str, bytes]) -> list[Digest]:
    """Return the digests that the cards of models name, by the folder of the model."""
    found = []
    for folder, card in written.items():
        with suppress(ValueError, RecursionError):
            leaves = flat(json.loads(card)).items()
            named = [(place, value) for place, value in leaves if any(word in place.lower() for word in WORDS)]
            found += [Digest(f"{folder}: {place}", value, "") for place, value in named]
    return found
