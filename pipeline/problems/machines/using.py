"""What people do with policies of many machines: schedule their own jobs, look at a schedule, ask why."""

from collections.abc import Sequence

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.problems import ExplainRequest, Picture, ShowRequest, Use
from pipeline.problems.machines.scheduling import schedule


def draw(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Picture:
    """Return the picture of a jobset under some policies."""
    raise UserError(f"scenario '{asked.scenario}': not yet")


def explain(params: Params, asked: ExplainRequest) -> None:
    """Say what an agent does differently."""
    raise UserError(f"agent '{asked.agent}': not yet")


USE = Use(schedule, draw, explain)
