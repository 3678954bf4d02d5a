"""Run any policy over a user's own jobs on many machines, and write when and where each starts.

No episode is cut: every job is finished in the end. All else is as where the scenario's policies are scored.
"""

from math import inf

import numpy as np
import pandas as pd

from pipeline import storage
from pipeline.config import MachinesScenario, Params
from pipeline.core import Policy, keys
from pipeline.errors import UserError
from pipeline.problems.machines.evaluation.metrics import outcome
from pipeline.problems.machines.evaluation.play import Game
from pipeline.problems.machines.lookahead.planner import Planner
from pipeline.problems.machines.lookahead.playing import play_on
from pipeline.problems.machines.nouns import Machines, end_to_end
from pipeline.problems.machines.policies import policy_for
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.user_jobs import UserJobs, park_of, read_user_jobs
from pipeline.problems.machines.user_tables import SCHEDULE
from pipeline.problems.machines.workload.park import machines_of
from pipeline.problems.parts import ScheduleRequest, must_have_no_end
from pipeline.progress import ProgressCallback, progress, say
from pipeline.storage.files import check_out

DECISIONS_AT_ONCE = 10_000  # of compiled play between two looks at it
DIGITS = 12  # seconds of some years, to a thousandth


def schedule(params: Params, asked: ScheduleRequest) -> None:
    """Write the schedule of a job table or log."""
    scenario = _asked_for(params.machines_scenario(asked.scenario), asked)
    check_out(asked.out, inputs=[asked.jobs])
    park = park_of(params, asked.scenario)
    chosen = policy_for(params, asked.policy, scenario, park, asked.scenario)
    jobs = read_user_jobs(asked.jobs, scenario, park)
    with progress(f"schedule by {asked.policy}, percent", 100, brief=True) as advance:
        found = scheduled(jobs, machines_of(scenario, park)._replace(time_limit=inf), chosen, params.seed, advance)
    storage.write_table(asked.out, found, SCHEDULE, DIGITS)
    say(
        f"{asked.out}: {len(found)} jobs, mean bounded slowdown {found['bounded_slowdown'].mean():.4g}, "
        f"mean wait {found['wait'].mean():.4g} under {asked.policy}"
    )


def _asked_for(scenario: MachinesScenario, asked: ScheduleRequest) -> MachinesScenario:
    """Return the scenario with other slots, if they are asked for.

    Raises:
        UserError: what is asked for has no meaning on many machines.
    """
    must_have_no_end(asked)
    hindsight = "all jobs known beforehand, schedules are made for pooled clusters only"
    for option, given, why in (
        ("--capacity", asked.capacity, f"scenario '{asked.scenario}' has many machines, each with amounts of its own"),
        ("--horizon", asked.horizon, f"scenario '{asked.scenario}' goes in real time and has no horizon"),
        ("--samples", asked.samples or None, hindsight),
        ("--search", asked.tries or None, hindsight),
    ):
        if given is not None:
            raise UserError(f"{option}: not for this problem: {why}")
    if asked.slots is None:
        return scenario
    if asked.slots < 1:
        raise UserError(f"--slots: expected at least 1, got {asked.slots}")
    return scenario.model_copy(update={"slots": asked.slots})


def scheduled(
    jobs: UserJobs, machines: Machines, policy: Policy | Planner, seed: int, on_progress: ProgressCallback
) -> pd.DataFrame:
    """Return SCHEDULE, in the order in which the jobs were read; each jobset has the machines to itself."""
    rows = [jobs.rows(number) for number in range(len(jobs.jobsets))]
    episodes = [jobs.taken(some) for some in rows]
    key = keys(seed, np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64))
    abreast, parts, over = Game(episodes, machines, key).abreast, [], 0
    for first in range(0, len(rows), abreast):
        some = slice(first, first + abreast)
        batch = end_to_end(episodes[some])
        simulator = Simulator(batch, machines, np.zeros(len(batch.arrival)))  # nobody learns: presence costs nothing
        for _ in play_on(simulator, policy, key[some], DECISIONS_AT_ONCE):
            started = over + simulator.placed_jobs
            on_progress(100 * started / len(jobs.number), f"{started:,} jobs")
        over, placed = over + len(batch.arrival), simulator.placed()
        found = outcome(batch, placed, machines)
        columns = {"start": placed.start, "machine": placed.machine} | {
            name: getattr(found, name) for name in ("finish", "wait", "slowdown", "bounded_slowdown")
        }
        parts.append(pd.DataFrame(columns, index=np.concatenate(rows[some])))
    told = pd.concat(parts).sort_index().assign(nodes=jobs.jobs.nodes)
    return jobs.ids.join(told)[list(SCHEDULE.columns)]
