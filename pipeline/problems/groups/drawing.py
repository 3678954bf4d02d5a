"""Where the jobsets of a shared cluster come from, and how they are stored."""

from pathlib import Path

from pipeline import storage
from pipeline.config import Params
from pipeline.core import SPLITS
from pipeline.logs.plausible import check_plausible
from pipeline.problems.groups.nouns import Jobs
from pipeline.problems.groups.storage import write_jobsets
from pipeline.problems.groups.workload.source import Cut, source
from pipeline.problems.parts import Drawn
from pipeline.progress import ProgressCallback


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> Drawn[Jobs]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = source(params, scenario, storage.scenario_log(scenario), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}
    if isinstance(origin, Cut):
        check_plausible(origin.log.doubts, f"params.yaml: scenarios.{scenario}.workload")
    resources = params.groups_scenario(scenario).resources

    def write(folder: Path) -> None:
        for split, jobsets in splits.items():
            write_jobsets(folder, split, jobsets, resources)

    return Drawn(splits, origin.notes, write)
