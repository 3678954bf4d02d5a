"""Share of the distance from the best heuristic to hindsight that a policy closes.

Hindsight is the best schedule that CP-SAT found with full knowledge of the jobs. It is a reference, and a limit only
where it is proved optimal. Means and intervals are those of `statistics`: over jobsets, stratified by load, paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.comparing import BEST
from pipeline.comparing.resampling import interval
from pipeline.comparing.statistics import ALL, NOTHING, Stratum, column_of, stratified
from pipeline.comparing.words import CLOSES, shown_loads, table_head
from pipeline.core.config import Evaluation
from pipeline.core.types import FloatArray

HINDSIGHT = "hindsight"


class Means(NamedTuple):
    """Means over the jobsets of one load, in the sample (row 0) and in S resamples."""

    slowdown: FloatArray  # [P]
    reference: FloatArray  # [3]  of the best heuristic, hindsight, and its bound
    gained: FloatArray  # [1 + S, P]  the best heuristic's mean minus the policy's
    distance: FloatArray  # [1 + S]  the best heuristic's mean minus hindsight's
    optimal: float  # share of the jobsets
    n: int


def closes(gained: FloatArray, distance: FloatArray) -> FloatArray:
    """Return the share of the distance from the best heuristic to hindsight that a policy gained; nan if there is none.

    >>> closes(np.array([1.0, -0.5, 0.0]), np.array([2.0, 1.0, 0.0]))
    array([ 0.5, -0.5,  nan])
    """
    return np.divide(gained, distance, out=np.full_like(gained, np.nan), where=distance > NOTHING)


def hindsight_table(
    scenario: str,
    results: pd.DataFrame,
    hindsight: pd.DataFrame,
    best: Mapping[int, str],
    settings: Evaluation,
    seed: int,
) -> pd.DataFrame:
    """Return the share of the distance that each policy closes, at each load and over all.

    `results` may include jobsets that were not solved in hindsight. A share is given only if the whole interval of the
    distance is above 0. Raises ValueError: a policy lacks a result on a jobset, or a load has no best heuristic.
    """
    policies, rng = list(results["policy"].unique()), np.random.default_rng(seed)
    found: dict[int, Means] = {}
    for load, solved in hindsight.groupby("load"):
        part = results[(results["load"] == load) & results["jobset"].isin(solved["jobset"])]
        (stratum,) = stratified(part, policies, settings.resamples, rng)
        ideal = solved.set_index("jobset").loc[stratum.jobset]
        found[stratum.load] = _means(stratum, ideal, column_of(policies, BEST, best, stratum.load))
    tables = [_rows(f"{load:03d}", policies, [means], settings.confidence) for load, means in found.items()]
    tables.append(_rows(ALL, policies, list(found.values()), settings.confidence))
    table = pd.concat(tables, ignore_index=True)
    table.insert(0, "scenario", scenario)
    return table


def _means(stratum: Stratum, solved: pd.DataFrame, best: int) -> Means:
    slowdown, ideal = stratum.score, solved["objective"].to_numpy()
    reference = slowdown[:, best]
    return Means(
        slowdown=slowdown.mean(axis=0),
        reference=np.array([reference.mean(), ideal.mean(), solved["bound"].to_numpy().mean()]),
        # Means of differences: between equal scores they are exactly 0, however BLAS rounds.
        gained=stratum.means(reference[:, None] - slowdown),
        distance=stratum.means((reference - ideal)[:, None])[:, 0],
        optimal=float((solved["status"] == "OPTIMAL").mean()),
        n=len(solved),
    )


def _rows(load: str, policies: Sequence[str], loads: Sequence[Means], confidence: float) -> pd.DataFrame:
    gained = np.mean([means.gained for means in loads], axis=0)
    distance = np.mean([means.distance for means in loads], axis=0)
    share = closes(gained, distance[:, None])
    units = min(means.n for means in loads)
    if interval(distance[1:], confidence, units)[0] <= NOTHING:  # best heuristic and hindsight do not differ clearly
        share = np.full_like(share, np.nan)
    defined = share[1:][~np.isnan(share[1:]).any(axis=1)]  # resamples that have a distance
    low, high = interval(defined, confidence, units) if len(defined) else np.full((2, share.shape[1]), np.nan)
    best, ideal, bound = np.mean([means.reference for means in loads], axis=0)
    return pd.DataFrame(
        {
            "load": load,
            "policy": policies,
            "n": sum(means.n for means in loads),
            "slowdown": np.mean([means.slowdown for means in loads], axis=0),
            "best_heuristic": best,
            "hindsight": ideal,
            "bound": bound,
            "closes": share[0],
            "closes_low": low,
            "closes_high": high,
            "optimal": float(np.mean([means.optimal for means in loads])),
        }
    )


def hindsight_markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table for each scenario: the shares of policies by loads, with the largest first."""
    return "\n\n".join("\n".join(_lines(rows, str(name))) for name, rows in table.groupby("scenario", sort=False))


def _lines(rows: pd.DataFrame, scenario: str) -> Iterator[str]:
    shown = shown_loads(rows)
    once = rows.drop_duplicates("load").set_index("load").loc[shown]
    yield (
        f"**{scenario}**: percent of the distance from the best heuristic to hindsight that is closed (its interval), "
        f"on {rows.loc[rows['load'] == ALL, 'n'].iloc[0]} jobsets. -: the two do not differ clearly."
    )
    yield ""
    yield from table_head([load.lstrip("0") for load in shown])
    for label, column in (("best heuristic", "best_heuristic"), (HINDSIGHT, HINDSIGHT), ("bound", "bound")):
        yield f"| *{label}*: mean slowdown | " + " | ".join(f"{value:.2f}" for value in once[column]) + " |"
    yield "| *proved optimal* | " + " | ".join(f"{100 * value:.0f} %" for value in once["optimal"]) + " |"
    over = rows[rows["load"] == ALL].sort_values(["closes", "slowdown"], ascending=[False, True], kind="stable")
    cells = {}
    for _, row in rows.iterrows():
        share, low, high = (100 * row[name] for name in CLOSES)
        cells[row["policy"], row["load"]] = "-" if np.isnan(share) else f"{share:.0f} % ({low:.0f} to {high:.0f})"
    for policy in over["policy"]:
        yield f"| {policy} | " + " | ".join(cells[policy, load] for load in shown) + " |"
