"""Run any policy over a user's own jobs and write when each starts."""

from pipeline.config import Params, PoolLog
from pipeline.core import IntArray, Policy
from pipeline.problems.parts import ScheduleRequest
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.policies import drawn_by_name, policy_for, uses_end
from pipeline.problems.pool.scheduling.planning import best_drawn, must_be_searchable, searched
from pipeline.problems.pool.scheduling.playing import mean_slowdown, means, must_end, schedule
from pipeline.problems.pool.user_jobs import read_jobs
from pipeline.problems.pool.user_schedules import write_schedule
from pipeline.problems.pool.workload.job_table import JobTable
from pipeline.progress import progress, say
from pipeline.storage.files import check_out


def schedule_jobs(params: Params, asked: ScheduleRequest) -> None:
    """Write the schedule of a job table or log."""
    jobs, policy, out, samples, tries = asked.jobs, asked.policy, asked.out, asked.samples, asked.tries
    scenario = params.pool_scenario(asked.scenario).changed(asked.capacity, asked.slots, asked.horizon)
    check_out(out, inputs=[jobs])
    cluster = Cluster.of(scenario)._replace(arrivals_end=asked.arrivals_end)
    chosen, masked = policy_for(params, policy, scenario, asked.scenario, cluster)
    drawn = drawn_by_name(policy, scenario) if samples else None
    swf = params.workload if isinstance(params.workload, PoolLog) else PoolLog(name="swf", path=str(jobs))
    with progress(f"read {jobs}, percent", 100, brief=True) as advance:
        table, notes = read_jobs(jobs, scenario, swf, advance)
    must_end(table.arrival, cluster, str(jobs))
    if asked.arrivals_end is None and scenario.arrivals_end is not None and uses_end(policy):
        notes = [*notes, f"{policy} is not given when arrivals end, as in scenario '{asked.scenario}': --arrivals-end"]
    for note in notes:
        say(note)
    if tries:
        must_be_searchable(table, cluster.horizon, tries, str(jobs))
    with progress(f"schedule by {policy}, percent", 100, brief=True) as advance:
        start = schedule(table, cluster, chosen, masked, params.seed, advance)
    if samples or tries:
        start = planned(table, cluster, start, drawn, samples, tries, params.seed)
    with progress(f"write {out}, percent", 100, brief=True) as advance:
        write_schedule(out, table, start, advance)
    who = f"a plan in hindsight from {policy}" if samples or tries else policy
    say(f"{out}: {len(start)} jobs, mean slowdown {means(table, start, scenario.measured)} under {who}")


def planned(
    table: JobTable,
    cluster: Cluster,
    start: IntArray,
    drawn: tuple[Policy, bool] | None,
    samples: int,
    tries: int,
    seed: int,
) -> IntArray:
    """Return starts [J] no worse than those of a schedule, and say what they are."""
    said = [f"{mean_slowdown(table, start):.4g} as scheduled"]
    if drawn is not None:
        with progress(f"draw {samples:,} schedules, percent", 100, brief=True) as advance:
            start = best_drawn(table, cluster, *drawn, start, samples, seed, advance)
        said.append(f"{mean_slowdown(table, start):.4g} the best beside {samples:,} drawn")
    if tries:
        with progress(f"search {tries:,} schedules, percent", 100, brief=True) as advance:
            start = searched(table, cluster, start, tries, seed, advance)
        said.append(f"{mean_slowdown(table, start):.4g} after a search of {tries:,}")
    say(f"a plan in hindsight, all jobs known beforehand: mean slowdown {', '.join(said)}")
    return start
