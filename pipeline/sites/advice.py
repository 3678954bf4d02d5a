"""Advice for a site: the order that shortens waits most without making anyone wait much longer.

A learned score evolves on the training period. The validation period chooses among the orders that Slurm's settings can
express, learned or not: the one with the lowest `gain` that no veto excludes. The test period only confirms: the advice
is to use this order if the interval of its gain is below 0 and no veto applies there either. Vetoes limit how much
longer the longest wait, the 99th percentile and the mean wait of large jobs may become.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from pipeline.core.config import Evaluation, Site, Vetoes
from pipeline.core.schemas.tables import BLOCK_DAYS
from pipeline.core.types import BoolArray, FloatArray
from pipeline.sites.figures import Change, blocks_of, draws, figures, relative
from pipeline.sites.learned import GENERATIONS, MARGIN, learn, score_of
from pipeline.sites.orders import FOR_SLURM, LEARNED, names_of, order_of
from pipeline.sites.queue import Period
from pipeline.sites.replay import Order, replay
from pipeline.sites.slurm_settings import SlurmOrder

LEAST_BLOCKS = 4  # of three days, in the test period
LARGE = 0.1  # share of all processors above which a job is large
FEWEST = 30  # jobs in a class that is reported or protected by a veto
EQUAL = 0.05  # orders are equal if the whole interval of the gain is closer to 0 than this
LOSES = 0.1  # a user loses if the mean wait grows by more than this share and by more than LEAST_S
LEAST_S = 60.0  # a wait that grows by less is neither a loss nor a reason for a veto; a shorter mean decides nothing
MOST_DAYS = 3_650  # longer logs are not suggested
RESAMPLES_OF_CHOICE = 2  # where no interval is needed


class Judged(NamedTuple):
    """Figures of an order on a period, compared with today's order."""

    name: str
    figures: dict[str, Change]
    large: Change | None  # mean wait of large jobs; None: there are too few
    vetoes: list[str]


class Class(NamedTuple):
    """Mean, 99th percentile and longest wait of a class of jobs, in seconds, under today's order and another one."""

    what: str
    jobs: int
    today: tuple[float, float, float]
    value: tuple[float, float, float]


class Advice(NamedTuple):
    """Recommendation for a site, and the evidence for it."""

    verdict: str  # use | equal | undecided | vetoed | stay
    candidate: str
    runner_up: str  # the next best order of another family; "" = none, or the test period vetoes it
    learned: SlurmOrder | None  # score of the orders named `learned`; None: the log is too short
    validation: list[Judged]
    test: dict[str, Judged]  # by order
    classes: list[Class]  # of the candidate, on the test period
    users: tuple[int, int, int]  # whose mean wait clearly falls, whose clearly rises, and all
    blocks: int
    jobs: int
    replays: int
    own: tuple[float, float, float]  # mean, 99th percentile and longest wait in the log's own history; nan = unknown
    more_days: int | None  # more test period for a clear verdict; None: it is clear already, or no number would do


def waits_of(period: Period, name: str, workers: ThreadPoolExecutor) -> FloatArray:
    """Return the waits [E, J] of the jobs that count, under an order."""
    return replayed(period, order_of(name, period.queue, period.slurm), workers)


def replayed(period: Period, order: Order, workers: ThreadPoolExecutor) -> FloatArray:
    """Return the waits [E, J] of the jobs that count."""

    def one(e: int) -> FloatArray:
        start = replay(period.queue, order, period.backfill, period.submit[e], period.arrivals[e])
        return np.asarray((start - period.submit[e])[period.first :])

    return np.stack(list(workers.map(one, range(len(period.submit)))))


def advise(
    periods: Mapping[str, Period], site: Site, settings: Evaluation, seed: int, threads: int,
    advance: Callable[[int], object],
) -> Advice:  # fmt: skip
    """Return which order of its queue a site should use.

    Args:
        periods: periods of the log: `train`, `validation` and `test`.
        site: the site's row.
        settings: settings of the intervals.
        seed: seed of learning and resampling.
        threads: number of replays at once.
        advance: called after each generation of learning and each order.
    """
    with ThreadPoolExecutor(threads) as workers:
        learned = learn(periods["train"], site.today, site.most, seed, workers, advance)
        found = {name: _waits(periods[name], learned, workers, advance) for name in ("validation", "test")}
    validation = _judge(periods["validation"], found["validation"], site, RESAMPLES_OF_CHOICE, settings, seed)
    better = [one for one in validation if one.name in FOR_SLURM and not one.vetoes and _gain(one) < 0]
    idle = validation[0].figures["wait"].today < LEAST_S  # jobs hardly wait, so the choice would be arbitrary
    safe = [] if idle else sorted(better, key=_gain)
    candidate = safe[0].name if safe else site.today
    period, family = periods["test"], FOR_SLURM.get(candidate, ("",))[0]
    test = {one.name: one for one in _judge(period, found["test"], site, RESAMPLES_OF_CHOICE, settings, seed)}
    others = [one.name for one in safe if FOR_SLURM[one.name][0] != family][:1]
    others = [name for name in others if not test[name].vetoes]  # the test period confirms it or drops it
    shown = [site.today, candidate, *others]
    waits = {name: found["test"][name] for name in shown}
    test |= {one.name: one for one in _judge(period, waits, site, settings.resamples, settings, seed)}
    blocks = int(blocks_of(period).max()) + 1
    classes = _classes(period, found["test"][candidate], found["test"][site.today])
    verdict = _verdict(test[candidate], site.today, blocks)
    return Advice(
        verdict=verdict,
        candidate=candidate,
        runner_up=others[0] if others else "",
        learned=learned,
        validation=validation,
        test=test,
        classes=classes,
        users=_users(period, found["test"][candidate], found["test"][site.today]),
        blocks=blocks,
        jobs=len(period.run),
        replays=len(period.submit),
        own=_own(period),
        more_days=more_days(test[candidate].figures["gain"], blocks) if verdict == "undecided" else None,
    )


def _waits(
    period: Period, learned: SlurmOrder | None, workers: ThreadPoolExecutor, advance: Callable[[int], object]
) -> dict[str, FloatArray]:
    """Return the waits [E, J] under every order."""
    found = {}
    for name in names_of(period.slurm):
        found[name] = waits_of(period, name, workers)
        advance(1)
    for name, (_, tau) in LEARNED.items():
        if learned:
            found[name] = replayed(period, score_of(learned._replace(tau_s=tau), period), workers)
        advance(1)
    return found


def steps(site: Site) -> int:
    """Return the steps of progress."""
    return GENERATIONS + 2 * (len(names_of(site.slurm)) + len(LEARNED))


def _gain(one: Judged) -> float:
    """Return the value that orders are chosen by: the gain, with a margin that a learned order must make up for."""
    return one.figures["gain"].change + MARGIN * (one.name in LEARNED)


def _judge(
    period: Period, waits: Mapping[str, FloatArray], site: Site, resamples: int, settings: Evaluation, seed: int
) -> list[Judged]:
    block = blocks_of(period)
    drawn = draws(max(int(block.max()) + 1, 2), len(period.submit), resamples, settings.confidence, seed)
    today, judged = waits[site.today], []
    large = period.queue.cpus[period.first :] > LARGE * (period.queue.capacity[:, 0].sum() / 1000)
    for name, wait in waits.items():
        found = figures(wait, today, period.run, block, drawn)
        few = _mean_change(wait, today, large) if large.sum() >= FEWEST else None
        judged.append(Judged(name, found, few, vetoes(found, few, site.most)))
    return judged


def vetoes(found: Mapping[str, Change], large: Change | None, most: Vetoes) -> list[str]:
    """Return the reasons why an order is not acceptable; empty if it is."""
    limits = [
        ("the longest wait", found["longest_wait"], most.longest),
        ("the 99th percentile of waits", found["p99_wait"], most.p99),
        *([("the mean wait of large jobs", large, most.large)] if large else []),
    ]
    return [
        f"{what} grows by {100 * it.change:.0f} %"
        for what, it, limit in limits
        if it.change > limit and it.value - it.today > LEAST_S
    ]


def _mean_change(wait: FloatArray, today: FloatArray, some: BoolArray) -> Change:
    mine, other = float(wait[:, some].mean()), float(today[:, some].mean())
    each = relative(wait[:, some].mean(axis=1), today[:, some].mean(axis=1))
    change = relative(wait[:, some].mean(), today[:, some].mean())
    return Change(mine, other, float(change), float(each.min()), float(each.max()))


def _verdict(one: Judged, today: str, blocks: int) -> str:
    gain = one.figures["gain"]
    if one.name == today:
        return "stay"
    if blocks < LEAST_BLOCKS:
        return "undecided"
    if gain.high < 0:
        return "vetoed" if one.vetoes else "use"
    return "equal" if gain.low > -EQUAL and gain.high < EQUAL else "undecided"


def more_days(gain: Change, blocks: int) -> int | None:
    """Return the additional days of test period needed for a clear gain: intervals shrink with the square root of n.

    >>> more_days(Change(0.8, 1.0, -0.2, -0.6, 0.2), blocks=4), more_days(Change(1.1, 1.0, 0.1, -0.1, 0.3), blocks=4)
    (36, None)
    """
    if gain.change >= 0:
        return None
    needed = np.ceil(blocks * ((gain.high - gain.change) / -gain.change) ** 2)
    days = int(max(needed - blocks, LEAST_BLOCKS - blocks, 1)) * BLOCK_DAYS
    return days if days <= MOST_DAYS else None


def _summary(wait: FloatArray) -> tuple[float, float, float]:
    """Return mean, 99th percentile and longest of waits [E, J], mean over replays."""
    return (
        float(wait.mean()),
        float(np.quantile(wait, 0.99, axis=1, method="inverted_cdf").mean()),
        float(wait.max(axis=1).mean()),
    )


def _classes(period: Period, wait: FloatArray, today: FloatArray) -> list[Class]:
    """Return the classes of jobs with enough members, by size and by requested limit."""
    share = period.queue.cpus[period.first :] / (period.queue.capacity[:, 0].sum() / 1000)
    limit = period.queue.limit[period.first :]
    bounds = (("up to 1 % of the processors", 0.0, 0.01), ("1 to 10 % of the processors", 0.01, LARGE))
    classes = {f"jobs of {what}": (share > low) & (share <= high) for what, low, high in bounds}
    classes["jobs of more than 10 % of the processors"] = share > LARGE
    spans = (("up to 1 hour", 0, 1), ("1 to 8 hours", 1, 8), ("8 to 24 hours", 8, 24), ("more than 24 hours", 24, 1e9))
    classes |= {f"limits of {what}": (limit > low * 3600) & (limit <= high * 3600) for what, low, high in spans}
    return [
        Class(what, int(some.sum()), _summary(today[:, some]), _summary(wait[:, some]))
        for what, some in classes.items()
        if some.sum() >= FEWEST
    ]


def _users(period: Period, wait: FloatArray, today: FloatArray) -> tuple[int, int, int]:
    """Return the numbers of users whose mean wait falls and rises clearly, and of all users."""
    user = period.user[period.first :]
    known = user >= 0
    users, place = np.unique(user[known], return_inverse=True)
    jobs = np.bincount(place)
    mine, other = (np.bincount(place, some.mean(axis=0)[known]) / jobs for some in (wait, today))
    clear = np.maximum(LOSES * other, LEAST_S)
    return int((mine < other - clear).sum()), int((mine > other + clear).sum()), len(users)


def _own(period: Period) -> tuple[float, float, float]:
    wait = period.wait[period.first :]
    known = wait[~np.isnan(wait)]
    return _summary(known[None]) if len(known) else (np.nan, np.nan, np.nan)
