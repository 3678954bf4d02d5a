"""Periods of a log: training first, then validation, then test."""

import pytest

from pipeline.core.config import PoolLog
from pipeline.core.logs.windows import periods


@pytest.mark.parametrize("jobs", [0, 1, 7, 100, 15_000])
@pytest.mark.parametrize("shares", [(0.6, 0.15), (0.7, 0.2), (1 / 3, 1 / 3)])
def test_periods_follow_each_other_and_leave_nothing_out(jobs: int, shares: tuple[float, float]) -> None:
    spans = periods(jobs, PoolLog(name="swf", path="", train_share=shares[0], validation_share=shares[1]))
    assert list(spans) == ["train", "validation", "test"]
    ends = [end for span in spans.values() for end in span]
    assert ends == [0, ends[1], ends[1], ends[3], ends[3], jobs]
    assert ends == sorted(ends)


def test_default_periods_of_a_thousand_jobs() -> None:
    log = PoolLog(name="swf", path="")
    assert periods(1000, log) == {
        "train": (0, 600),
        "validation": (600, 750),
        "test": (750, 1000),
    }
