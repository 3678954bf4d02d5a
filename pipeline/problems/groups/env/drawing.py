"""Drawing and storing the jobsets of a shared cluster."""

from pathlib import Path

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.logs.plausible import check_plausible
from pipeline.core.types import SPLITS
from pipeline.problems.groups.env.nouns import Jobs
from pipeline.problems.groups.env.storage import write_jobsets
from pipeline.problems.groups.env.workload.source import Cut, source
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
