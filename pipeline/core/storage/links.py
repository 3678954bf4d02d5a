"""Users' logs and external policies, linked into data/ so that DVC sees their content.

data/log is the shared log, or a note if there is none; it is a folder if the log is a folder or has a file of `nodes`.
data/logs/<scenario> is a folder for every scenario, with `log`, `nodes` and `outages` of its own log, or a note. DVC
does not see the content of a linked folder, so a log of many files becomes a folder of links. data/policies/<name> has
a policy's files.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pipeline.core.config import External, GroupsLog, MachinesLog, Params, PoolLog, PoolScenario, repository_root
from pipeline.core.config.evaluation import FILES, place_of
from pipeline.core.storage.files import discard, write
from pipeline.core.storage.paths import LOG, LOGS, OUTAGES_NAME, POLICIES, policy_folder, scenario_log
from pipeline.core.types import LOG_NAME, NODES_NAME
from pipeline.errors import UserError


def link_log(params: Params) -> None:
    """Link data/log and data/logs to the logs of params.yaml, and write a note where there is no log."""
    shared = _log_files("workload", params.workload) if isinstance(params.workload, PoolLog) else {}
    wanted: dict[str, dict[Path, Path]] = {}  # all are found before anything changes
    for name, row in params.scenarios.items():
        own = getattr(row, "workload", None)
        place = f"scenarios.{name}.workload"
        wanted[name] = _log_files(place, own) if isinstance(own, MachinesLog | GroupsLog) else {}
    with _linking(LOG):
        if LOG.is_symlink() or not LOG.is_dir():
            LOG.unlink(missing_ok=True)  # never write through a link into the user's log
        else:
            discard(LOG)
        discard(LOGS)
        _link_all(LOG, {Path(): shared[Path(LOG_NAME)]} if list(shared) == [Path(LOG_NAME)] else shared)
        for name, files in wanted.items():
            _link_all(scenario_log(name), files)
    if not shared:
        write(LOG, b"The workload is synthetic: there is no log.\n")
    for name, row in params.scenarios.items():
        if not wanted[name]:
            source = "in data/log" if isinstance(row, PoolScenario) else "synthetic"
            note = f"The jobs of this scenario are {source}: it has no log of its own.\n"
            write(scenario_log(name) / "note", note.encode())


def _log_files(row: str, workload: PoolLog | MachinesLog | GroupsLog) -> dict[Path, Path]:
    """Return the files of a log, by their place in its folder."""
    where, place = f"params.yaml: {row}", (repository_root() / workload.path).resolve()
    if place.is_dir():
        found = {Path(LOG_NAME) / file.relative_to(place): file for file in place.rglob("*") if file.is_file()}
        if not found:
            raise UserError(f"{where}.path: expected files in {place}, found none")
    elif place.is_file():
        found = {Path(LOG_NAME): place}
    else:
        raise UserError(f"{where}.path: no such file or folder: {place}")
    if not isinstance(workload, GroupsLog) and workload.nodes is not None:
        nodes = (repository_root() / workload.nodes).resolve()
        if not nodes.is_file():
            raise UserError(f"{where}.nodes: no such file: {nodes}")
        found[Path(NODES_NAME)] = nodes
    for number, name in enumerate(workload.outages if isinstance(workload, MachinesLog) else ()):
        found[Path(OUTAGES_NAME) / str(number)] = file = (repository_root() / name).resolve()
        if not file.is_file():
            raise UserError(f"{where}.outages: no such file: {file}")
    return found


def source_of(word: str) -> Path:
    """Return the absolute path of an external policy's file; a UserError if there is none."""
    place = place_of(word)
    found = repository_root() / place if place.endswith(FILES) else _module_file(place)
    if found is None or not found.is_file():
        raise UserError(f"policy '{word}': no such file or module: {place}")
    return found.resolve()


def _module_file(module: str) -> Path | None:
    base = repository_root().joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and Path(spec.origin).is_file() else None


def link_policies(params: Params) -> None:
    """Point data/policies at the files of external policies, or write a plain note."""
    wanted = {name: _policy_files(name, row) for name, row in params.policies.items()}
    with _linking(POLICIES):
        discard(POLICIES)
        for name, files in wanted.items():
            _link_all(policy_folder(name), files)
    if not wanted:
        write(POLICIES / "note", b"There are no external policies.\n")


def _policy_files(name: str, row: External) -> dict[Path, Path]:
    where = f"params.yaml: policies.{name}"
    try:
        found = {Path("policy"): source_of(row.policy)}
    except UserError as error:
        raise UserError(f"{where}.policy: {error}") from None
    for k, path in enumerate(row.files):
        place = (repository_root() / path).resolve()
        if not place.exists():
            raise UserError(f"{where}.files: no such file or folder: {place}")
        inside = [file for file in sorted(place.rglob("*")) if file.is_file() and "__pycache__" not in file.parts]
        linked = {Path(str(k)) / file.relative_to(place): file for file in inside}
        found |= linked if place.is_dir() else {Path(str(k)): place}
    return found


@contextmanager
def _linking(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{error.filename or place}: cannot be written ({error.strerror})") from error


def _link_all(folder: Path, files: Mapping[Path, Path]) -> None:
    for inside, file in files.items():
        link = folder / inside
        link.parent.mkdir(parents=True, exist_ok=True)
        part = link.with_name(f".{link.name}.part")
        part.unlink(missing_ok=True)
        part.symlink_to(file)
        part.replace(link)
