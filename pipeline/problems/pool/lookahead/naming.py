"""`plan_sjf` and the like: a heuristic by name, improved by looking ahead in a scenario."""

from pipeline import storage
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.errors import UserError
from pipeline.problems.pool.lookahead.futures import Outlook, outlook
from pipeline.problems.pool.lookahead.planner import Planner, Reach
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.workload.source import source
from pipeline.simulation.choosing import compiled_rule_of

PREFIX = "plan_"
FIRST = 1_000_000_000  # number of the first fresh jobset that futures are; no training draws so many
WHOLE = Reach(ahead=1_000_000)  # where arrivals end: all is played to its end
PIECE = Reach(futures=32, job=4.0, work=2.5)  # of streams; what is left is valued as DeepRM3's windows value it


def planned(params: Params, scenario: str, cluster: Cluster, base: Policy, name: str) -> Policy:
    """Return a heuristic that looks ahead.

    Args:
        params: of the scenario; their seed draws the futures.
        scenario: whose training jobsets say what may come.
        cluster: that jobs are scheduled on. Where policies are told when arrivals end, futures are whole jobsets,
            played to their end; else pieces of streams.
        base: the heuristic.
        name: its name, for people.

    Raises:
        UserError: it has no compiled rule, or the scenario's log cannot be read.
    """
    rule = compiled_rule_of(base)
    if rule is None:
        raise UserError(f"policy '{PREFIX}{name}': expected a heuristic that is compiled behind {PREFIX}, got '{name}'")
    reach = PIECE if cluster.arrivals_end is None else WHOLE
    return Planner(base, rule, cluster, _outlook(params, scenario, cluster.arrivals_end, reach), reach)


def _outlook(params: Params, scenario: str, end: int | None, reach: Reach) -> Outlook:
    origin, numbers = source(params, scenario, storage.LOG.resolve()), range(FIRST, FIRST + reach.futures)
    loads = origin.loads(params.pool_scenario(scenario).loads)
    if end is None:
        pieces = [[origin.piece("fresh", load, number, reach.ahead) for number in numbers] for load in loads]
        return outlook(pieces, from_now=True, span=reach.ahead)
    return outlook([[origin.fresh(load, number) for number in numbers] for load in loads], from_now=False, span=end)
