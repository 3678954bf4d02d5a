"""`generate`: draw the train, validation and test jobsets of a scenario."""

from pipeline import storage, tracking
from pipeline.config import Params
from pipeline.core import SPLITS
from pipeline.progress import progress, say
from pipeline.workload.source import source


def run(params: Params, scenario: str) -> None:
    """Write data/jobsets/<scenario>: one table a split."""
    resources = params.scenario(scenario).resources
    with tracking.stage("generate", scenario, params) as run:
        with progress("read the log, percent", 100, brief=True) as advance:
            origin = source(params, scenario, storage.LOG.resolve(), advance)
        run.inputs(storage.LOG)
        drawn = {split: origin.split(split) for split in SPLITS}  # all of them, or none is written
        for note in origin.notes:
            say(note)
        storage.discard(storage.jobsets_folder(scenario))
        for split, jobsets in drawn.items():
            storage.write_jobsets(storage.jobsets_folder(scenario), split, jobsets, resources)
            run.metrics({f"jobsets/{split}": sum(len(group) for group in jobsets.values())}, step=0)
