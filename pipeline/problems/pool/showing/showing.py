"""One jobset under two policies, side by side, as a picture."""

from collections.abc import Sequence

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.config import Params, PoolLog, PoolScenario
from pipeline.errors import UserError
from pipeline.problems.one_jobset import test_jobset
from pipeline.problems.parts import Picture, ShowRequest
from pipeline.problems.pool.nouns import Cluster
from pipeline.problems.pool.policies import policy_for
from pipeline.problems.pool.scheduling.playing import must_end
from pipeline.problems.pool.showing.choosing import Chosen, user_jobset
from pipeline.problems.pool.showing.drawing import side_by_side
from pipeline.problems.pool.showing.scene import Scene, described, window
from pipeline.problems.pool.showing.watching import Trace, watch
from pipeline.problems.pool.storage import read_jobsets
from pipeline.problems.pool.user_jobs import read_jobs
from pipeline.progress import progress, say


def draw(params: Params, asked: ShowRequest, policies: Sequence[str], names: Sequence[str]) -> Picture:
    """Return the picture of a jobset under some policies."""
    scenario = params.pool_scenario(asked.scenario)
    cluster = Cluster.of(scenario)
    if asked.jobs is not None:  # of a user's own jobs only the user knows when arrivals end
        cluster = cluster._replace(arrivals_end=asked.arrivals_end)
    elif asked.arrivals_end is not None:
        raise UserError("--arrivals-end is for your own jobs; of a scenario's jobsets policies know the scenario's")
    known = [policy_for(params, name, scenario, asked.scenario, cluster) for name in policies]
    chosen = _choose(params, asked, scenario)
    if asked.jobs is not None:
        must_end(chosen.jobs.arrival, cluster, str(asked.jobs))
    traces: list[Trace] = []
    for name, (policy, masked) in zip(names or policies, known, strict=True):
        limit = chosen.limit(cluster, masked)
        traces.append(watch(name, policy, chosen.jobs, cluster, limit, chosen.key(params.seed), masked))
    shown = window(chosen.jobs, traces, asked.begin, asked.end)
    scene = Scene(chosen.title, chosen.jobs, chosen.names, scenario.resources, scenario.slots)
    picture = png(side_by_side(scene, traces, shown))
    return Picture(picture, chosen.title, [described(trace) for trace in traces], [one.slowdown for one in traces])


def _choose(params: Params, asked: ShowRequest, scenario: PoolScenario) -> Chosen:
    if asked.jobs is None:
        folder = storage.jobsets_folder(asked.scenario)
        jobsets = read_jobsets(folder, "test", scenario.resources)
        title, jobs, number = test_jobset(jobsets, asked)
        return Chosen(title, jobs, [str(job) for job in range(len(jobs.arrival))], number, scenario.step_limit)
    if asked.load is not None:
        raise UserError("--load is one of the scenario's own jobsets; a job table has none")
    swf = params.workload if isinstance(params.workload, PoolLog) else PoolLog(name="swf", path=str(asked.jobs))
    with progress(f"read {asked.jobs}, percent", 100, brief=True) as advance:
        table, notes = read_jobs(asked.jobs, scenario, swf, advance)
    for note in notes:
        say(note)
    return user_jobset(table, str(asked.jobs), asked.scenario, asked.jobset)
