"""Groups that share a cluster, at one moment: what a service is asked about them, and how a controller answers."""

from collections.abc import Mapping

from pipeline.config import Params
from pipeline.core import Json
from pipeline.live.deciding import Live
from pipeline.problems.groups.live.cluster import from_state
from pipeline.problems.groups.live.deciding import decider
from pipeline.problems.groups.live.state import SharesDecision, SharesState


def example(params: Params, scenario: str) -> Mapping[str, Json]:
    """Return a state of a scenario's cluster: one job runs, and one waits that arrived since the last answer."""
    row = params.groups_scenario(scenario)
    least: dict[str, Json] = dict.fromkeys(row.resources, 1)
    queue = row.queues[0]
    new: dict[str, Json] = {"group": row.groups - 1, "queue": queue, "duration": 0.5 * row.interval, "demand": least}
    return {
        "version": 1,
        "now": 12.0 * row.interval,
        "waiting": [{**new, "arrived": 11.5 * row.interval}],
        "running": [{"group": 0, "started": 11.0 * row.interval, "duration": 2.0 * row.interval, "demand": least}],
        "arrived": [new],
    }


LIVE: Live[SharesState, SharesDecision] = Live(
    "shares", SharesState, SharesDecision, example, "equal", from_state, decider
)
