"""Drawing and storing the jobsets of a pooled cluster."""

from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.logs.plausible import check_plausible, unconfirmed
from pipeline.core.types import SPLITS
from pipeline.problems.parts import Drawn
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.storage import write_jobsets
from pipeline.problems.pool.env.workload.source import LogSource, source
from pipeline.progress import ProgressCallback


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> Drawn[JobSet]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.LOG.resolve(), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, LogSource):
        doubts = unconfirmed(origin.log, origin.workload.accept)
        check_plausible(doubts, "params.yaml: workload")
    resources = params.pool_scenario(scenario).resources

    def write(folder: Path) -> None:
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, resources)

    return Drawn(splits, origin.notes, write)
