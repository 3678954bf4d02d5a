"""A pooled cluster at one moment: what a service is asked about it, and how a policy answers."""

from collections.abc import Mapping

from pipeline.config import Params
from pipeline.core import Json
from pipeline.live.deciding import Live
from pipeline.problems.pool.live.cluster import from_state
from pipeline.problems.pool.live.deciding import decider
from pipeline.problems.pool.live.state import PoolDecision, PoolState


def example(params: Params, scenario: str) -> Mapping[str, Json]:
    """Return a state of a scenario's cluster: one job runs, and two wait."""
    units = params.pool_scenario(scenario).resources
    half, least = {name: amount // 2 for name, amount in units.items()}, dict.fromkeys(units, 1)
    work = {name: 6 * half[name] + 2 for name in units}
    return {
        "version": 1,
        "now": 12,
        "waiting": [
            {"id": "17", "arrived": 9, "duration": 2, "demand": {**half}},
            {"id": "18", "arrived": 11, "duration": 1, "demand": {**least}},
        ],
        "running": [{"id": "11", "started": 10, "duration": 4, "demand": {**half}}],
        "so_far": {"jobs": 3, "duration": 7, "work": {**work}},
    }


LIVE: Live[PoolState, PoolDecision] = Live("decide", PoolState, PoolDecision, example, "fcfs", from_state, decider)
