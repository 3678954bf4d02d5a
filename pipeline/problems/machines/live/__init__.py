"""Many machines at one moment: what a service is asked about them, and how a policy answers."""

from collections.abc import Mapping

from pipeline.config import Params
from pipeline.core import THOUSANDTHS, Json
from pipeline.live.deciding import Live
from pipeline.problems.machines.live.cluster import from_state
from pipeline.problems.machines.live.deciding import decider
from pipeline.problems.machines.live.state import MachinesDecision, MachinesState
from pipeline.problems.machines.user_jobs import park_of


def example(params: Params, scenario: str) -> Mapping[str, Json]:
    """Return a state of a scenario's machines: one job runs, and two wait."""
    park = park_of(params, scenario)
    whole = {name: amount / THOUSANDTHS for name, amount in zip(park.resources, park.capacity[0], strict=True)}
    half, tenth = ({name: part * amount for name, amount in whole.items()} for part in (0.5, 0.1))
    unit = park.unit
    return {
        "version": 1,
        "now": 120.0 * unit,
        "waiting": [
            {"id": "17", "arrived": 90.0 * unit, "duration": 40.0 * unit, "demand": {**half}},
            {"id": "18", "arrived": 110.0 * unit, "duration": 5.0 * unit, "demand": {**tenth}},
        ],
        "running": [
            {"id": "11", "started": 60.0 * unit, "duration": 100.0 * unit, "demand": {**half}, "machines": ["0"]},
        ],
    }


LIVE: Live[MachinesState, MachinesDecision] = Live(
    "decide", MachinesState, MachinesDecision, example, "fcfs", from_state, decider, places=True
)
