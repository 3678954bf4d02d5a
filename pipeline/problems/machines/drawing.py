"""Where the jobsets of a scenario of many machines come from, and how they are stored."""

from pathlib import Path

from pipeline import storage
from pipeline.config import Params
from pipeline.core import SPLITS
from pipeline.logs.plausible import check_plausible
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.storage import write_jobsets, write_park
from pipeline.problems.machines.workload.source import Blocks, Cut, source
from pipeline.problems.parts import Drawn
from pipeline.progress import ProgressCallback


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> Drawn[Jobs]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.scenario_log(scenario), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, Cut | Blocks):
        check_plausible(origin.fit.doubts, f"params.yaml: scenarios.{scenario}.workload")

    def write(folder: Path) -> None:
        write_park(folder, origin.park)
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, origin.park)

    return Drawn(splits, origin.notes, write)
