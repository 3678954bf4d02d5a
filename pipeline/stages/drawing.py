"""Where a scenario's jobsets come from and how they are stored, by its dynamics."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipeline import storage
from pipeline.config import Params
from pipeline.core import SPLITS
from pipeline.workload.group_source import group_stream
from pipeline.workload.source import source
from pipeline.workload.streams import stream
from pipeline.workload.traces import Heard


class Drawn(NamedTuple):
    """All jobsets of a scenario, and what to do with them."""

    splits: Mapping[str, Mapping[int, Sequence[Any]]]  # by load: JobSet, Jobs or GroupJobs
    notes: Sequence[str]  # for people
    write: Callable[[Path], None]  # into a folder


def draw(params: Params, scenario: str, heard: Heard) -> Drawn:
    """Draw all jobsets of a scenario, or cut them from its log."""
    return DYNAMICS[params.any_scenario(scenario).dynamics](params, scenario, heard)


def _in_steps(params: Params, scenario: str, heard: Heard) -> Drawn:
    origin = source(params, scenario, storage.LOG.resolve(), heard)
    splits = {split: origin.split(split) for split in SPLITS}
    resources = params.scenario(scenario).resources

    def write(folder: Path) -> None:
        for split, jobsets in splits.items():
            storage.write_jobsets(folder, split, jobsets, resources)

    return Drawn(splits, origin.notes, write)


def _event_driven(params: Params, scenario: str, heard: Heard) -> Drawn:
    origin = stream(params, scenario, storage.scenario_log(scenario), heard)
    splits = {split: origin.split(split) for split in SPLITS}

    def write(folder: Path) -> None:
        storage.write_site(folder, origin.site)
        for split, jobsets in splits.items():
            storage.write_event_jobsets(folder, split, jobsets, origin.site)

    return Drawn(splits, origin.notes, write)


def _of_groups(params: Params, scenario: str, heard: Heard) -> Drawn:
    origin = group_stream(params, scenario, storage.scenario_log(scenario), heard)
    splits = {split: origin.split(split) for split in SPLITS}
    resources = params.group_scenario(scenario).resources

    def write(folder: Path) -> None:
        for split, jobsets in splits.items():
            storage.write_group_jobsets(folder, split, jobsets, resources)

    return Drawn(splits, origin.notes, write)


DYNAMICS: dict[str, Callable[[Params, str, Heard], Drawn]] = {
    "steps": _in_steps,
    "events": _event_driven,
    "groups": _of_groups,
}
