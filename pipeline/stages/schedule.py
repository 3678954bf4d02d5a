"""`schedule`: run any policy over a user's own jobs and write when each starts."""

from pipeline.config import Params
from pipeline.problems import ScheduleRequest, problem_of


def run(params: Params, asked: ScheduleRequest) -> None:
    """Write the schedule of a job table or log."""
    problem_of(params, asked.scenario).use.schedule(params, asked)
