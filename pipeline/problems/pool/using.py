"""What people do with policies of a pooled cluster: schedule their own jobs, look at a schedule, ask why."""

from pipeline.problems import Use
from pipeline.problems.pool.explaining.command import explain
from pipeline.problems.pool.scheduling.command import schedule_jobs
from pipeline.problems.pool.showing.picture import draw

USE = Use(schedule_jobs, draw, explain)
