"""Put the page together: content in, one self-contained HTML text out.

The template escapes every value; pictures are data, the style is in the page, and nothing is loaded from elsewhere.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from pipeline.comparing.words import OF_STREAMS, closing, listed
from pipeline.report.answers import COMMAND, Answer, Evidence, answers
from pipeline.report.changes import NONE, Changes, flat
from pipeline.report.headline import SPOKEN, references, verdicts
from pipeline.report.pictures import Picture, Shown
from pipeline.report.tables import scenarios, streams, unfinished
from pipeline.report.templating import template
from pipeline.schemas import HINDSIGHT_SUMMARY, STREAM_SUMMARY, empty
from pipeline.storage.evidence import Lock

WORDS = ("digest", "sha", "md5")  # that name a digest on a card


class Origin(NamedTuple):
    """Where the code and the data of the page come from."""

    commit: str  # nothing without git
    subject: str
    dirty: Sequence[str]  # files that differ from the commit
    packages: Mapping[str, str]  # versions
    remote: bool  # does DVC have a place to pull data from?


class Digest(NamedTuple):
    """An output as dvc.lock has it, or what a model's card says."""

    path: str
    md5: str
    size: str


class Content(NamedTuple):
    """All that the page shows."""

    comparison: pd.DataFrame
    delay: pd.DataFrame  # the same by waiting time, of scenarios of user groups
    summary: pd.DataFrame
    objectives: pd.DataFrame  # agents alone, each by what it was trained for
    agents: Mapping[str, str]  # each with its objective
    confidence: float
    resamples: int
    seed: int
    figures: Sequence[Picture]
    papers: Sequence[Shown]
    schedule: Picture | None
    notes: Sequence[str]  # what is missing or out of date
    changes: Changes
    parameters: str  # params.yaml as it is written
    digests: Sequence[Digest]
    cards: Sequence[Digest]
    origin: Origin
    streams: pd.DataFrame = empty(STREAM_SUMMARY)  # metrics that only streams have
    bounded: Collection[str] = ()  # scenarios whose slowdown is bounded
    foreseen: pd.DataFrame = empty(HINDSIGHT_SUMMARY)  # how much of the distance to hindsight policies close
    words: Mapping[str, str] = MappingProxyType({})  # of agents that were made elsewhere: what --policy calls them


def html(content: Content) -> str:
    """Return the page."""
    return template("page.html").render(
        it=content,
        answers=[
            *answers(
                Evidence(content.comparison, content.delay, content.objectives, content.words),
                content.agents,
                content.bounded,
                set(content.streams["scenario"]),
            ),
            *overloads(content.streams, content.agents, content.words),
        ],
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
    """Return the answer of every overload of STREAM_SUMMARY, judged by growth of the backlog and by what is finished.

    `words`: what --policy calls a policy that is no model.
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
    return [digest for folder, card in written.items() for digest in _named(folder, card)]


def _named(folder: str, card: bytes) -> Iterator[Digest]:
    try:
        leaves = flat(json.loads(card))
    except (ValueError, RecursionError):
        return
    for place, value in leaves.items():
        if any(word in place.lower() for word in WORDS):
            yield Digest(f"{folder}: {place}", value, "")
