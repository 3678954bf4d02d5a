"""What people do with policies of a shared cluster: schedule their own jobs, look at a schedule, ask why."""

from pipeline.problems.groups.explaining.explain import explain
from pipeline.problems.groups.showing.showing import draw
from pipeline.problems.groups.user_schedule import schedule_jobs
from pipeline.problems.parts import Use

USE = Use(schedule_jobs, draw, explain)
