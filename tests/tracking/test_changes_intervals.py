"""How far an agent moved, worked by hand."""

import pandas as pd
import pytest

from pipeline.core.config import Evaluation, Params
from pipeline.tracking.changes import Gap, gap, line


def results(agent: str, *slowdowns: float) -> pd.DataFrame:
    """Two jobsets of each of two loads, and those of another policy."""
    rows = {"load": [60, 60, 90, 90], "jobset": [0, 1, 0, 1], "mean_slowdown": slowdowns, "unfinished": 0}
    return pd.concat([pd.DataFrame({"policy": agent, **rows}), pd.DataFrame({"policy": "sjf", **rows})])


@pytest.fixture
def settings(params: Params) -> Evaluation:
    return params.evaluation


def test_the_gap_is_the_mean_over_loads_against_what_it_was(settings: Evaluation) -> None:
    found = gap("net", results("net", 1, 1, 4, 2), results("net", 1, 2, 4, 4), settings, 1)
    assert found.difference == pytest.approx((1.5 + 4) / (1 + 3) - 1)
    assert found.low <= found.difference <= found.high
    assert found.n == 4


def test_nothing_moved_is_nothing(settings: Evaluation) -> None:
    same = results("net", 1, 2, 3, 4)
    assert gap("net", same, same, settings, 1)[:3] == (0, 0, 0)


def test_other_jobsets_are_not_compared(settings: Evaluation) -> None:
    was = results("net", 1, 2, 3, 4)
    with pytest.raises(ValueError, match="was not scored on jobset"):
        gap("net", was.assign(jobset=was["jobset"] + 5), was, settings, 1)


def test_few_jobsets_have_a_range_and_a_narrow_interval_its_digit() -> None:
    assert line("net", 2.0, 2.2, Gap(0.1, 0.05, 0.2, 4)) == "net: 2.00 -> 2.20 (+10 %, range 5 to 20)"
    assert line("net", 2.0, 2.01, Gap(0.005, 0.002, 0.011, 50)) == "net: 2.00 -> 2.01 (+0.5 %, 0.2 to 1.1)"
