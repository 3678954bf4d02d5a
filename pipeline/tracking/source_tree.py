"""The source tree of a pipeline run, read from the working directory or from a revision of git.

It consists of the code, params.yaml, dvc.yaml, and dvc.lock, which lists their outputs. Its content has an id, which a
commit does not change and any edit does.
"""

import io
import json
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.config import PARAMS_FILE, Params, check_params
from pipeline.core.config.git import CODE, git
from pipeline.core.config.parsing import parsed
from pipeline.errors import UserError
from pipeline.tracking.digests import digest_of_files, md5_of, read_lock

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LOCK = "dvc.lock"
IGNORED = ".dvcignore"
LOG_STAGE = "log"  # its output is the user's log, an input of the pipeline


class SourceTree:
    """Files by path, and the values read from them."""

    def __init__(self, files: Mapping[str, bytes], where: str) -> None:
        self.files = files
        self.where = where

    @cached_property
    def lock(self) -> dict[str, dict[str, Any]]:
        """Return the stages of dvc.lock by name."""
        found = self._yaml(LOCK) if LOCK in self.files else {}
        stages = found.get("stages", {}) if isinstance(found, dict) else None
        if not isinstance(stages, dict):
            raise UserError(f"{self.where}{LOCK}: expected stages by name")
        return stages

    @cached_property
    def content(self) -> str:
        """Return the id of the content."""
        code = {path: md5_of(data) for path, data in self.files.items() if path not in (LOCK, IGNORED)}
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
        files[LOCK] = read_lock()
    return SourceTree(files, "")


def tree_of(rev: str, title: str) -> SourceTree:
    """Return a revision of git, or raise UserError if it has no pipeline."""
    packed = git("archive", "--format=tar", rev, "--", *CODE, LOCK)
    if packed is None:
        raise UserError(f"{title}: expected a revision with {', '.join((*CODE, LOCK))}")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive if member.isfile()]
        files = {name: stream.read() for name, stream in members if stream is not None}
    ignored = git("show", f"{rev}:{IGNORED}")
    return SourceTree(files if ignored is None else {**files, IGNORED: ignored}, f"{title}: ")
