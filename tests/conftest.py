"""What all tests share: params.yaml, no deadline where the first call compiles, and one thread for small batches."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

# Before what reads them once: as many threads on every machine, and in every worker; the second is for `two_threads`.
os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "2"}

import numba
import pytest
import torch
from builders import REPOSITORY
from builders import params as read_params
from hypothesis import settings
from live import LIVE, WHOLE
from once import once
from order import place
from repositories import Folder, begin
from skips import reasons
from warm import warm

from pipeline.core.config import Params

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # as shells start what runs in the background; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs a real server, and what runs the whole pipeline."""
    for marker, files in {"live": LIVE, "whole": WHOLE}.items():
        if item.path.stem in files:
            item.add_marker(marker)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, behind pytest-randomly's shuffle."""
    items.sort(key=place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why tests were skipped, a line a reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    for line in reasons(report.longrepr[2] for report in skipped):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def params() -> Params:
    return read_params()


def pin() -> None:
    """One thread: waking a second one for a few episodes takes longer than playing them."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)


pin()
OF_THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Undo what a test sets, as commands within its process do; else results would depend on the order of tests."""
    before = {name: os.environ.get(name) for name in OF_THREADS}
    yield
    pin()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def two_threads() -> None:
    """As many as params.yaml says, where there are so many."""
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What lets every process of these tests share compiled code, and keeps DVC's own notes out of the system's."""
    place = tmp_path_factory.mktemp("shared")
    return {
        "PYTHONPATH": str(REPOSITORY / "tests" / "support" / "in_processes"),
        "NUMBA_CACHE_LOCATOR_CLASSES": "shared_locator.Shared,InTreeCacheLocator",
        "DVC_SITE_CACHE_DIR": str(place / "dvc"),
        "HOME": str(place),
    }


@pytest.fixture(scope="session")
def warm_environment(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same, and `python` begins DVC and the pipeline as `warm` has it."""
    with TemporaryDirectory(prefix="warm") as place, warm(Path(place)) as programs:
        tools = Path(sys.executable).parent
        yield environment | {"PATH": os.pathsep.join(map(str, (programs, tools, os.environ["PATH"])))}


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory, warm_environment: dict[str, str]) -> tuple[Folder, str]:
    """A repository in which `dvc repro` ran once, its dvc.lock committed, and what DVC said; not to be changed."""

    def make(place: Path) -> str:
        folder = begin(place / "repository", warm_environment)
        said = folder.dvc("repro")
        folder.git("add", "--all")
        folder.git("commit", "--quiet", "-m", "reproduced")
        return said

    place, said = once(tmp_path_factory, "reproduced", make)
    return Folder(place / "repository", warm_environment), said


@pytest.fixture
def folder(reproduced: tuple[Folder, str], tmp_path: Path) -> Folder:
    """A copy of it, to be changed."""
    return reproduced[0].copied(tmp_path / "copy")
