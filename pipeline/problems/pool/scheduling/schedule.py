"""Schedule a user's own jobs on one pooled cluster: by a policy as they arrive, or planned with all of them known."""

from pipeline.config import Params
from pipeline.core import IntArray, Policy
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import drawn_by_name, policy_for, uses_end
from pipeline.problems.pool.scheduling.planning import best_drawn, must_be_searchable, searched
from pipeline.problems.pool.scheduling.playing import mean_slowdown, means, must_end, schedule
from pipeline.problems.pool.tables import SCHEDULE
from pipeline.problems.pool.user_jobs import job_columns
from pipeline.progress import progress, say
from pipeline.scheduling.schedule import Column, Ready, Scheduled, ScheduleRequest, Scheduling
from pipeline.scheduling.user_jobs import UserJobs
from pipeline.storage.files import DIGITS


def ready(params: Params, asked: ScheduleRequest) -> Ready[JobSet]:
    """Return a policy, ready for a user's jobs on the scenario's cluster, or on one of another size."""
    policy, samples, tries = asked.policy, asked.samples, asked.tries
    scenario = params.pool_scenario(asked.scenario).changed(asked.capacity, asked.slots, asked.horizon)
    cluster = Cluster.of(scenario)._replace(arrivals_end=asked.arrivals_end)
    chosen, masked = policy_for(params, policy, scenario, asked.scenario, cluster)
    drawn = drawn_by_name(policy, scenario) if samples else None

    def run(mine: UserJobs[JobSet]) -> Scheduled:
        must_end(mine.jobs.arrival, cluster, str(asked.jobs))
        if asked.arrivals_end is None and scenario.arrivals_end is not None and uses_end(policy):
            say(f"{policy} is not given when arrivals end, as in scenario '{asked.scenario}': --arrivals-end")
        if tries:
            must_be_searchable(mine, cluster.horizon, tries, str(asked.jobs))
        with progress(f"schedule by {policy}, percent", 100, brief=True) as advance:
            start = schedule(mine, cluster, chosen, masked, params.seed, advance)
        if samples or tries:
            start = planned(mine, cluster, start, drawn, samples, tries, params.seed)
        who = f"a plan in hindsight from {policy}" if samples or tries else policy
        return scheduled(mine.jobs, start, f", mean slowdown {means(mine, start, scenario.measured)} under {who}")

    return Ready(job_columns(params, scenario), run)


def scheduled(jobs: JobSet, start: IntArray, said: str = "") -> Scheduled:
    """Return a schedule by the start of each job [J]."""

    def columns(some: slice) -> dict[str, Column]:
        finish = start[some] + jobs.duration[some]
        return {
            "start": start[some],
            "finish": finish,
            "slowdown": (finish - jobs.arrival[some]) / jobs.duration[some],
        }

    return Scheduled(columns, said)


def planned(
    table: UserJobs[JobSet],
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


SCHEDULING = Scheduling(ready, SCHEDULE, DIGITS, {})
