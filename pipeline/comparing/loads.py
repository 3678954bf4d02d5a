"""What test jobsets ask of a cluster: the load of each resource, and whether there are as many jobsets as were wanted.

A load in params.yaml is a mean over resources, and of a log that of its training period; what test jobsets really ask
of a resource may be far from it.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from pipeline.schemas import LOADS


def loads_of(
    scenario: str, jobs: pd.DataFrame, capacity: Mapping[str, float], span: float | None, wanted: int
) -> pd.DataFrame:
    """Return LOADS of a scenario: what jobs hold times how long, over what there is while they arrive.

    Args:
        scenario: its name.
        jobs: as they are stored, one row a job.
        capacity: of each resource, in the units of the jobs' demands.
        span: time in which the jobs of a jobset arrive; None: from the first to the last, and a mean gap more.
        wanted: jobsets of each load.
    """
    ends = jobs.groupby(["load", "jobset"])["arrival"].agg(["min", "max", "size"])
    gaps = (ends["size"] - 1).clip(lower=1)
    took = (ends["max"] - ends["min"]) * ends["size"] / gaps if span is None else ends["size"] * 0.0 + span
    time, count = took.groupby("load").sum(), took.groupby("load").size()
    nodes = jobs.get("nodes", 1)
    parts = []
    for name, units in capacity.items():
        held = (jobs["duration"] * nodes * jobs[name]).groupby(jobs["load"]).sum()
        offered = (units * time).where(units * time > 0)
        columns = {"scenario": scenario, "load": count.index, "jobsets": count, "wanted": wanted, "resource": name}
        parts.append(pd.DataFrame({**columns, "percent": 100.0 * held / offered}).reset_index(drop=True))
    return pd.concat(parts, ignore_index=True).sort_values("load", kind="stable")[list(LOADS.columns)]


def loads_markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table of what all test jobsets ask, one row a scenario and load."""
    lines = [
        "**Test jobsets**: how many, and what they ask of each resource. A load by its name is a mean over resources.",
        "",
        "| scenario | load | jobsets | of each resource |",
        "| --- | ---: | ---: | --- |",
    ]
    for (scenario, load), rows in table.groupby(["scenario", "load"], sort=False):
        first = rows.iloc[0]
        count = f"{first['jobsets']}" + ("" if _whole(first) else f" of {first['wanted']}")
        lines.append(f"| {scenario} | {load} | {count} | {', '.join(_asked(rows))} |")
    return "\n".join(lines)


def short(table: pd.DataFrame) -> list[str]:
    """Return a line for each scenario and load with fewer test jobsets than were wanted."""
    once = table.drop_duplicates(["scenario", "load"])
    return [
        f"{row['scenario']}, load {row['load']}: {row['jobsets']} test jobsets; {row['wanted']} were asked for"
        for _, row in once.iterrows()
        if not _whole(row)
    ]


def _whole(row: pd.Series) -> bool:
    return bool(row["jobsets"] >= row["wanted"])


def _asked(rows: pd.DataFrame) -> Iterator[str]:
    for name, percent in zip(rows["resource"], rows["percent"], strict=True):
        yield f"{name} all at once" if np.isnan(percent) else f"{name} {percent:.0f} %"
