"""What all tests share: params.yaml, no deadline where the first call compiles, and one thread for small batches."""

from collections.abc import Iterator

import numba
import pytest
from builders import params as read_params
from hypothesis import settings

from pipeline.config import Params

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


@pytest.fixture(scope="session")
def params() -> Params:
    return read_params()


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Waking a second thread for a few episodes takes longer than playing them; tests of threads set their own."""
    numba.set_num_threads(1)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """What params.yaml says."""
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    yield
    numba.set_num_threads(1)
