"""Jobsets of a scenario of many machines: drawn or cut, and stored."""

from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.logs.plausible import check_plausible
from pipeline.core.types import SPLITS
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.storage import write_jobsets, write_park
from pipeline.problems.machines.env.workload.source import Cut, source
from pipeline.problems.parts import Drawn
from pipeline.progress import ProgressCallback


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> Drawn[Jobs]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.scenario_log(scenario), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, Cut):
        check_plausible(origin.fit.doubts, f"params.yaml: scenarios.{scenario}.workload")

    def write(folder: Path) -> None:
        write_park(folder, origin.park)
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, origin.park)

    return Drawn(splits, origin.notes, write)
