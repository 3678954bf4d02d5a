"""Plays of the same jobs in the simulator of many machines and in the replay of site advice, with what Slurm knows.

`easy` and `easy_dynamic` are dispatch rules of the simulator. `planned` is the replay, which gives every waiting job a
reservation, as Slurm's backfill does by default.

`exact` is the unchanged simulator: a job arrives when it is submitted, holds its processors for as long as it sleeps,
and starts as soon as it may. `drawn` adds Slurm's clock: a processor that becomes free is used only when Slurm next
looks at its queue. That delay, part of a cycle, is unknown: it is drawn, and there are several plays. The replay then
backfills as often as Slurm, by its `bf_interval`.
"""

from math import inf

import numpy as np

from benchmarks.fidelity.jobs import ORDERS, USERS, ShortJobs, are_short
from benchmarks.slurm.configuration import Cluster
from pipeline.core.config import Site
from pipeline.core.types import FloatArray, keys
from pipeline.problems.machines.env.evaluation.play import Game, played
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.progress import no_progress
from pipeline.sites import queue, slurm_config
from pipeline.sites.quotas import quotas_of
from pipeline.sites.replay import LINEAR, Backfill, Order, Queue, replay
from pipeline.sites.slurm_config import SlurmConfig

CYCLE_S = 1.0  # slurmctld looks at its queue at most once a second
LAUNCH_S = 0.1  # time for which a job holds its processors beyond its sleep: mean of 1,200 jobs of other plays
# The same with a fast clock, in real time: mean of 480 jobs of other plays (seed 7); and Slurm's batch_sched_delay.
FAST_LAUNCH_S, FAST_CYCLE_S = 0.028, 3.0
HALF_LIFE_S, CALC_S = 3_600.0, 60.0  # PriorityDecayHalfLife, PriorityCalcPeriod
PLANNED = "planned"
DISPATCHES = ("easy", "easy_dynamic", PLANNED)
CLOCKS = {"exact": 1, "drawn": 20}  # number of plays with each
MINUTE_S, THOUSANDTHS = 60.0, 1000


def starts(jobs: ShortJobs, order: str, dispatch: str, clock: str, cluster: Cluster, play: int) -> FloatArray:
    """Return when the simulator starts each job in one of its plays, in seconds from the first arrival [J]."""
    if dispatch == PLANNED:
        return _planned(jobs, order, clock, cluster, play)
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
    game = Game([_jobs(jobs, clock, cluster, play)], machines, keys(0, nothing, nothing))
    return played(game, [HEURISTICS[order]], no_progress)[0].start


def _planned(short_jobs: ShortJobs, order: str, clock: str, cluster: Cluster, play: int) -> FloatArray:
    """Return the starts of the replay; its passes are as far apart as Slurm's, from a random phase."""
    jobs, nodes, short = _jobs(short_jobs, clock, cluster, play), cluster.nodes, are_short(short_jobs, cluster)
    backfill = backfill_of(cluster) if clock == "drawn" else backfill_of(cluster)._replace(interval=0.0)
    phase = np.random.default_rng([play, 1]).uniform(0.0, CALC_S if cluster.fair_share else backfill.interval)
    none = np.zeros(len(short), dtype=np.int64)
    waiting = Queue(
        submit=jobs.arrival + phase,
        run=jobs.duration,
        limit=jobs.estimate,
        nodes=np.array(jobs.nodes),
        demand=jobs.demand,
        cpus=jobs.nodes * jobs.demand[:, 0] / THOUSANDTHS,
        user=np.array(short_jobs.user),
        qos=np.zeros(len(short)),
        partition=short.astype(np.int64),
        capacity=np.full((nodes, 1), cluster.cpus * THOUSANDTHS),
        members=np.array([np.ones(nodes, dtype=bool), np.arange(nodes) >= nodes - cluster.short]),
        tier=np.array([1, 2]),
        factor=np.ones(2),
        **quotas_of((), none, none, [("", "")])._asdict(),
        whole=True,
    )
    ranks = Order(
        LINEAR, -ORDERS[order](short_jobs).astype(float), fair_share=float(cluster.fair_share), half_life=HALF_LIFE_S,
        fair_tree=cluster.fair_share > 0, users=len(USERS) + 1, period=CALC_S,
    )  # fmt: skip
    return replay(waiting, ranks, backfill, waiting.submit, np.argsort(waiting.submit, kind="stable")) - phase


def backfill_of(cluster: Cluster) -> Backfill:
    """Return the backfill rules in a cluster's slurm.conf; an interval of 0 means a pass at every change."""
    parameters = dict(word.partition("=")[::2] for word in cluster.parameters.split(","))
    found = queue.backfill_of(Site(backfill=slurm_config.backfill_of(SlurmConfig({}, scheduler_parameters=parameters))))
    return found._replace(interval=0.0) if parameters.get("bf_interval") == "0" else found


def _jobs(jobs: ShortJobs, clock: str, cluster: Cluster, play: int) -> Jobs:
    run = jobs.run_s.astype(float)
    if clock == "drawn":
        fast = cluster.speed > 1
        launch, cycle = (FAST_LAUNCH_S * cluster.speed, FAST_CYCLE_S) if fast else (LAUNCH_S, CYCLE_S)
        run += launch + np.random.default_rng(play).uniform(0.0, cycle, len(run))
    return Jobs(
        arrival=jobs.arrival_s,
        duration=run,
        estimate=MINUTE_S * jobs.limit_min,
        demand=jobs.cpus[:, None] * THOUSANDTHS,
        nodes=jobs.nodes,
        kinds=np.ones(len(run), dtype=np.uint64),
    )
