"""Run any policy over a user's own jobs on many machines, and write when and where each starts.

No episode is cut: every job is finished in the end. All else is as where the scenario's policies are scored.
"""

from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesCard, MachinesScenario, Params
from pipeline.core.types import FloatArray, IntArray, KeyArray, Policy
from pipeline.errors import UserError
from pipeline.external.loading import is_external
from pipeline.interactive.explaining.tree import TREE, tree_by_name
from pipeline.interactive.machines.user_jobs import MEASURED, SCHEDULE, job_columns, park_of
from pipeline.interactive.scheduling.schedule import Ready, Scheduled, ScheduleRequest, Scheduling, played
from pipeline.interactive.scheduling.user_jobs import Part, UserJobs
from pipeline.lookahead.planner import PREFIX
from pipeline.problems.machines.env.evaluation.metrics import outcome
from pipeline.problems.machines.env.evaluation.play import Game, play_on
from pipeline.problems.machines.env.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.workload.park import machines_of
from pipeline.problems.machines.lookahead.plans import must_fit, network_base, past_of, planned
from pipeline.problems.machines.policies import policy_by_name
from pipeline.progress import ProgressCallback, progress
from pipeline.simulation.rollout import Insider

DECISIONS_AT_ONCE = 10_000  # of compiled play between two progress reports
DIGITS = 12  # seconds of some years, to a thousandth


def ready(params: Params, asked: ScheduleRequest) -> Ready[Jobs]:
    """Return a policy, ready for a user's jobs on the scenario's machines, possibly with another number of slots.

    Raises:
        UserError: the number of slots is below 1.
    """
    scenario = params.machines_scenario(asked.scenario)
    if asked.slots is not None:
        if asked.slots < 1:
            raise UserError(f"--slots: expected at least 1, got {asked.slots}")
        scenario = scenario.model_copy(update={"slots": asked.slots})
    park = park_of(params, asked.scenario)
    chosen = any_policy(params, asked.policy, scenario, park, asked.scenario)
    machines = machines_of(scenario, park)._replace(time_limit=inf, measured=None)

    def run(mine: UserJobs[Jobs]) -> Scheduled:
        with progress(f"schedule by {asked.policy}, percent", 100, brief=True) as advance:
            found = scheduled(mine, machines, chosen, params.seed, advance)
        means = f"mean bounded slowdown {found['bounded_slowdown'].mean():.4g}, mean wait {found['wait'].mean():.4g}"
        return Scheduled(
            lambda some: {name: column[some] for name, column in found.items()}, f", {means} under {asked.policy}"
        )

    return Ready(job_columns(scenario, park), run)


def any_policy(params: Params, name: str, scenario: MachinesScenario, park: MachinePark, of: str) -> Policy | Insider:
    """Return what `policy_by_name` does, or an agent's tree; with the prefix `plan_`, a policy that looks ahead."""
    if name.endswith(TREE) and not Path(name).is_dir():
        return tree_by_name(name)
    if not name.startswith(PREFIX) or Path(name).is_dir() or is_external(name):
        return policy_by_name(name, scenario, park, of)
    base = name.removeprefix(PREFIX)
    if not Path(base).is_dir():
        return planned(policy_by_name(base, scenario, park, of), base, past_of(params, of))
    model = storage.read_model(Path(base), MachinesCard)
    must_fit(base, model.card, scenario, park)
    return planned(network_base(model.card, model.weights), base, past_of(params, of))


def scheduled(
    mine: UserJobs[Jobs], machines: Machines, policy: Policy | Insider, seed: int, on_progress: ProgressCallback
) -> dict[str, FloatArray | IntArray]:
    """Return the columns of SCHEDULE, in the order of the file; each jobset has the machines to itself."""
    columns: dict[str, FloatArray | IntArray] = {name: np.empty(len(mine.number)) for name in MEASURED}
    columns |= {"machine": np.empty(len(mine.number), dtype=np.int64), "nodes": mine.jobs.nodes}

    def begin(part: Part[Jobs], key: KeyArray) -> tuple[Simulator, Iterator[int], Callable[[], int]]:
        batch = end_to_end([part.jobs])._replace(first=part.first)
        simulator = Simulator(batch, machines, np.zeros(len(batch.arrival)))  # rewards are not used
        return simulator, play_on(simulator, policy, key, DECISIONS_AT_ONCE), lambda: simulator.started

    longest = mine.taken(np.flatnonzero(mine.number == np.bincount(mine.number).argmax()))
    most = Game([longest], machines, np.zeros(1, dtype=np.uint64)).abreast
    for part, simulator in played(mine, most, begin, seed, on_progress):
        placed, at = simulator.placed(), part.rows
        found = outcome(simulator.jobs, placed)
        columns["start"][at], columns["machine"][at] = placed.start, placed.machine
        for name in MEASURED[1:]:
            columns[name][at] = getattr(found, name)
    return columns


POOL_ONLY = dict.fromkeys(("arrivals-end", "load"), "only policies of pooled clusters use it")
HINDSIGHT = "all jobs known beforehand, schedules are made for pooled clusters only"
REFUSED = {
    "capacity": "it has many machines, each with amounts of its own",
    "horizon": "it runs in real time and has no horizon",
    **dict.fromkeys(("samples", "search"), HINDSIGHT),
    **POOL_ONLY,
}
SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, REFUSED)
