"""Loads of test jobsets: the load of each resource, and the number of jobsets compared with the requested one.

A load in params.yaml is a mean over resources and, for a log, that of its training period. The actual load of a
resource in test jobsets may differ widely.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.core.schemas.tables import LOADS


def loads_of(
    scenario: str, jobs: pd.DataFrame, capacity: Mapping[str, float], span: float | None, wanted: int
) -> pd.DataFrame:
    """Return LOADS of a scenario: units of jobs times run times, divided by all units times the time of arrivals.

    `jobs` is the stored table, `capacity` is in the units of its demands. The jobs of a jobset arrive within the time
    `span`; None: from the first to the last, plus a mean gap. `wanted` jobsets of each load were requested.
    """
    ends = jobs.groupby(["load", "jobset"])["arrival"].agg(["min", "max", "size"])
    gaps = (ends["size"] - 1).clip(lower=1)
    time_of = (ends["max"] - ends["min"]) * ends["size"] / gaps if span is None else ends["size"] * 0.0 + span
    time, count = time_of.groupby("load").sum(), time_of.groupby("load").size()
    nodes = jobs.get("nodes", 1)
    parts = []
    for name, units in capacity.items():
        held = (jobs["duration"] * nodes * jobs[name]).groupby(jobs["load"]).sum()
        offered = (units * time).where(units * time > 0)
        columns = {"scenario": scenario, "load": count.index, "jobsets": count, "wanted": wanted, "resource": name}
        parts.append(pd.DataFrame({**columns, "percent": 100.0 * held / offered}).reset_index(drop=True))
    return pd.concat(parts, ignore_index=True).sort_values("load", kind="stable")[list(LOADS.columns)]


def loads_markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table of the loads of test jobsets, one row per scenario and load."""
    lines = [
        "**Test jobsets**: how many, and what they ask of each resource. A load by its name is a mean over resources.",
        "",
        "| scenario | load | jobsets | of each resource |",
        "| --- | ---: | ---: | --- |",
    ]
    for (scenario, load), rows in table.groupby(["scenario", "load"], sort=False):
        jobsets, wanted = rows.iloc[0][["jobsets", "wanted"]]
        count = f"{jobsets}" + ("" if jobsets >= wanted else f" of {wanted}")
        asked = (
            f"{name} all at once" if np.isnan(percent) else f"{name} {percent:.0f} %"
            for name, percent in zip(rows["resource"], rows["percent"], strict=True)
        )
        lines.append(f"| {scenario} | {load} | {count} | {', '.join(asked)} |")
    return "\n".join(lines)


def short(table: pd.DataFrame) -> list[str]:
    """Return a line for each scenario and load with fewer test jobsets than requested."""
    few = table[table["jobsets"] < table["wanted"]].drop_duplicates(["scenario", "load"])
    return [
        f"{row.scenario}, load {row.load}: {row.jobsets} test jobsets; {row.wanted} were asked for"
        for row in few.itertuples()
    ]
