"""Digests: DVC's md5 of files and folders, the search for outputs of stages by it, and the source tree of a run.

`dvc.lock` identifies a run's inputs and outputs by their md5. Outputs are in the workspace, in DVC's cache or in git.
A source tree is the code, params.yaml, dvc.yaml and dvc.lock, in the working directory or in a revision of git. Its
content has an id, which a commit does not change and any edit does.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.config import PARAMS_FILE, Params, check_params, repository_root
from pipeline.core.config.git import CODE, git
from pipeline.core.config.parsing import parsed
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LOCK = Path("dvc.lock")
IGNORED = ".dvcignore"
LOG_STAGE = "log"  # its output is the user's log, an input of the pipeline
HELD = Path(".dvc/tmp/lock")  # DVC's own lock, which it releases while a stage's command runs
LONGEST_WAIT_S = 60.0
LOOK_S = 0.05
FOLDER = ".dir"  # end of the md5 of a folder


@contextmanager
def dvc_waits() -> Iterator[None]:
    """Wait until DVC is not at work here, for up to LONGEST_WAIT_S, and keep it waiting while the body runs.

    DVC writes dvc.lock in place, which takes a second if it is long; another stage may end while this one reads it.
    """
    try:
        held = HELD.open("rb")
    except OSError:  # no DVC was ever at work here
        yield
        return
    with held:
        until = time.monotonic() + LONGEST_WAIT_S
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            time.sleep(LOOK_S)
        yield


def read_lock() -> bytes:
    """Return the whole of dvc.lock, never a half-written one."""
    with dvc_waits():
        return LOCK.read_bytes()


def digest(path: Path) -> str:
    """Return the md5 of an input: from dvc.lock for outputs of earlier stages, else its own."""
    # Only under DVC: a stage that is run by hand may read files that are newer than dvc.lock.
    locked = None
    if os.environ.get("DVC_STAGE") and LOCK.exists():
        written = LOCK.stat()
        locked = _outs(LOCK.resolve(), (written.st_mtime_ns, written.st_size)).get(path.as_posix())
    return locked or measured(path)


def measured(path: Path) -> str:
    """Return the md5 of a file, or of a folder as DVC computes it (ends in .dir; 36 characters)."""
    if not path.is_dir():
        return _file(path)
    inside = (file for file in path.rglob("*") if file.is_file())
    return digest_of_files({file.relative_to(path).as_posix(): _file(file) for file in inside})


def digest_of_files(files: Mapping[str, str]) -> str:
    """Return DVC's md5 of a folder from the md5 of its files."""
    tree = [{"md5": files[name], "relpath": name} for name in sorted(files)]
    return md5_of(json.dumps(tree, sort_keys=True).encode()) + FOLDER


def md5_of(content: bytes) -> str:
    """Return the md5 of some bytes."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


@lru_cache(maxsize=1)  # a stage has many inputs, and dvc.lock is long
def _outs(_lock: Path, _written: tuple[int, int]) -> dict[str, str | None]:
    """Return the md5 of every output of dvc.lock."""
    stages = parsed(read_lock().decode(), str(LOCK), of_dvc=True)["stages"].values()
    return {out["path"]: out.get("md5") for stage in stages for out in stage.get("outs", [])}


def _file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


class StoredOutputs:
    """Search for the files and folders of dvc.lock; all that it finds have the requested md5."""

    def __init__(self, scratch: Path, rev: str | None = None) -> None:
        """Search the workspace, the cache and, if given, a revision of git; `scratch`, the caller's, is for copies."""
        self._scratch, self._rev = scratch, rev
        self._root = repository_root().absolute()

    @cached_property
    def _cache(self) -> Path:
        from dvc.exceptions import DvcException
        from dvc.repo import Repo

        try:
            with Repo(str(self._root)) as repo:
                return Path(repo.cache.local.path)
        except DvcException as error:
            said = " ".join(str(error).split())
            raise UserError(f"{self._root}: publish needs a repository of git and DVC ({said})") from error

    def find(self, path: str, md5: str) -> Path | None:
        """Return the place of the file or folder with this md5, under its own name, or None if it is not stored."""
        if not md5:
            return None
        for here in (self._root / path, Path(path).absolute()):  # they differ in a temporary experiment
            if here.exists() and measured(here) == md5:
                return here
        copy = self._scratch / md5 / Path(path).name
        if copy.exists() or self._from_cache(copy, md5) or self._from_git(path, copy):
            return copy if measured(copy) == md5 else None
        return None

    def is_here(self, path: str, md5: str) -> bool:
        """Return whether the workspace has the file or folder with this md5."""
        here = self._root / path
        return here.exists() and measured(here) == md5

    def inside(self, md5: str) -> dict[str, str] | None:
        """Return the md5 of each file of a folder, by name, or None if the folder is not in the cache."""
        listing = self._cached(md5)
        return {item["relpath"]: item["md5"] for item in json.loads(listing.read_bytes())} if listing.exists() else None

    def _cached(self, md5: str) -> Path:
        return self._cache / md5[:2] / md5[2:]

    def _from_cache(self, copy: Path, md5: str) -> bool:
        files = self.inside(md5) if md5.endswith(FOLDER) else {"": md5}
        if files is None or not all(self._cached(one).exists() for one in files.values()):
            return False
        for name, one in files.items():
            place = copy / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._cached(one), place)  # not linked: MLflow accepts no links
        return True

    def _from_git(self, path: str, copy: Path) -> bool:
        packed = git("archive", "--format=tar", self._rev, "--", path) if self._rev else None
        if packed is None:
            return False
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            # From Python's documentation, for versions before 3.11.4, which have no `filter`.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(self._scratch / "git")
        copy.parent.mkdir(parents=True, exist_ok=True)
        (self._scratch / "git" / path).rename(copy)
        return True


class SourceTree:
    """Files by path, and the values read from them."""

    def __init__(self, files: Mapping[str, bytes], where: str) -> None:
        self.files = files
        self.where = where

    @cached_property
    def lock(self) -> dict[str, dict[str, Any]]:
        """Return the stages of dvc.lock by name."""
        found = self._yaml(LOCK.name) if LOCK.name in self.files else {}
        stages = found.get("stages", {}) if isinstance(found, dict) else None
        if not isinstance(stages, dict):
            raise UserError(f"{self.where}{LOCK.name}: expected stages by name")
        return stages

    @cached_property
    def content(self) -> str:
        """Return the id of the content."""
        code = {path: md5_of(data) for path, data in self.files.items() if path not in (LOCK.name, IGNORED)}
        log = {out["path"]: out.get("md5") for out in self.lock.get(LOG_STAGE, {}).get("outs", [])}
        return md5_of(json.dumps([code, log], sort_keys=True).encode())[:10]

    @cached_property
    def raw_params(self) -> Any:
        """Return params.yaml unchecked."""
        return self._yaml(PARAMS_FILE.as_posix())

    @cached_property
    def params(self) -> Params:
        """Return params.yaml, checked by today's code."""
        return check_params(self.raw_params, f"{self.where}{PARAMS_FILE}")

    def md5(self, path: str) -> str | None:
        """Return DVC's md5 of a file or folder of the tree, without files that .dvcignore excludes."""
        if path in self.files:
            return md5_of(self.files[path])
        names = [name for name in self.files if name.startswith(f"{path}/") and not self._ignored.match_file(name)]
        inside = {name.removeprefix(f"{path}/"): md5_of(self.files[name]) for name in names}
        return digest_of_files(inside) if inside else None

    @cached_property
    def _ignored(self) -> "GitIgnoreSpec":
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec.from_lines(self.files.get(IGNORED, b"").decode().splitlines())

    def _yaml(self, path: str) -> Any:
        if path not in self.files:
            raise UserError(f"{self.where}{path} is missing")
        try:
            return parsed(self.files[path].decode(), f"{self.where}{path}", of_dvc=True)
        except UnicodeDecodeError as error:
            raise UserError(f"{self.where}{path}: not YAML: {' '.join(str(error).split())[:200]}") from error


def working_tree() -> SourceTree:
    """Return the working directory: files that git tracks or would track; without git, all files of the pipeline."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *CODE)
    if listed is not None:
        names = listed.decode().split("\0")
    else:
        inside = (path for path in Path("pipeline").rglob("*") if path.parent.name != "__pycache__")
        names = [*CODE, *(path.as_posix() for path in inside)]
    paths = [Path(name) for name in {*names, IGNORED} if name]
    files = {path.as_posix(): path.read_bytes() for path in sorted(paths) if path.is_file()}
    with suppress(FileNotFoundError):
        files[LOCK.name] = read_lock()
    return SourceTree(files, "")


def tree_of(rev: str, title: str) -> SourceTree:
    """Return a revision of git, or raise UserError if it has no pipeline."""
    packed = git("archive", "--format=tar", rev, "--", *CODE, LOCK.name)
    if packed is None:
        raise UserError(f"{title}: expected a revision with {', '.join((*CODE, LOCK.name))}")
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive if member.isfile()]
        files = {name: stream.read() for name, stream in members if stream is not None}
    ignored = git("show", f"{rev}:{IGNORED}")
    return SourceTree(files if ignored is None else {**files, IGNORED: ignored}, f"{title}: ")
