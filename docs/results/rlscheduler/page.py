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
FIVE, AHEAD, BASE = ("saf", "f1", "sjf", "wfp3", "unicep"), "plan_saf", "saf"
TUNED = "HPC2N"  # the log that the planner was chosen on
AGAINST = ("n", "best of five", AHEAD, "to the best of five")
CSV_NAMES = {"told": "known"}  # the column of known run times
RESAMPLES, CONFIDENCE, LEAST = 4000, 0.95, 3  # LEAST: sequences that a log needs to be shown
HOURS = {
    "longest_wait_s": "longest wait, h",
    "p99_wait_s": "p99 of waits, h",
    "area_weighted_response_s": "area-weighted response, h",
}


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


def waits() -> str:
    """Return waits and the area-weighted response time in hours, means over the ten sequences (and seeds)."""
    learned, rules = pd.read_csv(HERE / "waits.csv"), pd.read_csv(HERE / "heuristics.csv")
    rows = []
    for log, backfill in CELLS:
        parts = {"learned": _of(learned, log, backfill)}
        others = _of(rules, log, backfill)
        parts |= {name: others[others["policy"] == name] for name in ("saf", "f1", "sjf")}
        for name, part in parts.items():
            rows.append([_title(log, backfill), name, *(f"{part[column].mean() / 3600:.0f}" for column in HOURS)])
    return table(["log, backfilling", "policy", *HOURS.values()], rows, words=2)


def paired() -> str:
    """Return the difference of each training from SAF and F1, on non-overlapping sequences."""
    found = pd.read_csv(HERE / "paired.csv").set_index(["policy", "against"])
    rows = []
    for agent in (f"{name}_{seed}" for name in CELLS.values() for seed in (1, 2, 3)):
        for other in ("saf", "f1"):
            row = found.loc[(agent, other)]
            means = [f"{row[name]:.1f}" for name in ("mean", "mean_against")]
            rows.append([f"`{agent}`", other, f"{row['n']:.0f}", *means, difference(row)])
    return table(["agent", "heuristic", "n", "mean of the agent", "of the heuristic", "difference"], rows, words=2)


def picked() -> str:
    """Return the means over twelve sequences of HPC2N that the planner was chosen by."""
    rows = pd.read_csv(HERE.parent / "lookahead" / "apart.csv.gz").query("trace == @TUNED")
    means = rows.groupby(["policy", "backfill"])["avg_bounded_slowdown"].mean().unstack()
    means = means[means.index.str.startswith("plan_")].assign(both=lambda of: np.sqrt(of[0] * of[1]))
    written = [[name, *(f"{value:.1f}" for value in row)] for name, row in means.sort_values("both").iterrows()]
    return table(["planner", "without backfilling", "with backfilling", "geometric mean"], written)


def played() -> dict[tuple[str, int], dict[str, pd.DataFrame]]:
    """Return the mean bounded slowdown, sequences by policies, by (known run times, backfilling) and log.

    `protocol` has users' estimates, or the run times of logs without any. `exact` has only logs with estimates.
    """
    rows = pd.read_csv(HERE / "ahead.csv.gz").rename(columns=CSV_NAMES)
    with_estimates = rows.loc[rows["known"] == "estimates", "trace"].unique()
    ways = {"protocol": rows["known"].eq("estimates") | ~rows["trace"].isin(with_estimates)}
    ways["exact"] = rows["known"].eq("exact") & rows["trace"].isin(with_estimates)
    return {
        (known, backfill): {
            str(log): of.pivot(index="seq", columns="policy", values="avg_bounded_slowdown")
            for log, of in rows[mine & rows["backfill"].eq(backfill)].groupby("trace", sort=False)
            if of["seq"].nunique() >= LEAST
        }
        for known, mine in ways.items()
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


def on_the_ten() -> str:
    """Return results of the planner on the ten published sequences of each log, which overlap."""
    published = pd.read_csv(HERE / "published.csv").set_index(["trace", "backfill"])["bounded_slowdown"]
    written = []
    for backfill, logs in ten().items():
        for log, wide in logs.items():
            rl = f"{published[log, backfill]:.1f}" if (log, backfill) in published.index else ""
            written.append([log, "yes" if backfill else "no", rl, *_against_five(wide)])
        written.append(_over(logs, "yes" if backfill else "no", ""))
    return table(["log", "backfilling", "published RL", *AGAINST], written, words=2)


def _against_five(wide: pd.DataFrame) -> list[str]:
    best, n = best_of_five(wide), len(wide)
    means = resample(n, RESAMPLES, np.random.default_rng(1)) @ wide[[AHEAD, best]].to_numpy() / n
    gap = means[:, 0] / means[:, 1] - 1
    low, high = gap_interval(gap[1:], CONFIDENCE, n)
    found = difference(pd.Series({"difference": gap[0], "difference_low": low, "difference_high": high}))
    return [f"{n}", f"{means[0, 1]:.1f} ({best})", f"{means[0, 0]:.1f}", found]


def _over(logs: Mapping[str, pd.DataFrame], *words: str) -> list[str]:
    others = {log: wide for log, wide in logs.items() if log != TUNED}
    n = sum(map(len, others.values()))
    return [f"geometric mean of {len(others)} logs", *words, f"{n}", "", "", difference(over_logs(others))]


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


def ahead() -> str:
    """Return the planner against the best of five rules, by log and over the logs it was not chosen on."""
    written = []
    for (known, backfill), logs in played().items():
        words = [known, "yes" if backfill else "no"]
        written += [[log, *words, *_against_five(wide)] for log, wide in logs.items()]
        written += [_over(logs, *words)] if set(logs) - {TUNED} else []
    return table(["log", "run times", "backfilling", *AGAINST], written, words=3)


def idle() -> str:
    """Return the share of a machine that is free while a waiting job would fit, with and without look-ahead."""
    rows = pd.read_csv(HERE / "ahead.csv.gz").rename(columns=CSV_NAMES).query("known == 'exact'")
    means = rows.groupby(["trace", "backfill", "policy"])["idle"].mean()
    cells = [(backfill, name) for backfill in (0, 1) for name in (BASE, AHEAD)]
    written = [
        [log, *(f"{100 * means[log, *cell]:.1f} %" if (log, *cell) in means.dropna().index else "" for cell in cells)]
        for log in rows["trace"].unique()
    ]
    return table(["log", BASE, AHEAD, f"{BASE}, backfilling", f"{AHEAD}, backfilling"], written)


TABLES = {
    "slowdown": slowdown,
    "waits": waits,
    "paired": paired,
    "picked": picked,
    "on the ten": on_the_ten,
    "ahead": ahead,
    "idle": idle,
}
