"""Where the jobsets of a scenario of many machines come from, and how they are stored."""

from pathlib import Path

from pipeline import storage
from pipeline.config import Params
from pipeline.core import SPLITS
from pipeline.problems import Drawn
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.storage import write_event_jobsets, write_site
from pipeline.problems.machines.workload.source import stream
from pipeline.progress import ProgressCallback


def draw(params: Params, scenario: str, on_progress: ProgressCallback) -> Drawn[Jobs]:
    """Draw all jobsets of a scenario, or cut them from its log."""
    origin = stream(params, scenario, storage.scenario_log(scenario), on_progress)
    splits = {split: origin.split(split) for split in SPLITS}

    def write(folder: Path) -> None:
        write_site(folder, origin.site)
        for split, jobsets in splits.items():
            write_event_jobsets(folder, split, jobsets, origin.site)

    return Drawn(splits, origin.notes, write)
