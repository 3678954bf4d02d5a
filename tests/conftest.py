"""Shared set-up of all tests: params.yaml, no deadline where the first call compiles, one thread for small batches."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

# Set before libraries read them once: the same threads on every machine and in every worker; two for `two_threads`.
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

from pipeline import progress
from pipeline.core.config import Params
from pipeline.simulation import compiled

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # shells start background jobs with SIGINT ignored, and children inherit this
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that need a real server, and tests that run the whole pipeline."""
    for marker, files in {"live": LIVE, "whole": WHOLE}.items():
        if item.path.stem in files:
            item.add_marker(marker)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, after pytest-randomly has shuffled all."""
    items.sort(key=place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were skipped, one line per reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    for line in reasons(report.longrepr[2] for report in skipped):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def params() -> Params:
    return read_params()


def pin() -> None:
    """Use one thread: waking a second one for a few episodes takes longer than running them."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)


pin()
OF_THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Undo what a test or a command in its process sets, so that results do not depend on the order of tests."""
    before = {name: os.environ.get(name) for name in OF_THREADS}
    yield
    progress.for_programs = False
    pin()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use as many threads as params.yaml says, if there are that many, for the shortest loops too."""
    monkeypatch.setattr(compiled, "WORTH_S", 1e-12)
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment in which all test processes share compiled code, and DVC's notes stay out of the system's folders."""
    place = tmp_path_factory.mktemp("shared")
    return {
        "PYTHONPATH": str(REPOSITORY / "tests" / "support" / "in_processes"),
        "NUMBA_CACHE_LOCATOR_CLASSES": "shared_locator.Shared,InTreeCacheLocator",
        "DVC_SITE_CACHE_DIR": str(place / "dvc"),
        "HOME": str(place),
    }


@pytest.fixture(scope="session")
def warm_environment(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same environment, in which `python` forks DVC and the pipeline from the warm process (`warm`)."""
    with TemporaryDirectory(prefix="warm") as place, warm(Path(place)) as programs:
        tools = Path(sys.executable).parent
        yield environment | {"PATH": os.pathsep.join(map(str, (programs, tools, os.environ["PATH"])))}


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory, warm_environment: dict[str, str]) -> tuple[Folder, str]:
    """A repository after one `dvc repro`, with its dvc.lock committed, and DVC's output; tests must not change it."""

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
    """A copy of that repository, which tests may change."""
    return reproduced[0].copied(tmp_path / "copy")
