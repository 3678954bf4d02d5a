"""Shares of many groups: time of a plan, and gap of a relaxation to the optimum."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.record import Row, Target, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.core.types import FloatArray, IntArray
from pipeline.problems.groups.env.simulator.knapsack.exact import best_shares, best_shares_two
from pipeline.problems.groups.env.simulator.knapsack.several import lagrangian

PLAIN = "equation 9 in numpy: one level of a group at a time, all amounts at once"
NONE = "no baseline"
BEST = "no baseline: gap to the optimum, relative to the optimum's gain over no units for any group"
BOUND = "no baseline: gap to its own bound, relative to the bound's gain"
SHARES = 4.0  # equal shares of the cluster in the highest level


class Question(NamedTuple):
    """Values of one state and the resources to share."""

    value: FloatArray  # [1, G, L]
    units: IntArray  # [L, R]
    total: IntArray  # [R]

    def gap(self, reached: FloatArray, most: FloatArray) -> float:
        """Return the gap to the maximum, in percent of the maximum's gain over giving no group any units."""
        nothing = self.value[:, :, 0].sum()
        return float(100 * (most[0] - reached[0]) / (most[0] - nothing))


def asked(groups: int, levels: int, total: int, resources: int, number: int) -> Question:
    """Draw a question: values are concave, so that every level can be optimal; units rise with the level, at random."""
    rng = np.random.default_rng([11, number])
    even = np.linspace(0, SHARES * total / groups, levels)[:, None] * rng.uniform(0.6, 1.4, (levels, resources))
    units = np.sort(even.round().astype(np.int64), axis=0)
    more = np.sort(rng.exponential(1.0, (groups, levels - 1)), axis=1)[:, ::-1] * rng.exponential(1.0, (groups, 1))
    value = np.concatenate([np.zeros((groups, 1)), more.cumsum(axis=1)], axis=1) - rng.exponential(1.0, (groups, 1))
    return Question(value[None], units, np.full(resources, total))


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure the knapsack on one resource and on two, and the relaxation's time and gaps."""
    one = asked(*sizes.shares, 1, 0)
    many, exact = asked(*sizes.shares, 2, 0), asked(*sizes.two_shares, 2, 0)
    units, total = one.units[:, 0], int(one.total[0])
    mine, plain = in_turns(
        runs,
        on_progress,
        lambda: 1e3 * seconds(lambda: best_shares(one.value, units, total)),
        lambda: 1e3 * seconds(lambda: plainly(one.value[0], units, total)),
    )
    name = "knapsack, {} groups x {} levels x {:,} units".format(*sizes.shares)
    yield Row(figure(name, mine, "ms", plain, target=half_of(cost=1.1)), PLAIN)
    relaxed, two = in_turns(
        runs,
        on_progress,
        lambda: 1e3 * seconds(lambda: lagrangian(*many)),
        lambda: 1e3 * seconds(lambda: best_shares_two(*exact)),
    )
    groups, levels, most = sizes.two_shares
    yield Row(
        figure(f"knapsack, {groups} x {levels} x {most:,} x {most:,} units", two, "ms", target=half_of(cost=0.55)), NONE
    )
    yield Row(
        figure(
            "relaxation, {} x {} x 2 resources of {:,}".format(*sizes.shares), relaxed, "ms", target=half_of(cost=1.0)
        ),
        NONE,
    )
    yield from _gaps(sizes, on_progress)


def _gaps(sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    missing, slack = [], []
    for number in range(sizes.questions):
        on_progress(f"question {number + 1} of {sizes.questions}")
        small, large = asked(*sizes.two_shares, 2, number), asked(*sizes.shares, 2, number)
        missing.append(small.gap(lagrangian(*small).value, best_shares_two(*small).value))
        found = lagrangian(*large)
        slack.append(large.gap(found.value, found.bound))
    name = f"of {sizes.questions} questions"
    yield Row(figure(f"gap to optimum, mean {name}", [float(np.mean(missing))], "%", target=Target(most=1.0)), BEST)
    yield Row(figure(f"gap to optimum, worst {name}", [max(missing)], "%"), BEST)
    within = Target(most=1.0)
    yield Row(figure(f"gap to bound, mean {name}", [float(np.mean(slack))], "%", target=within), BOUND)
    yield Row(figure(f"gap to bound, worst {name}", [max(slack)], "%"), BOUND)


def plainly(value: FloatArray, units: IntArray, total: int) -> float:
    """Return the optimum of one state by equation 9, without compiled code and without backtracking."""
    before = np.zeros(total + 1)
    for group in value - value[:, :1]:
        best = before.copy()
        for gain, amount in zip(group[1:], units[1:], strict=True):
            if amount <= total:
                np.maximum(best[amount:], before[: total + 1 - amount] + gain, out=best[amount:])
        before = best
    return float(before[total] + value[:, 0].sum())
