"""`show`: one jobset under two policies, side by side, as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline import storage
from pipeline.config import Params, Scenario, Swf
from pipeline.core import Cluster
from pipeline.errors import UserError
from pipeline.evaluation.plots import png
from pipeline.evaluation.showing.choosing import Chosen, test_jobset, user_jobset
from pipeline.evaluation.showing.drawing import side_by_side
from pipeline.evaluation.showing.scene import Scene, described, window
from pipeline.evaluation.showing.watching import Trace, watch
from pipeline.progress import progress, say
from pipeline.stages.policies import policy_by_name


class Asked(NamedTuple):
    """Which jobset to show, and which of its steps."""

    jobs: Path | None  # a job table or log; None: the test jobsets of the scenario
    scenario: str
    load: int | None = None
    jobset: str | None = None
    begin: int | None = None
    end: int | None = None


class Picture(NamedTuple):
    """A drawn jobset, and what can be said of it."""

    content: bytes  # PNG
    title: str
    halves: list[str]  # what is written over each half


def run(params: Params, asked: Asked, policies: Sequence[str], out: Path) -> None:
    """Write the picture of a jobset under some policies."""
    if out.suffix != ".png":
        raise UserError(f"{out}: expected a name that ends in .png")
    picture = draw(params, asked, policies)
    storage.write(out, picture.content)
    say(f"{out}: {picture.title}")
    for half in picture.halves:
        say(f"  {half.replace(chr(10), ', ')}")


def draw(params: Params, asked: Asked, policies: Sequence[str], names: Sequence[str] = ()) -> Picture:
    """Return the picture of a jobset under some policies.

    Args:
        params: of the scenario, and the seed.
        asked: what to show.
        policies: heuristics by name, or model directories.
        names: for people, instead of these.
    """
    scenario = params.scenario(asked.scenario)
    known = [policy_by_name(name, scenario) for name in policies]
    chosen, cluster = _choose(params, asked, scenario), Cluster.of(scenario)
    traces: list[Trace] = []
    for name, (policy, masked) in zip(names or policies, known, strict=True):
        limit = chosen.limit(cluster, masked)
        traces.append(watch(name, policy, chosen.jobs, cluster, limit, chosen.key(params.seed), masked))
    shown = window(chosen.jobs, traces, asked.begin, asked.end)
    scene = Scene(chosen.title, chosen.jobs, chosen.names, scenario.resources, scenario.slots)
    return Picture(png(side_by_side(scene, traces, shown)), chosen.title, [described(trace) for trace in traces])


def _choose(params: Params, asked: Asked, scenario: Scenario) -> Chosen:
    if asked.jobs is None:
        folder = storage.jobsets_folder(asked.scenario)
        jobsets = storage.read_jobsets(folder, "test", scenario.resources)
        return test_jobset(jobsets, asked.scenario, asked.load, asked.jobset, scenario.step_limit)
    if asked.load is not None:
        raise UserError("--load is one of the scenario's own jobsets; a job table has none")
    swf = params.workload if isinstance(params.workload, Swf) else Swf(name="swf", path=str(asked.jobs))
    with progress(f"read {asked.jobs}, percent", 100, brief=True) as advance:
        table, notes = storage.read_jobs(asked.jobs, scenario, swf, advance)
    for note in notes:
        say(note)
    return user_jobset(table, str(asked.jobs), asked.scenario, asked.jobset)
