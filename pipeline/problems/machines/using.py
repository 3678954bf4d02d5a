"""What people do with policies of many machines: schedule their own jobs, look at a schedule, ask why."""

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.problems import ExplainRequest, Use
from pipeline.problems.machines.scheduling import schedule
from pipeline.problems.machines.showing.showing import draw


def explain(params: Params, asked: ExplainRequest) -> None:
    """Say what an agent does differently."""
    raise UserError(f"agent '{asked.agent}': not yet")


USE = Use(schedule, draw, explain)
