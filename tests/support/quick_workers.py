"""Policy processes of a service, forked from a process that has already imported the code and decided once.

Each is still a separate process. Not for tests of how such a process starts.
"""

import os
from collections.abc import Iterator
from multiprocessing import forkserver, get_context
from pathlib import Path

import pytest

READY = "decided_before"  # the module that the process imports first
# One thread, as in a policy process; a process that has used OpenMP must not fork.
THREADS = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue"}


@pytest.fixture(scope="module", autouse=True)
def quick_workers() -> Iterator[None]:
    context = get_context("forkserver")
    context.set_forkserver_preload([READY])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in THREADS.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        forkserver.ensure_running()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.serving.worker.get_context", lambda _: context)
        yield
