"""What all tests share: params.yaml, no deadline where the first call compiles, and one thread for small batches."""

from collections.abc import Iterator

import numba
import pytest
import torch
from builders import params as read_params
from hypothesis import settings

from pipeline.config import Params

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
