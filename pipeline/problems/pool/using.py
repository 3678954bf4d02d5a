"""What people do with policies of a pooled cluster: schedule their own jobs, look at a schedule, ask why."""

from pipeline.problems.parts import Use
from pipeline.problems.pool.explaining.explain import explain
from pipeline.problems.pool.scheduling.schedule import schedule_jobs
from pipeline.problems.pool.showing.showing import draw

USE = Use(schedule_jobs, draw, explain)
