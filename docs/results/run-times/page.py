"""Tables of ../run-times.md, from the files of `measure.py`."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from layout import difference, number, table

from pipeline.comparing.resampling import FEW, gap_interval, resample
from pipeline.core.types import FloatArray

HERE = Path(__file__).resolve().parent
RESAMPLES, CONFIDENCE, SEED = 4000, 0.95, 1
EASY = ("EASY", "estimates")
ORDERS = ("SAF", "F1", "SJF")  # candidates for the best heuristic
INFORMATION = ("estimates", "predictions", "run times")
KEY = ["order", "told"]  # columns of the CSVs: the order, and the run times that policies know
KNOWN = KEY[1]


def of_predictions() -> str:
    """Return the errors of known run times."""
    head = ["policies know", "jobs that end within", "mean error, s", "median error, s"]
    rows = [
        [row[KNOWN], f"{row['covered']:.0%}", f"{row['mean_error_s']:,.0f}", f"{row['median_error_s']:,.0f}"]
        for _, row in pd.read_csv(HERE / "test_predictions.csv").iterrows()
        if row[KNOWN] in ("estimates", "last two", "predictions")
    ]
    return table(head, rows)


def of_schedules(name: str, *orders: str) -> str:
    """Return the results of some orders; bounded slowdown is compared with EASY's with estimates."""
    found, (drawn, blocks) = pd.read_csv(HERE / f"{name}_schedules.csv").set_index(KEY), _replayed(name)
    head = ["order", "policies know", "bounded slowdown", "vs. EASY", "p99 of wait, s", "longest, s"]
    rows = []
    for cell, row in found.iterrows():
        if cell[0] not in orders or cell[1] not in INFORMATION:
            continue
        gap = _gap(drawn[cell] / drawn[EASY] - 1, blocks)
        rows.append(
            [
                *(*cell, f"{number(row['bounded_slowdown'])} ± {number(row['bounded_slowdown_sd'])}"),
                "" if cell == EASY else _interval(gap, blocks),
                *(f"{row[name]:,.0f}" for name in ("p99_wait_s", "longest_wait_s")),
            ]
        )
    return table(head, rows, words=2)


def of_the_way(name: str) -> str:
    """Return the share of the way from the best heuristic with estimates to the best with known run times."""
    drawn, blocks = _replayed(name)
    best = {known: min(ORDERS, key=lambda order: drawn[order, known][0]) for known in ("estimates", "run times")}
    begin, end = (best["estimates"], "estimates"), (best["run times"], "run times")
    means = {cell: value[0] for cell, value in drawn.items()}
    rows = [["best with estimates", begin[0], number(means[begin]), ""]]
    for order in ORDERS:
        way = (drawn[begin] - drawn[order, "predictions"]) / (drawn[begin] - drawn[end])
        low, high = gap_interval(way[1:], CONFIDENCE, blocks)
        words = f"{way[0]:.0%} ({float(low):.0%} to {float(high):.0%})"
        rows.append(["with predictions", order, number(means[order, "predictions"]), words])
    return table(
        ["", "order", "bounded slowdown", "of the way"],
        [*rows, ["best with run times", end[0], number(means[end]), ""]],
        2,
    )


def of_looking_ahead() -> str:
    """Return the difference that look-ahead makes with equal information, in both periods."""
    rows = []
    for order in ("SAF", "F1"):
        for known in INFORMATION:
            cells = []
            for name in ("test", "choose"):
                drawn = _drawn(name)
                ahead, without = drawn[f"{order}, looking ahead", known], drawn[order, known]
                cells.append(difference(_gap(ahead / without - 1, _blocks(name)), 0))
            rows.append([order, known, *cells])
    return table(["order", "policies know", "test period", "harder period"], rows, 2)


def of_learned() -> str:
    """Return the results of the learned policy in the test period, as the mean of three training runs."""
    drawn, blocks = _drawn("test"), _blocks("test")
    own, kept = _drawn("learned"), pd.read_csv(HERE / "learned_schedules.csv").set_index(KEY)
    seeds = [f"learned, seed {seed}" for seed in (1, 2, 3)]
    begin, end = drawn["SAF", "estimates"], drawn["SAF", "run times"]  # the best of that table with this information
    best = {known: min(ORDERS, key=lambda order: drawn[order, known][0]) for known in INFORMATION}
    rows = []
    for known, rule in best.items():
        mine = np.mean([own[seed, known] for seed in seeds], axis=0)
        each = ", ".join(number(kept.loc[(seed, known), "bounded_slowdown"]) for seed in seeds)
        tail = np.mean([kept.loc[(seed, known), "p99_wait_s"] for seed in seeds])
        gaps = [difference(_gap(mine / other - 1, blocks), 0) for other in (drawn[EASY], drawn[rule, known])]
        way = (begin - mine) / (begin - end)
        low, high = gap_interval(way[1:], CONFIDENCE, blocks)
        far = f"{way[0]:.0%} ({float(low):.0%} to {float(high):.0%})"
        rows.append([known, each, number(mine[0]), f"{tail:,.0f}", gaps[0], f"{rule}: {gaps[1]}", far])
    head = ["policies know", "seeds 1, 2, 3", "mean", "p99 of wait, s"]
    head += ["vs. EASY", "vs. the best heuristic", "of the way"]
    return table(head, rows)


def _blocks(name: str) -> int:
    return int(pd.read_csv(HERE / f"{name}_blocks.csv")["block"].nunique())


def _drawn(name: str) -> dict[tuple[str, str], FloatArray]:
    """Return the mean bounded slowdown of every cell, weighted by how often each block is drawn [1 + S]."""
    found = pd.read_csv(HERE / f"{name}_blocks.csv")
    counts = resample(_blocks(name), RESAMPLES, np.random.default_rng(SEED))
    drawn = {}
    for cell, part in found.groupby(KEY, sort=False):
        sums = part.sort_values("block")
        drawn[cell] = (counts @ sums["bounded_slowdown"].to_numpy()) / (counts @ sums["jobs"].to_numpy())
    return drawn


def _replayed(name: str) -> tuple[dict[tuple[str, str], FloatArray], int]:
    """Return the mean bounded slowdown of every cell over drawn blocks and replays [1 + S], and the blocks."""
    found = pd.read_csv(HERE / f"{name}_replays.csv.gz")
    blocks, replays = found["block"].nunique(), found["replay"].nunique()
    counts = resample(blocks, RESAMPLES, np.random.default_rng(SEED))
    chosen = resample(replays, RESAMPLES, np.random.default_rng(SEED + 1)) / replays
    drawn = {}
    for cell, part in found.groupby(KEY, sort=False):
        sums = part.pivot(index="replay", columns="block", values="bounded_slowdown").to_numpy()
        jobs = part.groupby("block")["jobs"].first().to_numpy()
        drawn[cell] = ((chosen @ sums) * counts).sum(axis=1) / (counts @ jobs)
    return drawn, blocks


def _gap(drawn: FloatArray, blocks: int) -> pd.Series:
    low, high = gap_interval(drawn[1:], CONFIDENCE, blocks)
    return pd.Series({"difference": drawn[0], "difference_low": float(low), "difference_high": float(high)})


def _interval(gap: pd.Series, blocks: int) -> str:
    """Return a difference with its interval, or with the range over blocks if these are too few for one."""
    if blocks >= FEW:
        return difference(gap, 0)
    mean, low, high = (f"{100 * gap[name]:+.0f}" for name in ("difference", "difference_low", "difference_high"))
    return f"{mean} %; blocks {low} to {high} %"


TABLES = {
    "predictions": of_predictions,
    "schedules": partial(of_schedules, "test", "EASY", "SAF", "F1"),
    "of the way": partial(of_the_way, "test"),
    "kth": partial(of_schedules, "kth", "EASY", "SAF"),
    "looking ahead": of_looking_ahead,
    "learned": of_learned,
}
