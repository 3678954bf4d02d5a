"""What people do with policies of many machines: schedule their own jobs, look at a schedule, ask why."""

from pipeline.problems.machines.explaining.explain import explain
from pipeline.problems.machines.scheduling import schedule
from pipeline.problems.machines.showing.showing import draw
from pipeline.problems.parts import Use

USE = Use(schedule, draw, explain)
