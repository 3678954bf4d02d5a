"""Stored outputs of stages, found by md5 in the workspace, DVC's cache or a revision of git."""

import json
import shutil
import tarfile
from functools import cached_property
from io import BytesIO
from pathlib import Path

from pipeline.core.config import repository_root
from pipeline.core.config.git import git
from pipeline.errors import UserError
from pipeline.tracking.digests import measured

FOLDER = ".dir"  # end of the md5 of a folder


class StoredOutputs:
    """Places of the files and folders of dvc.lock; found ones have the requested md5."""

    def __init__(self, scratch: Path, rev: str | None = None) -> None:
        """Search the workspace, the cache and a revision of git, if given; `scratch`, for copies, is the caller's."""
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
        """Return the place of a file or folder of some md5, under its own name, or None if it is not stored."""
        if not md5:
            return None
        if self.is_here(path, md5):
            return self._root / path
        if (mine := Path(path).absolute()).exists() and measured(mine) == md5:  # of a temporary experiment
            return mine
        copy = self._scratch / md5 / Path(path).name
        if copy.exists() or self._from_cache(copy, md5) or self._from_git(path, copy):
            return copy if measured(copy) == md5 else None
        return None

    def is_here(self, path: str, md5: str) -> bool:
        """Return whether the workspace has a file or folder of some md5."""
        here = self._root / path
        return here.exists() and measured(here) == md5

    def inside(self, md5: str) -> dict[str, str] | None:
        """Return the md5 of each file of a folder in the cache, or None."""
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
            shutil.copyfile(self._cached(one), place)  # MLflow takes no links
        return True

    def _from_git(self, path: str, copy: Path) -> bool:
        packed = git("archive", "--format=tar", self._rev, "--", path) if self._rev else None
        if packed is None:
            return False
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            # From Python's documentation, for versions before 3.11.4, which take no `filter`.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(self._scratch / "git")
        copy.parent.mkdir(parents=True, exist_ok=True)
        (self._scratch / "git" / path).rename(copy)
        return True
