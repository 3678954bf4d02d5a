"""Write and print how a policy's decisions differ from a rule's, or what a policy with look-ahead tried."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.plots import png
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.schemas.columns import integers, numbers, table
from pipeline.interactive.scheduling.schedule import must_apply
from pipeline.progress import ProgressCallback, progress, remark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAVES = 24  # of a tree, by default


class ExplainRequest(NamedTuple):
    """The policy to explain, its scenario, and the amount of data."""

    agent: str  # or a plan, or any other policy by name
    jobsets: int  # maximum for each load and split
    leaves: int = LEAVES  # maximum number, of the tree
    scenario: str | None = None  # None: the agent's own

    @property
    def title(self) -> str:
        """Return the policy's name in files and text."""
        return Path(self.agent).name


class Explained(NamedTuple):
    """Files to write and lines to print for a policy."""

    tables: Mapping[str, tuple[pd.DataFrame, pa.DataFrameSchema]]
    figures: "Mapping[str, Figure]"
    lines: Sequence[str]
    files: Mapping[str, str] = {}  # other text files, by name


class Explaining(NamedTuple):
    """How a problem explains policies."""

    # (params, scenario, request) -> a function of a callback for progress in percent, which it takes to 100
    ready: Callable[[Params, str, ExplainRequest], Callable[[ProgressCallback], Explained]]
    refused: Mapping[str, str] = {}  # options that do not apply, with reasons


def explain(how: Explaining, params: Params, request: ExplainRequest) -> None:
    """Write reports/explain/<policy>, and print a summary."""
    scenario = request.scenario or {**params.agents, **params.plans}[request.agent].scenario
    must_apply(request._replace(scenario=scenario), how.refused)
    folder, title = storage.REPORTS / "explain" / request.title, f"explain {request.title}, percent"
    run = how.ready(params, scenario, request)
    with progress(title, 100) as advance:
        found = run(advance)
    pictures = {name: png(figure) for name, figure in found.figures.items()}
    storage.discard(folder)
    for name, (rows, schema) in found.tables.items():
        storage.write_table(folder / f"{name}.csv", rows, schema)
    for name, picture in pictures.items():
        storage.write(folder / f"{name}.png", picture)
    for name, text in found.files.items():
        storage.write(folder / name, text.encode())
    for line in found.lines:
        remark(line)
    remark(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


# Rank 0 is the base's own action. A duration of 0 means no job: time passes. The demand is the largest share of all
# machines that the job holds; `machine` is the number of the machine it would start on. The gain is the slowdown that
# the action saves, summed over waiting and future jobs; gain and error are those of the mean over futures. If all jobs
# are known and a network continues in several ways, the gain compares the best of these and has no error.
CANDIDATES = table(
    "Candidates",
    {name: integers(0) for name in ("load", "jobset", "decision")}
    | {"now": numbers(0.0), "rank": integers(0), "duration": numbers(0.0), "demand": numbers(0.0)}
    | {"machine": integers(0), "gain": pa.Column("float64")}
    | {"error": numbers(0.0, nullable=True), "futures": integers(1), "taken": pa.Column("bool")},
    ["load", "jobset", "decision", "rank"],
)


def candidates_in_words(plan: str, base: str, frame: pd.DataFrame) -> list[str]:
    """Summarize the candidates of a policy that improves another one."""
    key = ["load", "jobset", "decision"]
    first, taken = frame[frame["rank"] == 0], frame[frame["taken"]]
    decisions, other = len(first), taken[taken["rank"] > 0]
    lines = [
        f"{plan}: tried {len(frame)} candidates in {decisions} decisions; took another action than {base} in "
        f"{len(other)} ({100 * len(other) / max(decisions, 1):.1f} %)"
    ]
    before = first.set_index(key)["duration"].reindex(pd.MultiIndex.from_frame(other[key])).to_numpy()
    for text, which in (
        ("let time pass instead of starting a job", other["duration"] == 0),
        ("started a job instead of letting time pass", before == 0),
        ("started another job", (other["duration"] > 0) & (before > 0)),
    ):
        some = other[np.asarray(which)]
        if len(some):
            lines.append(f"{text}: {len(some)} times, expected to save {some['gain'].mean():.3f} slowdowns each")
    return lines
