"""How often intervals over streams miss the mean: percentiles of resamples, studentized ones, and Student's t.

    PYTHONPATH=. python docs/results/streams/coverage.py

Runs POPULATION streams a load under two rules and takes their mean as the truth. Then it draws n of them REPEATS times,
computes each kind of interval as the comparison does, and writes the percentages of misses to `coverage.csv`.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student

from pipeline.core.config import load_params
from pipeline.core.types import FloatArray
from pipeline.problems.pool.env.evaluation.metrics import span_of
from pipeline.problems.pool.env.evaluation.play import game_of, played, stream_results
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.workload.source import DrawnSource
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.progress import no_progress

POPULATION, REPEATS, RESAMPLES = 2000, 1000, 1000
LOADS, SIZES, LEVEL = (50, 60, 65), (24, 60, 100, 200), 0.95
RULES = ("sjf", "easy")  # slowdown of each, and their relative difference


@dataclass(frozen=True)
class Drawn:
    """Sums over n values by sample and resample; row 0 is the sample itself."""

    mean: FloatArray  # [1 + S, R]
    error: FloatArray  # [1 + S, R]  standard error of the mean


def drawn(counts: FloatArray, over: FloatArray, under: FloatArray) -> Drawn:
    """Return the ratio of the means of two values [n, R], with its error by the delta method."""
    n = len(over)
    top, bottom = counts @ over / n, counts @ under / n
    ratio = top / bottom
    square = counts @ over**2 / n - 2 * ratio * (counts @ (over * under)) / n + ratio**2 * (counts @ under**2) / n
    return Drawn(ratio, np.sqrt(np.maximum(square, 0) / (n - 1)) / bottom)


def missed(of: Drawn, n: int, truth: float) -> list[float]:
    """Return the share of intervals that miss: percentile, studentized, Student's t."""
    tails = [(1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2]
    mean, error = of.mean[0], of.error[0]
    low, high = np.quantile(of.mean[1:], tails, axis=0)
    apart = np.quantile((of.mean[1:] - mean) / np.maximum(of.error[1:], 1e-12), tails, axis=0)
    wide = student.ppf(tails[1], n - 1) * error
    kinds = ((low, high), (mean - apart[1] * error, mean - apart[0] * error), (mean - wide, mean + wide))
    return [float(((truth < one) | (truth > other)).mean()) for one, other in kinds]


def main() -> None:
    """Run the rules, draw samples, count misses and write them."""
    params = load_params()
    row = params.pool_scenario("streams")
    jobsets = row.jobsets.model_copy(update={"validation": POPULATION})
    rng = np.random.default_rng(1)
    rows = []
    for load in LOADS:
        some = row.model_copy(update={"loads": (load,), "jobsets": jobsets})
        split = DrawnSource(params, some, params.workload_of(some), params.seed).split("validation")
        game, loads, number = game_of(split, Cluster.of(row), row.step_limit, params.seed)
        ends = played(game, [HEURISTICS[name] for name in RULES], no_progress)
        about = partial(stream_results, load=loads, jobset=number, batch=game.jobs, step_limit=row.step_limit)
        found = [about(name, schedule=end, span=span_of(row)).jobsets for name, end in zip(RULES, ends, strict=True)]
        mean = [table["mean_slowdown"].to_numpy() for table in found]
        values = {f"slowdown of {name}": (of, np.ones(POPULATION)) for name, of in zip(RULES, mean, strict=True)}
        values["p99 slowdown of sjf"] = found[0]["p99_slowdown"].to_numpy(), np.ones(POPULATION)
        values["longest wait of sjf"] = found[0]["longest_wait"].to_numpy().astype(float), np.ones(POPULATION)
        values[f"{RULES[1]} less {RULES[0]}, relative"] = mean[1] - mean[0], mean[0]
        for what, (over, under) in values.items():
            for n in SIZES:
                chosen = rng.integers(POPULATION, size=(n, REPEATS))
                counts = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)])
                share = missed(drawn(counts, over[chosen], under[chosen]), n, over.mean() / under.mean())
                rows.append((load, what, n, *(round(100 * one, 1) for one in share)))
    table = pd.DataFrame(rows, columns=["load", "what", "n", "percentile", "studentized", "student"])
    table.to_csv(Path(__file__).with_name("coverage.csv"), index=False)


if __name__ == "__main__":
    main()
