"""The page as one self-contained HTML text: values are escaped, pictures and style are inside, no file is loaded."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.words import OF_STREAMS, closing, listed
from pipeline.core.schemas import HINDSIGHT_SUMMARY, STREAM_SUMMARY, empty
from pipeline.core.storage.evidence import Lock
from pipeline.report.answers import COMMAND, Answer, Evidence, advised, answers
from pipeline.report.changes import MOST_SHOWN, NONE, Changes, flat
from pipeline.report.pictures import Picture, Shown
from pipeline.report.tables import SPOKEN, references, scenarios, streams, unfinished, verdicts
from pipeline.report.templating import template

WORDS = ("digest", "sha", "md5")  # that name a digest on a card


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
