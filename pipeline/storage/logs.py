"""Users' logs, linked into data/ so that DVC sees their content.

data/log is the workload's, or a note where there is none. data/logs/<scenario> is a folder for every scenario: of one
with a log of its own, it holds `log` and, where there is one, the file of `nodes`; of the others, a note. A link to a
folder would hide its content from DVC, so that a log of many files has a folder of links.
"""

from pathlib import Path

from pipeline.config import AnyScenario, GroupsLog, MachinesLog, Params, PoolScenario, Swf, repository_root
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
    place = log_path(params.workload) if isinstance(params.workload, Swf) else None
    wanted = {name: _files(name, row) for name, row in params.scenarios.items()}  # all are there, or nothing changes
    try:
        if place is None:
            LOG.unlink(missing_ok=True)  # never write through a link into the user's log
        else:
            _link(LOG, place)
        discard(LOGS)
        for name, files in wanted.items():
            for inside, file in files.items():
                _link(scenario_log(name) / inside, file)
    except OSError as error:
        raise UserError(f"{error.filename or LOG}: cannot be written ({error.strerror})") from error
    if place is None:
        write(LOG, b"The workload is synthetic: there is no log.\n")
    for name, row in params.scenarios.items():
        if not wanted[name]:
            write(scenario_log(name) / NOTE, _note(row))


def log_path(workload: Swf) -> Path:
    """Return where the log lies; a relative path starts at the repository's root."""
    place = _resolved(workload.path)
    if not place.is_file():
        raise UserError(f"params.yaml: workload.path: no such file: {place}")
    return place


def _note(row: AnyScenario) -> bytes:
    source = "in data/log" if isinstance(row, PoolScenario) else "synthetic"
    return f"The jobs of this scenario are {source}: it has no log of its own.\n".encode()


def _files(name: str, row: AnyScenario) -> dict[Path, Path]:
    """Return the files of a scenario's own log, by their place in its folder."""
    if isinstance(row, PoolScenario) or not isinstance(row.workload, MachinesLog | GroupsLog):
        return {}
    where, found = f"params.yaml: scenarios.{name}.workload", dict[Path, Path]()
    place = _resolved(row.workload.path)
    if place.is_dir():
        found = {Path(LOG_NAME) / file.relative_to(place): file for file in place.rglob("*") if file.is_file()}
        if not found:
            raise UserError(f"{where}.path: expected files in {place}, found none")
    elif place.is_file():
        found = {Path(LOG_NAME): place}
    else:
        raise UserError(f"{where}.path: no such file or folder: {place}")
    if isinstance(row.workload, MachinesLog) and row.workload.nodes is not None:
        nodes = _resolved(row.workload.nodes)
        if not nodes.is_file():
            raise UserError(f"{where}.nodes: no such file: {nodes}")
        found[Path(NODES_NAME)] = nodes
    return found


def _resolved(path: str) -> Path:
    return (repository_root() / path).resolve()


def _link(link: Path, place: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    part = link.with_name(f".{link.name}.part")
    part.unlink(missing_ok=True)
    part.symlink_to(place)
    part.replace(link)
