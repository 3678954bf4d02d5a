"""`generate`: draw the train, validation and test jobsets of a scenario."""

from pipeline import tracking
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.problems import problem_of
from pipeline.progress import progress, say


def run(params: Params, scenario: str) -> None:
    """Write data/jobsets/<scenario>: a table for each split, their origin, and the machines if there are several."""
    folder = storage.jobsets_folder(scenario)
    with tracking.stage("generate", scenario, params) as run:
        with progress("read the log, percent", 100, brief=True) as advance:
            drawn = problem_of(params, scenario).draw(params, scenario, advance)  # complete before anything is written
        run.inputs(storage.LOG, storage.scenario_log(scenario))
        say(*drawn.notes)
        storage.discard(folder)
        drawn.write(folder)
        storage.write_origin(params, scenario)
        for split, jobsets in drawn.splits.items():
            run.metrics({f"jobsets/{split}": sum(len(group) for group in jobsets.values())}, step=0)
