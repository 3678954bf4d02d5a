"""`heuristics`: tune the heuristics of a scenario on validation jobsets, and score them on the test jobsets."""

from functools import partial

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.core import SPLITS, Cluster
from pipeline.evaluation.play import score
from pipeline.evaluation.tuning import best_by_load, heuristics_with, means_of, tuned
from pipeline.progress import progress


def run(params: Params, scenario: str) -> None:
    """Write reports/tables/heuristics/<scenario>: every heuristic's results, and what validation chose."""
    row, folder = params.scenario(scenario), storage.jobsets_folder(scenario)
    with tracking.stage("heuristics", scenario, params) as run:
        run.inputs(folder)
        train, validation, test = (storage.read_jobsets(folder, split, row.resources) for split in SPLITS)
        on = partial(score, cluster=Cluster.of(row), step_limit=row.step_limit, seed=params.seed)
        with progress(f"heuristics {scenario}, percent", 100) as advance:
            examine = partial(on, jobsets=validation)
            knobs = tuned(examine, params.heuristics, train)
            policies = heuristics_with(knobs)
            examined = means_of(examine, policies)
            results = on(policies, test, heard=lambda share: advance(100 * share))
        for name, done in results.items():
            run.parent_curve(f"slowdown/{name}", done.by_load)
        place = storage.results_folder("heuristics", scenario)
        storage.discard(place)
        tables = list(results.values())
        storage.write_results(place, [done.jobs for done in tables], [done.jobsets for done in tables])
        chosen = storage.Chosen(knobs=knobs, best=best_by_load(examined), validation=examined)
        storage.write_chosen(scenario, chosen)
        run.metrics({f"knob/{name}": knob for name, knob in knobs.items()}, step=0)
