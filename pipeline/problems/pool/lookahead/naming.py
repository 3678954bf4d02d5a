"""`plan_sjf`, `plan_models/deeprm3/policy`: a policy by name, improved by looking ahead in a scenario."""

from dataclasses import replace

from pipeline import storage
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.problems.pool.lookahead.bases import Base, plain_base
from pipeline.problems.pool.lookahead.futures import Outlook, outlook
from pipeline.problems.pool.lookahead.planner import Planner, Reach
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.workload.source import source

PREFIX = "plan_"
FIRST = 1_000_000_000  # number of the first fresh jobset that futures are; no training draws so many
WHOLE = Reach(ahead=1_000_000)  # where arrivals end: all is played to its end
PIECE = Reach(futures=32, job=4.0, work=2.5)  # of streams; what is left is valued as DeepRM3's windows value it
# Networks: a decision of theirs costs a hundred times a rule's, and they are right more often than 16 futures are.
LEARNED = Reach(candidates=4, futures=16, decisions=4_000, sure=1.0)


def planned(
    params: Params, scenario: str, cluster: Cluster, base: Policy | Base, reach: Reach | None = None
) -> Planner:
    """Return a policy that looks ahead.

    Args:
        params: of the scenario; their seed draws the futures.
        scenario: whose training jobsets say what may come.
        cluster: that jobs are scheduled on. Where policies are told when arrivals end, futures are whole jobsets,
            played to their end; else pieces of streams.
        base: the policy.
        reach: how much is tried; None: as much as fits the kind of base and scenario.

    Raises:
        UserError: the scenario's log cannot be read.
    """
    known = base if isinstance(base, Base) else plain_base(base)
    reach = reach or reach_of(known, cluster)
    seen = _outlook(params, scenario, cluster.arrivals_end, reach)
    return Planner(known.policy, known.player, cluster, seen, reach, known.liking)


def reach_of(base: Base, cluster: Cluster) -> Reach:
    """Return how much is tried for one decision, where nothing is said."""
    usual = PIECE if cluster.arrivals_end is None else WHOLE
    return replace(LEARNED, ahead=usual.ahead, job=usual.job, work=usual.work) if base.learned else usual


def _outlook(params: Params, scenario: str, end: int | None, reach: Reach) -> Outlook:
    origin, numbers = source(params, scenario, storage.LOG.resolve()), range(FIRST, FIRST + reach.futures)
    loads = origin.loads(params.pool_scenario(scenario).loads)
    if end is None:
        pieces = [[origin.piece("fresh", load, number, reach.ahead) for number in numbers] for load in loads]
        return outlook(pieces, from_now=True, span=reach.ahead)
    return outlook([[origin.fresh(load, number) for number in numbers] for load in loads], from_now=False, span=end)
