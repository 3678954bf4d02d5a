"""Users' logs, linked into data/ so that DVC sees their content.

data/log is the workload's, or a note where there is none; a folder where the log is a folder, or has a file of `nodes`.
data/logs/<scenario> is a folder for every scenario: of one with a log of its own, it holds `log` and, where there is
one, the file of `nodes`; of the others, a note. A link to a folder would hide its content from DVC, so that a log of
many files has a folder of links.
"""

from collections.abc import Mapping
from pathlib import Path

from pipeline.config import AnyScenario, GroupsLog, MachinesLog, Params, PoolLog, PoolScenario, repository_root
from pipeline.core import LOG_NAME, NODES_NAME
from pipeline.errors import UserError
from pipeline.storage.files import discard, write
from pipeline.storage.paths import LOG, LOGS, scenario_log

NOTE = "note"


def link_log(params: Params) -> None:
    """Point data/log and data/logs at the logs of params.yaml; a plain note stands where there is none.

    Raises:
        UserError: a log is not there, or a link cannot be written.
    """
    shared = _files("workload", params.workload) if isinstance(params.workload, PoolLog) else {}
    wanted = {name: _files_of(name, row) for name, row in params.scenarios.items()}  # all are there, or nothing changes
    try:
        if LOG.is_symlink() or not LOG.is_dir():
            LOG.unlink(missing_ok=True)  # never write through a link into the user's log
        else:
            discard(LOG)
        discard(LOGS)
        link_all(LOG, {Path(): shared[Path(LOG_NAME)]} if list(shared) == [Path(LOG_NAME)] else shared)
        for name, files in wanted.items():
            link_all(scenario_log(name), files)
    except OSError as error:
        raise UserError(f"{error.filename or LOG}: cannot be written ({error.strerror})") from error
    if not shared:
        write(LOG, b"The workload is synthetic: there is no log.\n")
    for name, row in params.scenarios.items():
        if not wanted[name]:
            write(scenario_log(name) / NOTE, _note(row))


def _note(row: AnyScenario) -> bytes:
    source = "in data/log" if isinstance(row, PoolScenario) else "synthetic"
    return f"The jobs of this scenario are {source}: it has no log of its own.\n".encode()


def _files_of(name: str, row: AnyScenario) -> dict[Path, Path]:
    """Return the files of a scenario's own log, by their place in its folder."""
    own = getattr(row, "workload", None)
    return _files(f"scenarios.{name}.workload", own) if isinstance(own, MachinesLog | GroupsLog) else {}


def _files(row: str, workload: PoolLog | MachinesLog | GroupsLog) -> dict[Path, Path]:
    """Return the files of a log, by their place in its folder."""
    where, found = f"params.yaml: {row}", dict[Path, Path]()
    place = _resolved(workload.path)
    if place.is_dir():
        found = {Path(LOG_NAME) / file.relative_to(place): file for file in place.rglob("*") if file.is_file()}
        if not found:
            raise UserError(f"{where}.path: expected files in {place}, found none")
    elif place.is_file():
        found = {Path(LOG_NAME): place}
    else:
        raise UserError(f"{where}.path: no such file or folder: {place}")
    if not isinstance(workload, GroupsLog) and workload.nodes is not None:
        nodes = _resolved(workload.nodes)
        if not nodes.is_file():
            raise UserError(f"{where}.nodes: no such file: {nodes}")
        found[Path(NODES_NAME)] = nodes
    return found


def _resolved(path: str) -> Path:
    return (repository_root() / path).resolve()


def link_all(folder: Path, files: Mapping[Path, Path]) -> None:
    """Link files into a folder, by their place in it."""
    for inside, file in files.items():
        _link(folder / inside, file)


def _link(link: Path, place: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    part = link.with_name(f".{link.name}.part")
    part.unlink(missing_ok=True)
    part.symlink_to(place)
    part.replace(link)
