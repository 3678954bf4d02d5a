"""Coverage of the intervals of site advice, and how often its estimate of the days still needed proves right.

    python -m benchmarks.advice_coverage LOG.swf.gz > coverage.csv

Weeks drawn from a real log, with replacement, form a long log. Its replays under two orders give the true change, that
over all of it. Stretches of consecutive blocks are then judged as `advise` judges a test period.
"""

import csv
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.core.config import MachinesScenario, Site, load_params
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import DAY_S
from pipeline.core.schemas.tables import BLOCK_DAYS
from pipeline.problems.machines.env.workload.windows import fitted
from pipeline.sites import figures as measures
from pipeline.sites.advice import more_days, waits_of
from pipeline.sites.figures import GAIN, Change, blocks_of, draws, figures
from pipeline.sites.queue import MOVED_S, Period, backfill_of, part_of, queue_of
from pipeline.sites.replay import Queue
from pipeline.sites.rows import site_rows

WEEK_S = 7 * DAY_S
WEEKS, STRETCHES, REPLAYS, RESAMPLES, SEED = 300, 300, 6, 1_000, 1
ORDERS = ("fcfs", "limit_8h")
BLOCKS = (4, 6, 10, 17, 34, 68, 136)


class Judged(NamedTuple):
    """Intervals of stretches of one length."""

    blocks: int
    wait: float  # share of the intervals that cover the truth
    slowdown: float
    gain: float
    width: float  # mean width of the interval of `gain`
    decided: float  # share of the stretches with an interval below 0
    estimated: int  # undecided stretches for which a number of days was estimated
    came_true: float  # share of these that are decided after that many more days


def long_queue(log: Path) -> Queue:
    """Return a queue of weeks drawn from a log."""
    trace, params = read(log), load_params()
    rows = site_rows("mine", log, "swf", trace, [], params)
    scenario, site = MachinesScenario.model_validate(rows.scenario), Site.model_validate(rows.site)
    queue = queue_of(fitted(trace, scenario.workload, scenario), site)  # type: ignore[arg-type]
    week = (queue.submit // WEEK_S).astype(int)
    rng = np.random.default_rng(SEED)
    whole = rng.integers(0, week.max(), WEEKS)  # the last week is incomplete
    places = [np.flatnonzero(week == one) for one in whole]
    submit = [
        queue.submit[at] - one * WEEK_S + k * WEEK_S for k, (at, one) in enumerate(zip(places, whole, strict=True))
    ]
    every = np.concatenate(places)
    return part_of(queue, every)._replace(submit=np.concatenate(submit))


def period_of(queue: Queue) -> Period:
    """Return a period of all jobs of a queue, with moved submissions."""
    rng = np.random.default_rng(SEED + 1)
    submit = queue.submit + rng.uniform(-MOVED_S, MOVED_S, (REPLAYS, len(queue.submit)))
    unknown = np.full(len(queue.submit), np.nan)
    arrivals, backfill = np.argsort(submit, axis=1, kind="stable"), backfill_of(Site())
    return Period(queue, 0, submit, arrivals, unknown, queue.user, unknown, backfill=backfill)


def judged(period: Period) -> Iterator[Judged]:
    """Yield a row for each number of blocks."""
    with ThreadPoolExecutor(2) as workers:
        today, wait = (waits_of(period, name, workers) for name in ORDERS)
    block = blocks_of(period)

    def found(first: int, blocks: int, resamples: int = RESAMPLES) -> dict[str, Change]:
        some = (block >= first) & (block < first + blocks)
        drawn = draws(blocks, REPLAYS, resamples, 0.95, SEED)
        return figures(wait[:, some], today[:, some], period.run[some], block[some] - first, drawn)

    last = int(block.max()) + 1
    truth = found(0, last, 2)
    rng = np.random.default_rng(SEED + 2)
    for blocks in BLOCKS:
        starts = rng.integers(0, last - blocks, STRETCHES)
        rows = [found(int(first), blocks) for first in starts]
        covers = {
            name: np.mean([row[name].low <= truth[name].change <= row[name].high for row in rows])
            for name in ("wait", "slowdown", "gain")
        }
        gains = [row["gain"] for row in rows]
        more = [(int(at), more_days(one, blocks)) for at, one in zip(starts, gains, strict=True) if one.high >= 0]
        longer = [(at, blocks + days // BLOCK_DAYS) for at, days in more if days is not None]
        longer = [(at, size) for at, size in longer if at + size <= last]
        true = [found(at, size)["gain"].high < 0 for at, size in longer]
        yield Judged(
            blocks=blocks,
            wait=float(covers["wait"]),
            slowdown=float(covers["slowdown"]),
            gain=float(covers["gain"]),
            width=float(np.mean([one.high - one.low for one in gains])),
            decided=float(np.mean([one.high < 0 for one in gains])),
            estimated=len(longer),
            came_true=float(np.mean(true)) if true else float("nan"),
        )


def main() -> None:
    """Write the table."""
    measures.MEASURES = GAIN  # type: ignore[assignment]  # the others take long, and are not reported here
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(Judged._fields)
    for row in judged(period_of(long_queue(Path(sys.argv[1])))):
        table.writerow([f"{value:.3g}" if isinstance(value, float) else value for value in row])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
