"""The same jobs in the simulator of many machines and in the replay of site advice, told what Slurm was told.

`easy` and `easy_dynamic` are dispatch rules of the simulator. `planned` is the replay, which gives every waiting job a
reservation, as Slurm's backfill does by default.

`exact` is the simulator as it stands: a job arrives when it is submitted, holds its processors for as long as it
sleeps, and starts the moment it may. `drawn` tells it of Slurm's clock: a processor that becomes free is given on only
when Slurm looks again, a part of a cycle later that nobody knows, so it is drawn, and the play is one of several.
"""

from math import inf

import numpy as np

from benchmarks.fidelity.jobs import ORDERS, ShortJobs
from benchmarks.slurm.configuration import Cluster
from pipeline.core.config import Site
from pipeline.core.types import FloatArray, IntArray, keys
from pipeline.problems.machines.env.evaluation.play import Game, played
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.progress import no_progress
from pipeline.sites.queue import backfill_of
from pipeline.sites.replay import LINEAR, Order, Queue, replay

CYCLE_S = 1.0  # slurmctld looks at its queue once a second at most
LAUNCH_S = 0.1  # that a job holds its processors longer than it sleeps, in the mean of 1,200 jobs of other plays
PLANNED = "planned"
DISPATCHES = ("easy", "easy_dynamic", PLANNED)
CLOCKS = {"exact": 1, "drawn": 20}  # and how many plays of each
MINUTE_S, THOUSANDTHS = 60.0, 1000


def starts(jobs: ShortJobs, order: str, dispatch: str, clock: str, cluster: Cluster, play: int) -> FloatArray:
    """Return when the simulator starts each job in one of its plays, in seconds from the first arrival [J]."""
    if dispatch == PLANNED:
        return _planned(_jobs(jobs, clock, play), ORDERS[order](jobs), cluster)
    nodes = cluster.nodes
    machines = Machines(
        capacity=np.full((nodes, 1), cluster.cpus * THOUSANDTHS),
        kind=np.zeros(nodes, dtype=np.int64),
        slots=len(jobs.run_s),
        dispatch=DISPATCH.index(dispatch),
        pause=inf,
        time_limit=inf,
    )
    nothing = np.zeros(1, dtype=np.int64)
    game = Game([_jobs(jobs, clock, play)], machines, keys(0, nothing, nothing))
    return played(game, [HEURISTICS[order]], no_progress)[0].start


def _planned(jobs: Jobs, order: IntArray, cluster: Cluster) -> FloatArray:
    count, nodes = len(jobs.arrival), cluster.nodes
    same = np.zeros(count, dtype=np.int64)
    queue = Queue(
        submit=jobs.arrival,
        run=jobs.duration,
        limit=jobs.estimate,
        nodes=jobs.nodes,
        demand=jobs.demand,
        cpus=jobs.nodes * jobs.demand[:, 0] / THOUSANDTHS,
        user=same,
        partition=same,
        capacity=np.full((nodes, 1), cluster.cpus * THOUSANDTHS),
        members=np.ones((1, nodes), dtype=bool),
        tier=np.zeros(1, dtype=np.int64),
        factor=np.ones(1),
    )
    ranks = Order(LINEAR, -order.astype(float))
    return replay(queue, ranks, backfill_of(Site()), queue.submit, np.argsort(queue.submit, kind="stable"))


def _jobs(jobs: ShortJobs, clock: str, play: int) -> Jobs:
    run = jobs.run_s.astype(float)
    if clock == "drawn":
        run += LAUNCH_S + np.random.default_rng(play).uniform(0.0, CYCLE_S, len(run))
    return Jobs(
        arrival=jobs.arrival_s,
        duration=run,
        estimate=MINUTE_S * jobs.limit_min,
        demand=jobs.cpus[:, None] * THOUSANDTHS,
        nodes=jobs.nodes,
        kinds=np.ones(len(run), dtype=np.uint64),
    )
