"""Run any policy over a user's own jobs on many machines, and write when and where each starts.

No episode is cut: every job is finished in the end. All else is as in the scoring of the scenario's policies.

Jobs are read from a job table, or from a log of any format. Amounts in a table are units, counted in thousandths as
everywhere. A job of a table that no machine could hold is refused; such jobs of a log are left out and counted, as in
jobsets cut from the log. Policies know what the scenario says: run times, the users' estimates, or predictions learned
from a log's own first jobs.
"""

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.core import storage
from pipeline.core.config import MachinePark, MachinesCard, MachinesLog, MachinesScenario, Params, Sampled
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import MachineTable, Trace, holders, thousandths
from pipeline.core.logs.windows import periods
from pipeline.core.types import ANY_KIND, THOUSANDTHS, FloatArray, IntArray, KeyArray, Policy
from pipeline.errors import UserError
from pipeline.external.loading import is_external
from pipeline.interactive.explaining.tree import TREE, tree_by_name
from pipeline.interactive.scheduling.schedule import Ready, Scheduled, ScheduleRequest, Scheduling, played
from pipeline.interactive.scheduling.user_jobs import JobColumns, Part, UserJobs, of_log
from pipeline.lookahead.planner import PREFIX
from pipeline.problems.machines.env.evaluation.metrics import outcome
from pipeline.problems.machines.env.evaluation.play import Game, play_on
from pipeline.problems.machines.env.nouns import Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.storage import grouped, machines_of, read_park
from pipeline.problems.machines.env.tables import MEASURED, SCHEDULE, user_job_columns
from pipeline.problems.machines.env.workload.windows import kinds_at, what_policies_know
from pipeline.problems.machines.lookahead.plans import must_fit, network_base, past_of, planned
from pipeline.problems.machines.policies import policy_by_name
from pipeline.progress import ProgressCallback, progress
from pipeline.simulation.rollout import Insider

DECISIONS_AT_ONCE = 10_000  # of compiled play between two progress reports
DIGITS = 12  # seconds of some years, to a thousandth
POOL_ONLY = dict.fromkeys(("arrivals-end", "load"), "only policies of pooled clusters use it")
HINDSIGHT = "all jobs known beforehand, schedules are made for pooled clusters only"
REFUSED = {
    "capacity": "it has many machines, each with amounts of its own",
    "horizon": "it runs in continuous time and has no horizon",
    **dict.fromkeys(("samples", "search"), HINDSIGHT),
    **POOL_ONLY,
}


def park_of(params: Params, scenario: str) -> MachinePark:
    """Return the machines of a scenario; if they are drawn from a log's file, those that `generate` drew.

    Raises:
        UserError: they are drawn, and `generate` has not run yet.
    """
    row = params.machines_scenario(scenario)
    if isinstance(row.machines, Sampled):
        return read_park(storage.jobsets_folder(scenario))
    return grouped(row.machines, unit=1.0)


def job_columns(scenario: MachinesScenario, park: MachinePark) -> JobColumns[Jobs]:
    """Return how a user's jobs are read; a log in the format of the scenario's own is read with the same settings."""

    def log(path: Path, format: str, on_progress: ProgressCallback) -> UserJobs[Jobs]:
        own, settings = scenario.workload, dict[str, Any]()
        if isinstance(own, MachinesLog) and own.format == format:
            settings = {"instances": own.instances, "per_node": own.per_node}
        return _of_log(read(path, format, on_progress, **settings), scenario, park, str(path))

    columns = user_job_columns(park.resources)
    return JobColumns(scenario.policies_know, columns, lambda frame, where: _of_table(frame, park, where), log)


def _of_table(frame: pd.DataFrame, park: MachinePark, where: str) -> Jobs:
    count, duration = len(frame), frame["duration"].to_numpy()
    jobs = Jobs(
        arrival=frame["arrival"].to_numpy(),
        duration=duration,
        estimate=frame["estimate"].to_numpy() if "estimate" in frame else duration,
        demand=thousandths(frame[list(park.resources)].to_numpy()),
        nodes=frame["nodes"].to_numpy() if "nodes" in frame else np.ones(count, dtype=np.int64),
        kinds=np.full(count, ANY_KIND),
    )
    able = _holders(jobs, park)
    homeless = np.flatnonzero(able < jobs.nodes)
    if len(homeless):
        job = homeless[0]
        amounts = zip(park.resources, jobs.demand[job], strict=True)
        wants = ", ".join(f"{name} {amount / THOUSANDTHS:g}" for name, amount in amounts)
        raise UserError(
            f"{where}: job {frame['job'].iloc[job]} wants {wants} on {jobs.nodes[job]} machines at once; "
            f"{able[job]} of {len(park.kind)} can hold it"
        )
    return jobs


def _of_log(trace: Trace, scenario: MachinesScenario, park: MachinePark, where: str) -> UserJobs[Jobs]:
    lacking = [name for name in park.resources if name not in trace.resources]
    if lacking:
        raise UserError(
            f"{where}: the log has no resource '{lacking[0]}', which the scenario's machines have; "
            f"there are: {', '.join(trace.resources)}"
        )
    if scenario.policies_know == "estimates" and not trace.has_estimates:
        raise UserError(f"{where}: the log has no estimates (policies_know: estimates)")
    columns = [trace.resources.index(name) for name in park.resources]
    own = scenario.workload
    # The first jobs, from which predictions are learned; params.yaml's check allows them only for logs.
    learned = max(1, periods(len(trace.id), own)["train"][1]) if isinstance(own, MachinesLog) else 0
    jobs = Jobs(
        arrival=trace.submit_s,
        duration=trace.run_s,
        estimate=what_policies_know(scenario, trace, np.arange(learned)),
        demand=np.ascontiguousarray(trace.demand[:, columns]),
        nodes=np.asarray(trace.nodes, dtype=np.int64),
        kinds=kinds_at(park, trace.kinds, trace.kind_names),
    )
    runs = _holders(jobs, park) >= jobs.nodes
    if not runs.any():
        raise UserError(f"{where}: none of its {len(runs):,} jobs could run on the scenario's machines")
    ids, notes = trace.id[runs], trace.notes[1:]
    if len(np.unique(ids)) < len(ids):
        ids = np.arange(1, len(ids) + 1)
        notes.append("several jobs have the same name: they are numbered in order of arrival, from 1")
    if scenario.policies_know == "predictions":
        notes.append(f"run times are predicted from the first {learned:,} jobs: judge by the jobs after them")
    if not runs.all():
        notes.append(f"left out: {(~runs).sum():,} of {len(runs):,} jobs, which the scenario's machines could not run")
    return of_log(ids, Jobs._make(column[runs] for column in jobs), [f"{where}: {note}" for note in notes])


def _holders(jobs: Jobs, park: MachinePark) -> IntArray:
    machines = MachineTable(np.array(park.capacity, dtype=np.int64), np.array(park.kind), park.resources)
    return holders(machines, jobs.demand, jobs.kinds)


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

    return job_columns(scenario, park), run


def any_policy(params: Params, name: str, scenario: MachinesScenario, park: MachinePark, of: str) -> Policy | Insider:
    """Return the policy of `policy_by_name`, or an agent's tree; with the prefix `plan_`, a policy that looks ahead."""
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

    def begin(part: Part[Jobs], key: KeyArray) -> tuple[Simulator, Iterator[int]]:
        batch = end_to_end([part.jobs])._replace(first=part.first)
        simulator = Simulator(batch, machines, np.zeros(len(batch.arrival)))  # rewards are not used
        return simulator, play_on(simulator, policy, key, DECISIONS_AT_ONCE)

    longest = mine.taken(np.flatnonzero(mine.number == np.bincount(mine.number).argmax()))
    most = Game([longest], machines, np.zeros(1, dtype=np.uint64)).abreast
    for part, simulator in played(mine, most, begin, seed, on_progress):
        placed, at = simulator.placed(), part.rows
        found = outcome(simulator.jobs, placed)
        columns["start"][at], columns["machine"][at] = placed.start, placed.machine
        for name in MEASURED[1:]:
            columns[name][at] = getattr(found, name)
    return columns


SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, REFUSED)
