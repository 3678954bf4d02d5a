"""What a policy that looks ahead tried, and what each candidate would have gained, as a table and in words."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline.core import IntArray
from pipeline.schemas.columns import integers, numbers
from pipeline.schemas.columns import table as schema_of
from pipeline.storage import discard, write_table

DIGITS = 6  # of what is written


def candidates(when: Mapping[str, pa.Column], job: Mapping[str, pa.Column]) -> pa.DataFrameSchema:
    """Return the schema of a table of candidates.

    Rank 0 is the base's own action; a job of duration 0 is none: time passes. The gain is what the action saves, in
    slowdown summed over the jobs that wait and those that may come, mean over futures; its error is over futures, too.
    Where all jobs are known and a network plays on in several ways, it is between the best of these, without an error.

    Args:
        when: the column that tells when it was decided.
        job: columns that tell what would start.
    """
    return schema_of(
        "Candidates",
        {
            "load": integers(1),
            "jobset": integers(0),
            "decision": integers(0),
            **when,
            "rank": integers(0),
            **job,
            "gain": pa.Column("float64"),
            "error": numbers(0.0, nullable=True),  # of one future: nobody knows
            "futures": integers(1),
            "taken": pa.Column("bool"),
        },
        ["load", "jobset", "decision", "rank"],
    )


def write(
    place: Path, schema: pa.DataFrameSchema, frame: pd.DataFrame, load: IntArray, jobset: IntArray
) -> pd.DataFrame:
    """Write candidates.csv in place of what is in a folder, and return it.

    Args:
        place: the folder.
        schema: of the table.
        frame: its columns, with the episode in place of load and jobset.
        load: [B], of each episode.
        jobset: [B], its number.
    """
    episode = frame["episode"].to_numpy()
    table = frame.drop(columns="episode").assign(load=load[episode], jobset=jobset[episode])[list(schema.columns)]
    table = table.sort_values(["load", "jobset", "decision", "rank"], ignore_index=True)
    discard(place)
    write_table(place / "candidates.csv", table, schema, DIGITS)
    return table


def told(plan: str, base: str, frame: pd.DataFrame, passes: str) -> list[str]:
    """Return what the candidates come to, in a few lines.

    Args:
        plan: the policy's name.
        base: the name of what it improves.
        frame: its candidates.
        passes: what time is that is let pass, as `a step`.
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
        (f"let {passes} pass instead of starting a job", other["duration"] == 0),
        (f"started a job instead of letting {passes} pass", before == 0),
        ("started another job", (other["duration"] > 0) & (before > 0)),
    ):
        some = other[np.asarray(which)]
        if len(some):
            lines.append(f"{words}: {len(some)} times, expected to save {some['gain'].mean():.3f} slowdowns each")
    return lines
