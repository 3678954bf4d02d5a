"""Write what a policy does differently, or what one that looks ahead tried, and say it; for every problem."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.config import Params
from pipeline.core import IntArray
from pipeline.progress import ProgressCallback, ShareCallback, progress, say
from pipeline.scheduling.schedule import must_apply
from pipeline.schemas.columns import integers, numbers, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIGITS = 6  # of what was tried
LEAVES = 24  # of a tree, unless a user asks for others


class ExplainRequest(NamedTuple):
    """Which policy to explain, where, and how much of it."""

    agent: str  # or a plan, or any other policy by name
    jobsets: int  # of each load and split, at most
    leaves: int = LEAVES  # of the tree, at most
    scenario: str | None = None  # None: the agent's own

    @property
    def title(self) -> str:
        """Return the policy's name in files and words."""
        return Path(self.agent).name


class Explained(NamedTuple):
    """What there is to write and to say of a policy."""

    tables: Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema]]
    figures: "Mapping[str, Figure]"
    lines: Sequence[str]
    files: Mapping[str, str] = {}  # more, by name


class Tried(NamedTuple):
    """What a policy that looks ahead tried in some episodes."""

    base: str  # the name of what it improves
    frame: pd.DataFrame  # candidates, each with its episode
    load: IntArray  # [B]
    number: IntArray  # [B]  of the jobset


class Explaining(NamedTuple):
    """How a problem explains policies."""

    ready: Callable[[Params, str, ExplainRequest], Callable[[ProgressCallback], Explained]]  # (params, scenario, ...)
    tried: Callable[[Params, ExplainRequest, ShareCallback], Tried] | None = None  # None: it has no rows of `plans`
    refused: Mapping[str, str] = {}  # options that mean nothing here, and why


def explain(how: Explaining, params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<policy>, and say what is in it.

    Raises:
        UserError: an option or the policy is not there, or there is nothing to explain.
    """
    scenario = asked.scenario or {**params.agents, **params.plans}[asked.agent].scenario
    must_apply(asked._replace(scenario=scenario), how.refused)
    folder = storage.REPORTS / "explain" / asked.title
    if how.tried is not None and asked.agent in params.plans:
        with progress(f"explain {asked.title}, percent", 100) as advance:
            tried = how.tried(params, asked, lambda share: advance(100 * share))
        lines: Sequence[str] = tried_in_words(asked.agent, tried.base, write_tried(folder, tried))
    else:
        run = how.ready(params, scenario, asked)
        with progress(f"explain {asked.title}, percent", 100) as advance:
            found = run(advance)
            advance(100)
        _write(folder, found)
        lines = found.lines
    for line in lines:
        say(line)
    say(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def _write(folder: Path, found: Explained) -> None:
    pictures = {name: png(figure) for name, figure in found.figures.items()}
    storage.discard(folder)
    for name, (frame, schema) in found.tables.items():
        storage.write_table(folder / f"{name}.csv", frame, schema)
    for name, picture in pictures.items():
        storage.write(folder / f"{name}.png", picture)
    for name, text in found.files.items():
        storage.write(folder / name, text.encode())


# Rank 0 is the base's own action; a job of duration 0 is none: time passes. The demand is the largest share of all
# machines that the job holds; `machine` is the one that it would start on, by number. The gain is what the action
# saves, in slowdown summed over the jobs that wait and those that may come, mean over futures; its error is over
# futures, too. Where all jobs are known and a network plays on in several ways, it is between the best of these,
# without an error.
CANDIDATES = table(
    "Candidates",
    {name: integers(0) for name in ("load", "jobset", "decision")}
    | {"now": numbers(0.0), "rank": integers(0), "duration": numbers(0.0), "demand": numbers(0.0)}
    | {"machine": integers(0), "gain": pa.Column("float64")}
    | {"error": numbers(0.0, nullable=True), "futures": integers(1), "taken": pa.Column("bool")},
    ["load", "jobset", "decision", "rank"],
)


def write_tried(place: Path, tried: Tried) -> pd.DataFrame:
    """Write candidates.csv in place of what is in a folder, and return it."""
    episode = tried.frame["episode"].to_numpy()
    written = tried.frame.assign(load=tried.load[episode], jobset=tried.number[episode])[list(CANDIDATES.columns)]
    written = written.sort_values(["load", "jobset", "decision", "rank"], ignore_index=True)
    storage.discard(place)
    storage.write_table(place / "candidates.csv", written, CANDIDATES, DIGITS)
    return written


def tried_in_words(plan: str, base: str, frame: pd.DataFrame) -> list[str]:
    """Return what the candidates come to, in a few lines.

    Args:
        plan: the policy's name.
        base: the name of what it improves.
        frame: its candidates.
    """
    decisions = int((frame["rank"] == 0).sum())
    taken = frame[frame["taken"]]
    other = taken[taken["rank"] > 0]
    lines = [
        f"{plan}: tried {len(frame)} candidates in {decisions} decisions; took another action than {base} in "
        f"{len(other)} ({100 * len(other) / max(decisions, 1):.1f} %)"
    ]
    own = frame[frame["rank"] == 0].set_index(["load", "jobset", "decision"])["duration"]
    before = own.reindex(pd.MultiIndex.from_frame(other[["load", "jobset", "decision"]])).to_numpy()
    for words, which in (
        ("let time pass instead of starting a job", other["duration"] == 0),
        ("started a job instead of letting time pass", before == 0),
        ("started another job", (other["duration"] > 0) & (before > 0)),
    ):
        some = other[np.asarray(which)]
        if len(some):
            lines.append(f"{words}: {len(some)} times, expected to save {some['gain'].mean():.3f} slowdowns each")
    return lines
