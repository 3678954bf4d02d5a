"""Tables of ../rlscheduler.md, from the CSVs of this folder.

`heuristics.csv` is the output of `benchmark rlscheduler` for the heuristics. `published.csv` has tables 5 and 6 of the
paper (Zhang et al., SC 2020), as in its code.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, table

from pipeline.comparing.resampling import gap_interval, resample

HERE = Path(__file__).resolve().parent
CELLS = {  # log and backfilling: prefix of the agents' names
    ("lublin_256", 0): "lublin_alone",
    ("lublin_256", 1): "lublin_backfilled",
    ("HPC2N", 0): "hpc2n_alone",
    ("HPC2N", 1): "hpc2n_backfilled",
}
FIVE, AHEAD = ("saf", "f1", "sjf", "wfp3", "unicep"), "plan_saf"
TUNED = "HPC2N"  # the log that the planner was chosen on
CSV_NAMES = {"told": "known"}  # the column of known run times
PAIRS = ("saf", "f1")
SAME = [f"{CELLS['lublin_256', 0]}_{seed}" for seed in (2, 3)]  # validation reset them to the initial rule of the first
RESAMPLES, CONFIDENCE, LEAST = 4000, 0.95, 3  # LEAST: sequences that a log needs to be shown


def _of(found: pd.DataFrame, log: str, backfill: int) -> pd.DataFrame:
    return found[found["trace"].str.startswith(log) & (found["backfill"] == backfill)]


def _title(log: str, backfill: int) -> str:
    return f"{log}, {'yes' if backfill else 'no'}"


def slowdown() -> str:
    """Return mean bounded slowdown over the ten sequences."""
    learned, rules = pd.read_csv(HERE / "sequences.csv"), pd.read_csv(HERE / "heuristics.csv")
    published = pd.read_csv(HERE / "published.csv").set_index(["trace", "backfill"])["bounded_slowdown"]
    rows = []
    for (log, backfill), agent in CELLS.items():
        own, others = (
            _of(part, log, backfill).groupby("policy")["avg_bounded_slowdown"].mean() for part in (learned, rules)
        )
        seeds = [own[f"{agent}_{seed}"] for seed in (1, 2, 3)]
        cells = [", ".join(f"{mean:.2f}" for mean in seeds), f"{sum(seeds) / 3:.2f}", f"{published[log, backfill]:.2f}"]
        best = others.idxmin()
        rows.append([_title(log, backfill), *cells, f"{others[best]:.2f} ({best.upper()})", f"{others['saf']:.2f}"])
    head = ["log, backfilling", "seeds 1, 2, 3", "mean", "published RL", "best heuristic on the ten", "SAF"]
    return table(head, rows)


def played() -> dict[int, dict[str, pd.DataFrame]]:
    """Return the mean bounded slowdown, sequences by policies, by backfilling and log.

    Policies know users' estimates, or the run times of logs without any.
    """
    rows = pd.read_csv(HERE / "ahead.csv.gz").rename(columns=CSV_NAMES)
    with_estimates = rows.loc[rows["known"] == "estimates", "trace"].unique()
    rows = rows[rows["known"].eq("estimates") | ~rows["trace"].isin(with_estimates)]
    return {
        backfill: {
            str(log): of.pivot(index="seq", columns="policy", values="avg_bounded_slowdown")
            for log, of in rows[rows["backfill"].eq(backfill)].groupby("trace", sort=False)
            if of["seq"].nunique() >= LEAST
        }
        for backfill in (0, 1)
    }


def ten() -> dict[int, dict[str, pd.DataFrame]]:
    """Return the same for the ten published sequences, by backfilling and log."""
    look = HERE.parent / "lookahead"
    files = (look / "rlscheduler.csv.gz", HERE / "ten.csv.gz", look / "unseen.csv.gz")
    rows = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    rows["trace"] = rows["trace"].str.replace(r"^HPC2N.*", TUNED, regex=True)
    return {
        int(backfill): {
            str(log): part.pivot(index="seq", columns="policy", values="avg_bounded_slowdown")
            for log, part in of.groupby("trace", sort=False)
        }
        for backfill, of in rows.groupby("backfill")
    }


def best_of_five(wide: pd.DataFrame) -> str:
    """Return the rule with the lowest mean on the same sequences."""
    return str(wide[list(FIVE)].mean().idxmin())


def over_logs(logs: Mapping[str, pd.DataFrame], base: str = "") -> pd.Series:
    """Return the geometric mean over logs of the planner's ratio to a rule, or to the best of five of each log.

    Resamples n - 1 of n sequences in each log, which gives an unbiased variance (Rao and Wu 1988).
    """
    rng, ratios = np.random.default_rng(1), []
    for wide in logs.values():
        own = wide[[AHEAD, base or best_of_five(wide)]].to_numpy()
        count = len(own) - 1
        drawn = rng.multinomial(count, np.full(len(own), 1 / len(own)), size=RESAMPLES) / count
        means = np.vstack([np.full(len(own), 1 / len(own)), drawn]) @ own
        ratios.append(np.log(means[:, 0] / means[:, 1]))
    mean = np.expm1(np.mean(ratios, axis=0))
    low, high = np.quantile(mean[1:], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return pd.Series({"difference": mean[0], "difference_low": low, "difference_high": high})


def paired() -> str:
    """Return the mean of each training run and its difference from SAF and F1, on non-overlapping sequences."""
    found = pd.read_csv(HERE / "paired.csv").set_index(["policy", "against"])
    agents = (f"{name}_{seed}" for name in CELLS.values() for seed in (1, 2, 3))
    rows = [
        [
            f"`{agent}`",
            f"{found.loc[(agent, 'saf'), 'mean']:.1f}",
            *(difference(found.loc[(agent, to)]) for to in PAIRS),
        ]
        for agent in agents
        if agent not in SAME
    ]
    return table(["agent", "mean", *(f"vs. {name.upper()}" for name in PAIRS)], rows)


def by_log() -> str:
    """Return the planner's difference from the best of five rules by log, on both kinds of sequences."""
    published, apart = ten(), played()
    kinds = [of for backfill in (0, 1) for of in (published[backfill], apart[backfill])]
    logs = dict.fromkeys(log for kind in kinds for log in kind)
    rows = [[log, *(_to_five(kind[log]) if log in kind else "" for kind in kinds)] for log in logs]
    others = [{log: wide for log, wide in kind.items() if log != TUNED} for kind in kinds]
    counts = (f"{len(kind)} logs, n = {sum(map(len, kind.values()))}" for kind in others)
    rows.append(
        ["geometric mean", *(f"{difference(over_logs(kind))}; {n}" for kind, n in zip(others, counts, strict=True))]
    )
    return table(["log", "the ten", "separate", "the ten, backfilling", "separate, backfilling"], rows)


def _to_five(wide: pd.DataFrame) -> str:
    best, n = best_of_five(wide), len(wide)
    means = resample(n, RESAMPLES, np.random.default_rng(1)) @ wide[[AHEAD, best]].to_numpy() / n
    gap = means[:, 0] / means[:, 1] - 1
    low, high = gap_interval(gap[1:], CONFIDENCE, n)
    return difference(pd.Series({"difference": gap[0], "difference_low": low, "difference_high": high}))


TABLES = {"slowdown": slowdown, "paired": paired, "by log": by_log}
