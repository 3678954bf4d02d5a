"""What all tests share: params.yaml, no deadline where the first call compiles, and one thread for small batches."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
import torch
from builders import params as read_params
from hypothesis import settings
from repositories import LOCATOR, Folder, begin

from pipeline.config import Params

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # as shells start what runs in the background; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


@pytest.fixture(scope="session")
def params() -> Params:
    return read_params()


@pytest.fixture(autouse=True, scope="session")
def threads_at_most() -> int:
    """Waking a second thread for a few episodes takes longer than playing them; tests of threads ask for two."""
    most = numba.get_num_threads()
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    return most


@pytest.fixture
def two_threads(threads_at_most: int) -> Iterator[None]:
    """As many as params.yaml says, where there are so many."""
    numba.set_num_threads(min(2, threads_at_most))
    yield
    numba.set_num_threads(1)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What lets every process of these tests share compiled code, and keeps DVC's own notes out of the system's."""
    place = tmp_path_factory.mktemp("shared")
    (place / "shared_locator.py").write_text(LOCATOR)
    return {
        "PYTHONPATH": str(place),
        "NUMBA_CACHE_LOCATOR_CLASSES": "shared_locator.Shared,InTreeCacheLocator",
        "DVC_SITE_CACHE_DIR": str(place / "dvc"),
        "HOME": str(place),
    }


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> tuple[Folder, str]:
    """A repository in which `dvc repro` ran once, its dvc.lock committed, and what DVC said."""
    folder = begin(tmp_path_factory.mktemp("first") / "repository", environment)
    said = folder.dvc("repro")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "reproduced")
    return folder, said


@pytest.fixture
def folder(reproduced: tuple[Folder, str], tmp_path: Path, environment: dict[str, str]) -> Folder:
    """A copy of it, to be changed."""
    shutil.copytree(reproduced[0].root, tmp_path / "copy", symlinks=True)
    return Folder(tmp_path / "copy", environment)
