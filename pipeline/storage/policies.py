"""External policies: their files, linked into data/policies so that DVC sees their content; and why one failed."""

from importlib.util import find_spec
from pathlib import Path

from pipeline.config import External, Params, repository_root
from pipeline.config.external import FILES, place_of
from pipeline.errors import UserError
from pipeline.storage.files import discard, missing, read_text, write
from pipeline.storage.logs import link_all
from pipeline.storage.paths import POLICIES, results_folder

FAILED = "failed.txt"  # among its results, where it has none: one line


def source_of(word: str) -> Path:
    """Return the file that an external policy is in, as an absolute path.

    Raises:
        UserError: there is none.
    """
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


def policy_folder(name: str) -> Path:
    """Return where the files of an external policy are linked."""
    return POLICIES / name


def link_policies(params: Params) -> None:
    """Point data/policies at the files of external policies; a plain note is there where there is none.

    Raises:
        UserError: a file is not there, or a link cannot be written.
    """
    wanted = {name: _files(name, row) for name, row in params.policies.items()}
    try:
        discard(POLICIES)
        for name, files in wanted.items():
            link_all(policy_folder(name), files)
    except OSError as error:
        raise UserError(f"{error.filename or POLICIES}: cannot be written ({error.strerror})") from error
    if not wanted:
        write(POLICIES / "note", b"There are no external policies.\n")


def _files(name: str, row: External) -> dict[Path, Path]:
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


def write_failure(place: Path, line: str) -> None:
    """Write why a policy has no results, in their place."""
    write(place / FAILED, f"{line}\n".encode())


def failures(params: Params) -> dict[str, str]:
    """Return why each external policy that failed has no results, by its name."""
    files = {name: results_folder("policies", name) / FAILED for name in params.policies}
    return {name: read_text(file).strip() for name, file in files.items() if file.is_file()}


def scored(params: Params, scenario: str) -> list[str]:
    """Return who is judged on a scenario, without external policies that failed."""
    failed = failures(params)
    return [name for name in params.agents_of(scenario) if name not in failed]


def check_passed(name: str) -> None:
    """Refuse an external policy that failed.

    Raises:
        UserError: it did, and why.
    """
    place = results_folder("policies", name)
    if not place.is_dir():
        raise missing(place)
    if (place / FAILED).is_file():
        again = f"after a change of its file 'dvc repro'; the same once more: 'dvc repro -sf policy@{name}'"
        raise UserError(f"{read_text(place / FAILED).strip()}; {again}")
