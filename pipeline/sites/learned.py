"""A learned order: evolved weights of what Slurm knows at submission, minus linear age, so that no job waits for ever.

The score is a sum of logarithms: of the requested limit, of processors, and of the user's last two run times. (The hour
of day was tried: on HPC2N it made the order worse in later weeks.) It begins as the training period's best order from
`FAMILIES`. Evolution then lowers `gain` there, with penalties for what `sites.NAME.most` would veto and for
distance from the beginning. Learning reads no other period: validation later decides whether the learned order is
better than the families, and the test period confirms the choice, as for any order.

The last run times come from a table that is written every night, as by `refresh_users` of the Slurm settings.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from pipeline.core.config import Vetoes
from pipeline.core.types import FloatArray
from pipeline.learning.evolution import Evolution
from pipeline.sites.figures import slowdown
from pipeline.sites.orders import FAMILIES, HOUR_S, deployed, order_of
from pipeline.sites.queue import Period
from pipeline.sites.replay import LINEAR, Order, replay
from pipeline.sites.slurm_settings import LONGEST_S, SHORTEST_S, SlurmOrder, named_order

TAU_S = 8 * HOUR_S  # of scores during the search; validation then chooses tau, as for the families
PLANNED = 10  # reservations during the search, which would take five times as long with Slurm's 500
LEAST_JOBS = 1_000  # of the training period
REPLAYS, GENERATIONS, POPULATION, SPREAD = 6, 24, 10, 0.2
MOST_JOBS = 60_000  # in all replays of a score; with a long warm-up, two must do
NEAR = 0.05  # cost of a distance of 1 from the beginning
FORBIDDEN = 2.0  # cost of growth beyond what is accepted
MARGIN = 0.02  # of `gain`, by which a learned order must beat the families on the validation period
LEAST_SPREAD = 0.1  # of logarithms: where limits hardly differ, scores keep their scale
WEIGHTS = ("limit", "cpus", "past")


class Outcome(NamedTuple):
    """Figures that an order is judged by on the training period, averaged over replays."""

    wait: float
    slowdown: float
    p99: float
    longest: float


def features(period: Period, past_s: float) -> FloatArray:
    """Return the terms [J, 3] of a period's scores, in the order of `WEIGHTS`; `past_s` is for users without a past."""
    queue = period.queue
    past = np.where(np.isnan(period.past), past_s, period.past)
    limit, past = (np.clip(time, SHORTEST_S, LONGEST_S) for time in (queue.limit, past))
    return np.stack([np.log(limit), np.log(queue.cpus), np.log(past)], axis=1)


def score_of(order: SlurmOrder, period: Period) -> Order:
    """Return a Slurm score as an order of a period's queue."""
    weights = np.array([getattr(order, name) for name in WEIGHTS])
    found = Order(LINEAR, -(features(period, order.past_s) @ weights), slope=1 / order.tau_s)
    return deployed(found, order, period.queue, period.slurm) if period.slurm else found


def learn(
    period: Period, today: str, most: Vetoes, seed: int, workers: ThreadPoolExecutor, advance: Callable[[int], object]
) -> SlurmOrder | None:
    """Return the score that evolves on the training period; None if the period is too short.

    It is scaled to the spread of ln(limit), so that a time of waiting weighs as much as in the order by limit.

    Args:
        period: training period.
        today: order of the site's queue.
        most: accepted growth of waits.
        seed: seed of the draws.
        workers: threads for replays.
        advance: called after each generation.
    """
    if len(period.run) < LEAST_JOBS:
        advance(GENERATIONS)
        return None
    period = period._replace(backfill=period.backfill._replace(reservations=min(period.backfill.reservations, PLANNED)))
    past_s, replays = float(np.median(period.run)), int(np.clip(MOST_JOBS // len(period.queue.run), 2, REPLAYS))

    def outcomes(orders: Sequence[Order]) -> list[Outcome]:
        each = workers.map(lambda pair: _outcome(period, *pair), [(one, e) for one in orders for e in range(replays)])
        return [Outcome(*row) for row in np.reshape(list(each), (len(orders), replays, -1)).mean(axis=1)]

    base, *families = outcomes([order_of(name, period.queue, period.slurm) for name in (today, *FAMILIES)])
    costs = [_cost(one, base, most) for one in families]
    feature, tau = list(FAMILIES.values())[int(np.argmin(costs))]
    begin = np.array([getattr(named_order(feature, tau), name) for name in WEIGHTS]) * TAU_S / tau
    search = Evolution(begin, SPREAD, POPULATION, seed + 1, averaged=0.5)
    for _ in range(GENERATIONS):
        asked = search.ask()
        found = outcomes([score_of(_order(weights, past_s), period) for weights in asked])
        away = NEAR * ((asked - begin) ** 2).sum(axis=1)
        search.tell(np.array([_cost(one, base, most) for one in found]) + away)
        advance(1)
    spread = np.log(period.queue.limit).std(), (features(period, past_s) @ search.mean).std()
    return _order(search.mean * (spread[0] / spread[1] if min(spread) > LEAST_SPREAD else 1.0), past_s)


def _order(weights: FloatArray, past_s: float) -> SlurmOrder:
    # Rounded, so that the settings are short and the replay uses exactly their values.
    limit, cpus, past = (round(float(weight), 3) for weight in weights)
    return SlurmOrder(TAU_S, limit, cpus, past, past_s=round(past_s))


def _outcome(period: Period, order: Order, e: int) -> Outcome:
    start = replay(period.queue, order, period.backfill, period.submit[e], period.arrivals[e])
    wait = (start - period.submit[e])[period.first :]
    p99 = np.quantile(wait, 0.99, method="inverted_cdf")
    return Outcome(float(wait.mean()), float(slowdown(wait, period.run).mean()), float(p99), float(wait.max()))


def _cost(one: Outcome, base: Outcome, most: Vetoes) -> float:
    """Return the logarithm of the gain, plus penalties."""
    ratio = [np.log((mine + 1.0) / (other + 1.0)) for mine, other in zip(one, base, strict=True)]
    over = [max(ratio[2] - np.log1p(most.p99), 0.0), max(ratio[3] - np.log1p(most.longest), 0.0)]
    return float((ratio[0] + ratio[1]) / 2 + FORBIDDEN * sum(over))
