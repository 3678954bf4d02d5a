"""What streams had under each policy, with intervals: what people read of `stream_results`."""

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import by_jobset, interval, resample
from pipeline.config import Evaluation
from pipeline.core import FloatArray, IntArray
from pipeline.schemas import KEYS, STREAM_SUMMARY, empty
from pipeline.schemas.streams import LENGTHS


def stream_summary(
    jobsets: pd.DataFrame,
    backlogs: pd.DataFrame,
    classes: pd.DataFrame,
    scenario: str,
    settings: Evaluation,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return every metric of each policy of one stream, at each load; no rows of a scenario that is none.

    Intervals are percentiles of a bootstrap over jobsets, which are independent replications.

    Args:
        jobsets: jobset results of the scenario, every policy scored on the same ones.
        backlogs: rows of STREAM_BACKLOG.
        classes: rows of STREAM_FAIRNESS.
        scenario: its name.
        settings: of the bootstrap.
        rng: from the same seed, the interval of slowdown is that of `statistics.summary`.
    """
    if backlogs.empty:
        return empty(STREAM_SUMMARY)
    policies = list(jobsets["policy"].unique())
    growth = backlogs.drop_duplicates(KEYS)
    tables = []
    for load, part in jobsets.groupby("load"):
        counts = resample(part["jobset"].nunique(), settings.resamples, rng)
        means: dict[str, FloatArray] = {}
        for name, rows, column in (
            ("slowdown", part, "mean_slowdown"),
            ("growth", growth[growth["load"] == load], "growth"),
        ):
            value = by_jobset(rows, policies, column).to_numpy()
            resampled = np.asarray(counts @ value / len(value))
            low, high = interval(resampled[1:], settings.confidence, len(value))
            means |= {name: resampled[0], f"{name}_low": low, f"{name}_high": high}
        others = _beside(part, classes[classes["load"] == load], policies)
        tables.append(pd.DataFrame({"scenario": scenario, "load": load, "policy": policies, **means, **others}))
    return pd.concat(tables, ignore_index=True)[list(STREAM_SUMMARY.columns)]


def _beside(part: pd.DataFrame, classes: pd.DataFrame, policies: list[str]) -> dict[str, FloatArray | IntArray]:
    """Return what has no interval, of each policy at one load."""
    scored = part.groupby("policy")
    averages = scored[["p99_slowdown", "worst_slowdown", "utilisation"]].mean().loc[policies]
    totals = scored[["jobs", "unfinished"]].sum().loc[policies]
    slowdown = classes.pivot(index="policy", columns="length", values="mean_slowdown")
    slowdown = slowdown.reindex(index=policies, columns=range(1, LENGTHS + 1))
    return {
        "n": scored.size().loc[policies].to_numpy(),
        "jobs": totals["jobs"].to_numpy(),
        "p99_slowdown": averages["p99_slowdown"].to_numpy(),
        "mean_worst_slowdown": averages["worst_slowdown"].to_numpy(),
        "worst_slowdown": scored["worst_slowdown"].max().loc[policies].to_numpy(),
        "longest_wait": classes.groupby("policy")["longest_wait"].max().loc[policies].to_numpy(),
        "utilisation": averages["utilisation"].to_numpy(),
        **{f"slowdown_length_{length}": slowdown[length].to_numpy() for length in slowdown.columns},
        "unfinished": totals["unfinished"].to_numpy(),
    }
