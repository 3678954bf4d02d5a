"""What if: a site's queue with more machines, shorter limits, more load, or a user who submits at night."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pipeline.core.config import Evaluation
from pipeline.core.logs.trace import DAY_S
from pipeline.errors import UserError
from pipeline.sites.advice import waits_of
from pipeline.sites.figures import Change, blocks_of, draws, figures
from pipeline.sites.queue import Period
from pipeline.sites.replay import Outages

EVENING_S, MORNING_S = 20 * 3_600.0, 8 * 3_600.0
UNITS = {"h": 3_600.0, "d": DAY_S}
EXPECTED = "expected nodes=+10%, load=+20%, limit=24h or night=USER"


def what_if(
    period: Period, order: str, change: str, began: float,
    settings: Evaluation, seed: int, threads: int,
) -> tuple[dict[str, Change], int]:  # fmt: skip
    """Return the figures of a changed queue, compared with the unchanged queue, and the number of blocks.

    Args:
        period: period of the log.
        order: order of the queue in both cases.
        change: the change, as on the command line.
        began: time of day at the queue's time 0, in seconds.
        settings: settings of the intervals.
        seed: seed of the resamples.
        threads: number of replays at once.

    Raises:
        UserError: the change is not one that can be replayed.
    """
    changed, block = changed_by(change, began)(period), blocks_of(period)
    with ThreadPoolExecutor(threads) as workers:
        before, after = (waits_of(one, order, workers) for one in (period, changed))
    blocks = int(block.max()) + 1
    drawn = draws(max(blocks, 2), len(period.submit), settings.resamples, settings.confidence, seed)
    return figures(after, before, period.run, block, drawn), blocks


def changed_by(change: str, began: float) -> Callable[[Period], Period]:
    """Return a change as a function of a period.

    Raises:
        UserError: it is not one that can be replayed.
    """
    what, _, amount = change.partition("=")
    if found := re.fullmatch(r"([+-]\d+(?:\.\d+)?)%", amount):
        factor = 1 + float(found[1]) / 100
        if factor <= 0:
            raise UserError(f"{change}: expected more than -100%")
        if what in BY_FACTOR:
            return lambda period: BY_FACTOR[what](period, factor)
    if what == "limit" and (found := re.fullmatch(r"(\d+(?:\.\d+)?)([hd])", amount)) and float(found[1]) > 0:
        longest = float(found[1]) * UNITS[found[2]]
        return lambda period: _capped(period, longest)
    if what == "night" and re.fullmatch(r"\d+", amount):
        return lambda period: _at_night(period, int(amount), began)
    raise UserError(f"{change}: {EXPECTED}")


def _larger(period: Period, factor: float) -> Period:
    """Return a period with more or fewer machines; a single machine becomes larger or smaller."""
    queue, count = period.queue, len(period.queue.capacity)
    if count == 1:
        places, capacity = np.zeros(1, dtype=int), np.floor(queue.capacity * factor).astype(np.int64)
    else:
        places = np.floor(np.arange(max(round(count * factor), 1)) * count / max(round(count * factor), 1)).astype(int)
        capacity = queue.capacity[places]
    members = queue.members[:, places]
    fits = (queue.demand[:, None] <= capacity).all(axis=2) & members[queue.partition]
    lost = int((fits.sum(axis=1) < queue.nodes).sum())
    if lost:
        raise UserError(f"nodes: {lost:,} jobs of the log would fit on no machine")
    out, (machine, kept) = queue.outages, np.nonzero(places[:, None] == queue.outages.machine)  # copies share outages
    outages = Outages(machine.copy(), out.begin[kept], out.end[kept], out.announced[kept])
    capacity, members = np.ascontiguousarray(capacity), members.copy()
    return period._replace(queue=queue._replace(capacity=capacity, members=members, outages=outages))


def _faster(period: Period, factor: float) -> Period:
    """Return a period in which jobs arrive faster; outages keep their lengths and begin among the same jobs."""
    out = period.queue.outages
    begin = out.begin / factor
    queue = period.queue._replace(outages=out._replace(begin=begin, end=begin + out.end - out.begin))
    return _submitted(period._replace(queue=queue), period.submit / factor)


def _capped(period: Period, longest: float) -> Period:
    """Return a period with a cap on limits; jobs that ran longer end at the cap."""
    queue = period.queue
    run, limit = np.minimum(queue.run, longest), np.minimum(queue.limit, longest)
    return period._replace(queue=queue._replace(run=run, limit=limit))


def _at_night(period: Period, user: int, began: float) -> Period:
    """Return a period in which a user submits in the evening what was submitted during the day."""
    first = period.queue.submit[0]
    clock = (period.submit + first + began) % DAY_S
    if user not in period.user:
        raise UserError(f"night={user}: no user {user} submitted in this period")
    day = (period.user == user) & (clock >= MORNING_S) & (clock < EVENING_S)
    return _submitted(period, np.where(day, period.submit + EVENING_S - clock, period.submit))


def _submitted(period: Period, submit: np.ndarray) -> Period:
    return period._replace(submit=submit, arrivals=np.argsort(submit, axis=1, kind="stable"))


BY_FACTOR = {"nodes": _larger, "load": _faster}
