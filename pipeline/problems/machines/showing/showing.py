"""Draw one jobset under some policies: a test jobset of a scenario, or one of a user's own."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.config import MachinePark, MachinesScenario, Params
from pipeline.core import keys
from pipeline.errors import UserError
from pipeline.problems.machines.nouns import Jobs, Machines
from pipeline.problems.machines.policies import policy_for
from pipeline.problems.machines.showing.drawing import side_by_side
from pipeline.problems.machines.showing.scene import Scene, described, window
from pipeline.problems.machines.showing.watching import watch
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.user_jobs import park_of, read_user_jobs
from pipeline.problems.machines.workload.park import machines_of
from pipeline.problems.one_jobset import place_of, test_jobset
from pipeline.problems.parts import Picture, ShowRequest, must_have_no_end


class _Chosen(NamedTuple):
    """A jobset, and where it is scheduled."""

    title: str
    jobs: Jobs
    names: list[str]  # [J]  of jobs
    number: int  # of its random stream
    machines: Machines


def draw(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Picture:
    """Return the picture of a jobset under some policies."""
    scenario = params.machines_scenario(asked.scenario)
    must_have_no_end(asked)
    own = asked.jobs is None
    park = read_park(storage.jobsets_folder(asked.scenario)) if own else park_of(params, asked.scenario)
    known = [policy_for(params, name, scenario, park, asked.scenario) for name in policies]
    chosen = _test_jobset(asked, scenario, park) if own else _user_jobset(asked, scenario, park)
    key = keys(params.seed, np.array([chosen.number]), np.array([0]))
    traces = [
        watch(name, policy, chosen.jobs, chosen.machines, key)
        for name, policy in zip(names or policies, known, strict=True)
    ]
    shown = window(chosen.jobs, traces, asked.begin, asked.end)
    scene = Scene(chosen.title, chosen.jobs, chosen.names, chosen.machines, park.resources)
    means = [float(trace.slowdown.mean()) for trace in traces]
    return Picture(png(side_by_side(scene, traces, shown)), chosen.title, [described(trace) for trace in traces], means)


def _test_jobset(asked: ShowRequest, scenario: MachinesScenario, park: MachinePark) -> _Chosen:
    """Return one of a scenario's test jobsets, with its limit and the random stream that it has in the tables."""
    jobsets = read_jobsets(storage.jobsets_folder(asked.scenario), "test", park)
    title, jobs, number = test_jobset(jobsets, asked)
    names = [str(job) for job in range(len(jobs.arrival))]
    return _Chosen(title, jobs, names, number, machines_of(scenario, park))


def _user_jobset(asked: ShowRequest, scenario: MachinesScenario, park: MachinePark) -> _Chosen:
    """Return one jobset of a job table or log."""
    if asked.load is not None:
        raise UserError("--load is one of the scenario's own jobsets; a job table has none")
    if asked.jobs is None:
        raise TypeError("no job table is asked for")
    table = read_user_jobs(asked.jobs, scenario, park)
    known = table.jobsets
    number = place_of(known, asked.jobs, asked.jobset)
    name = known[number]
    rows = table.rows(number)
    title = f"{asked.jobs.name}, jobset {name}, on the machines of scenario {asked.scenario}: {len(rows)} jobs"
    names = [str(job) for job in table.ids["job"].iloc[rows]]
    return _Chosen(title, table.taken(rows), names, number, machines_of(scenario, park)._replace(time_limit=inf))
