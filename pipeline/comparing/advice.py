"""Advice for a site: the best policy, its improvement over today's, the confidence, and the losers.

The policy is chosen on the validation period: the heuristic with the lowest mean bounded slowdown. A learned policy
replaces it only if its whole interval against that heuristic is below 0, on validation and again on the test period; so
the test period can only veto. The reported change is that of the test period. Independent units are its blocks of three
days: they are resampled whole, and for few blocks the range replaces the interval (`resampling`).
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.comparing.statistics import NOTHING
from pipeline.core.config import Evaluation
from pipeline.core.schemas.tables import BLOCK_DAYS
from pipeline.core.types import FloatArray, IntArray

OWN_LOAD = 1.0  # times the log's own load
TAIL = 0.99
LEAST_BLOCKS = 4  # for any clear result
LOSES = 0.1  # a class of jobs loses if its mean wait grows by more than this share, and by more than LEAST_S
LEAST_S = 60.0
FEWEST = 30  # jobs of a reported class
MOST_DAYS = 3_650  # longer logs are not suggested


class Change(NamedTuple):
    """A relative change of one figure, and its interval; for few blocks its range."""

    change: float
    low: float
    high: float
    value: float
    today: float


class Loser(NamedTuple):
    """A class of jobs whose mean wait grows."""

    what: str
    jobs: int
    wait_s: float
    today_s: float


class Advice(NamedTuple):
    """Advice for one site."""

    scenario: str
    today: str
    policy: str  # that is advised; today's if no other is clearly better
    learned: bool
    best_heuristic: str  # on validation
    blocks: int  # of three days of the test period, with jobs
    jobs: int
    mean: Change  # of bounded slowdown
    p99: Change
    wait: Change  # its mean
    p99_wait: Change
    candidate: str  # the policy of these changes
    clear: bool  # is the mean's interval wholly below 0?
    worst_week: tuple[int, float]  # of the test period, from 1; its change of mean bounded slowdown
    losers: list[Loser]
    agent: tuple[str, Change]  # the learned policy, against the best heuristic, by mean bounded slowdown
    elsewhere: dict[float, str]  # the best heuristic at other loads, times the log's own
    more_days: int | None  # of log for a clear result; None: it is clear, or no number of days would suffice
    limits: bool = True  # does the log have requested run times?
    needs: str = ""  # value of the scenario's policies_know for these results; empty: the current one


def advise(scenario: str, trial: pd.DataFrame, today: str, agent: str, settings: Evaluation, seed: int) -> Advice:
    """Return the advice of one site.

    Args:
        scenario: its name.
        trial: TRIAL.
        today: the heuristic in use.
        agent: its learned policy.
        settings: of the bootstrap.
        seed: of its resamples.
    """
    validation, test = (
        trial[(trial["period"] == name) & (trial["load"] == OWN_LOAD)] for name in ("validation", "test")
    )
    other, best = trial[trial["load"] != OWN_LOAD], best_heuristic(validation, [agent])
    both = [_changes(part, agent, best, settings, seed, ["mean"])["mean"] for part in (validation, test)]
    learned = all(change.high < 0 for change in both)
    candidate = agent if learned else best
    found = _changes(test, candidate, today, settings, seed, ["mean", "p99", "wait", "p99_wait"])
    blocks = test["block"].nunique()
    clear = blocks >= LEAST_BLOCKS and found["mean"].high < 0
    means = test.groupby(["week", "policy"])["bounded_slowdown"].mean().unstack("policy")
    weeks = means[candidate] / means[today] - 1
    return Advice(
        scenario=scenario,
        today=today,
        policy=candidate if clear else today,
        learned=learned and clear,
        best_heuristic=best,
        blocks=blocks,
        jobs=int(test["job"].nunique()),
        mean=found["mean"],
        p99=found["p99"],
        wait=found["wait"],
        p99_wait=found["p99_wait"],
        candidate=candidate,
        clear=clear,
        worst_week=(int(weeks.index[int(weeks.argmax())]) + 1, float(weeks.max())),
        losers=losers(test, candidate, today),
        agent=(agent, both[1]),
        elsewhere={float(str(load)): best_heuristic(rows, [agent]) for load, rows in other.groupby("load")},
        more_days=None if clear else _more_days(found["mean"], blocks),
    )


def best_heuristic(rows: pd.DataFrame, learned: Collection[str]) -> str:
    """Return the heuristic with the lowest mean bounded slowdown; among equals, the first by name."""
    means = rows[~rows["policy"].isin(learned)].groupby("policy")["bounded_slowdown"].mean()
    return str(means.sort_index().idxmin())


def _changes(
    rows: pd.DataFrame, policy: str, against: str, settings: Evaluation, seed: int, wanted: Collection[str]
) -> dict[str, Change]:
    """Return the changes of some figures, with the same resamples of blocks for every figure of every pair."""
    block = rows.loc[rows["policy"] == against, "block"].to_numpy()
    units, place = np.unique(block, return_inverse=True)
    counts = resample(len(units), settings.resamples, np.random.default_rng(seed))
    columns = {"mean": "bounded_slowdown", "p99": "bounded_slowdown", "wait": "wait", "p99_wait": "wait"}
    found = {}
    for name in wanted:
        figure = _p99 if name.startswith("p99") else _mean
        mine, other = (
            figure(rows.loc[rows["policy"] == who, columns[name]].to_numpy(), place, counts)
            for who in (policy, against)
        )
        change = _relative(mine, other)
        low, high = gap_interval(change[1:], settings.confidence, len(units))
        found[name] = Change(float(change[0]), float(low), float(high), float(mine[0]), float(other[0]))
    return found


def _relative(mine: FloatArray, other: FloatArray) -> FloatArray:
    """Return a change relative to the other; 0 if both are 0.

    >>> _relative(np.array([3.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [-0.25, 0.0]
    """
    return np.asarray((mine - other) / np.maximum(other, NOTHING))


def _mean(value: FloatArray, block: IntArray, counts: FloatArray) -> FloatArray:
    """Return the mean over jobs in the sample and in each resample of blocks, [1 + S]."""
    return np.asarray((counts @ np.bincount(block, value)) / (counts @ np.bincount(block)))


def _p99(value: FloatArray, block: IntArray, counts: FloatArray) -> FloatArray:
    """Return the 99th percentile over jobs in the sample and in each resample of blocks, [1 + S].

    >>> _p99(np.arange(1.0, 101.0), np.repeat([0, 1], 50), np.array([[1.0, 1.0], [2.0, 0.0]])).tolist()
    [99.0, 50.0]
    """
    order = np.argsort(value, kind="stable")
    ranked, whose = value[order], block[order]
    found = np.empty(len(counts))
    for row, count in enumerate(counts):
        up_to = np.cumsum(count[whose])
        found[row] = ranked[np.searchsorted(up_to, TAIL * up_to[-1] - 1e-9)]
    return found


def losers(test: pd.DataFrame, policy: str, today: str) -> list[Loser]:
    """Return the classes of jobs, by run time, size and user, whose mean wait grows, with the largest growth first."""
    mine, other = (test[test["policy"] == who].reset_index(drop=True) for who in (policy, today))
    found = []
    for what, of in _classes(other).items():
        jobs, wait, before = int(of.sum()), float(mine.loc[of, "wait"].mean()), float(other.loc[of, "wait"].mean())
        if jobs >= FEWEST and wait - before > max(LOSES * before, LEAST_S):
            found.append(Loser(what, jobs, wait, before))
    return sorted(found, key=lambda loser: loser.today_s - loser.wait_s)


def _classes(jobs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the members of each class."""
    run, share = jobs["run_s"], jobs["share"]
    classes = {
        "jobs below 10 minutes": run < 600,
        "jobs of 10 minutes to 2 hours": (run >= 600) & (run < 7_200),
        "jobs of 2 hours to a day": (run >= 7_200) & (run < 86_400),
        "jobs of a day or more": run >= 86_400,
        "jobs of up to 1 % of the machines": share <= 0.01,
        "jobs of 1 to 10 % of the machines": (share > 0.01) & (share <= 0.1),
        "jobs of more than 10 % of the machines": share > 0.1,
    }
    users = jobs.loc[jobs["user"] >= 0, "user"].unique()
    return classes | {f"user {user}": jobs["user"] == user for user in users}


def _more_days(change: Change, blocks: int) -> int | None:
    """Return the additional days of log for a significant change: intervals shrink with the square root of n.

    >>> _more_days(Change(-0.2, -0.6, 0.2, 0.8, 1.0), blocks=4), _more_days(Change(0.1, -0.1, 0.3, 1.1, 1.0), blocks=4)
    (36, None)
    """
    if change.change >= 0:
        return None
    half = max((change.high - change.low) / 2, change.high - change.change)
    needed = np.ceil(max(blocks, 1) * (half / -change.change) ** 2)
    days = int(max(needed - blocks, 1)) * BLOCK_DAYS
    return days if days <= MOST_DAYS else None
