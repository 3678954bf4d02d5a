"""`heuristics`: tune the heuristics of a scenario on validation jobsets, and score them on the test jobsets."""

from collections.abc import Mapping
from functools import partial

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import SPLITS
from pipeline.execution.executor import executor
from pipeline.problems import problem_of
from pipeline.progress import progress
from pipeline.simulation.results import Results, tables_of


def run(params: Params, scenario: str) -> None:
    """Write reports/tables/heuristics/<scenario>: every heuristic's results, and the choices by validation."""
    inputs, place = storage.jobsets_folder(scenario), storage.results_folder("heuristics", scenario)
    with tracking.stage("heuristics", scenario, params) as run, executor(params.threads) as workers:
        run.inputs(inputs)
        problem = problem_of(params, scenario)
        here = problem.scoring(params, scenario, None)
        train, validation, test = (here.read(split) for split in SPLITS)
        with progress(f"heuristics {scenario}, percent", 100) as advance:
            examine = partial(here.score, jobsets=validation)
            knobs = here.tune(examine, train)
            policies = here.heuristics(knobs)
            examined = examine(policies)
            if workers.serial:
                results = here.score(policies, jobsets=test, on_progress=lambda share: advance(100 * share))
            else:
                one, names = partial(score_one, params=params, scenario=scenario, knobs=dict(knobs)), list(policies)
                found = workers.map(one, names, [inputs], lambda done: advance(100 * done / len(names)))
                results = dict(zip(names, found, strict=True))
        for name, done in results.items():
            for kind, curve in done.curves.items():
                run.parent_curve(f"{kind}/{name}", curve)
        storage.discard(place)
        jobs, jobsets = [done.jobs for done in results.values()], [done.jobsets for done in results.values()]
        storage.write_results(place, jobs, jobsets, problem.tables, tables_of(results))
        means = {name: done.by_load for name, done in examined.items()}
        best = here.best(examined)
        chosen = storage.Chosen(knobs=knobs, validation=means, best=best.slowdown, best_delay=dict(best.delay))
        storage.write_chosen(scenario, chosen.model_copy(update={"single": best.single}))
        run.metrics({f"knob/{name}": knob for name, knob in knobs.items()}, step=0)


def score_one(name: str, params: Params, scenario: str, knobs: Mapping[str, float]) -> Results:
    """Return the results of a heuristic on a scenario's test jobsets; runs in a worker."""
    here = problem_of(params, scenario).scoring(params, scenario, None)
    return here.score({name: here.heuristics(knobs)[name]}, jobsets=here.read("test"))[name]
