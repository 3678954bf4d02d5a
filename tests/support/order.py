"""Order of test files: which ones run first."""

import pytest

# These wait for servers, compile, or run the whole pipeline. If one started last, it would run on its own.
LONG = (
    "test_pipeline",
    "test_controller_killed",
    "test_tracking_outages",
    "test_search",
    "test_publish",
    "test_benchmark",
    "test_failures",
    "test_workflows",
    "test_recipes",
    "test_compiling",
    "test_signals",
    "test_controller_bulk",
    "test_controller",
)
PLACES = {name: number for number, name in enumerate(LONG)}


def place(item: pytest.Item) -> int:
    """Return the position of a test's file: the long ones in their order, then all others."""
    return PLACES.get(item.path.stem, len(LONG))
