"""What the report says first of a scenario that gets more jobs than it can finish; rows by hand."""

import pandas as pd

from pipeline.core.schemas import STREAM_SUMMARY
from pipeline.report.answers import Answer
from pipeline.report.page import overloads

# Policy, load, slowdown, growth and its interval, jobs finished in 100 steps. SJF has the least slowdown.
ROWS = (
    ("sjf", 80, 8.0, 1.5, 1.1, 2.0, 40.0),
    ("sjf", 110, 9.0, 9.5, 9.1, 10.0, 41.0),
    ("net", 80, 12.0, 0.5, 0.25, 1.0, 42.0),
    ("net", 110, 13.0, 4.5, 4.0, 5.0, 43.5),
    ("hold", 80, 11.0, 0.75, 0.5, 1.0, 41.0),
    ("hold", 110, 12.0, 4.75, 4.5, 5.5, 43.0),
)


def told(*, overload: bool = True, words: dict[str, str] | None = None) -> list[Answer]:
    frame = pd.DataFrame(
        ROWS, columns=["policy", "load", "slowdown", "growth", "growth_low", "growth_high", "finished"]
    )
    frame = frame.assign(scenario="busy", n=10, overload=overload, finished_low=39.0, finished_high=44.0)
    frame = frame.assign(jobs=900, longest_wait=412, never_started=0, utilisation=0.7)
    rest = {name: 9.0 for name in STREAM_SUMMARY.columns if name not in frame}
    return list(
        overloads(STREAM_SUMMARY.validate(frame.assign(**rest)[list(STREAM_SUMMARY.columns)]), ["net"], words or {})
    )


def test_an_overload_is_answered_by_the_growth_of_the_backlog_and_not_by_slowdown() -> None:
    (one,) = told()
    assert (one.scenario, one.what, one.use, one.n, one.bars) == ("busy", "growth", "net", 10, [])
    assert one.why == (
        "least growth of the backlog. In 100 steps it grows, and jobs finish, by: at 80 % +0.50 (+0.25 to +1.00) and "
        "42.00 (39.00 to 44.00); at 110 % +4.50 (+4.00 to +5.00) and 43.50 (39.00 to 44.00)."
    )
    assert one.command.endswith("--scenario busy --policy models/net --out schedule.csv")


def test_policies_whose_growth_cannot_be_told_apart_are_named() -> None:
    (one,) = told()
    assert one.not_better == "growth not clearly apart from that of net at any load: hold."


def test_a_policy_that_is_no_model_is_called_as_it_is_played() -> None:
    assert "--policy own:it --out" in told(words={"net": "own:it"})[0].command


def test_a_stream_that_can_be_sustained_is_none() -> None:
    assert told(overload=False) == []
