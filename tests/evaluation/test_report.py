"""Tables and sentences a reader can check against the numbers."""

import pandas as pd
import pandera.pandas as pa

from pipeline.evaluation.report import headline, table
from pipeline.schemas import COMPARISON, DELAY, empty

COLUMNS = ["load", "policy", "mean", "mean_against", "difference", "difference_low", "difference_high", "unfinished"]
ROWS = [
    ("010", "net", 1.50, 1.50, 0.004, -0.010, 0.021, 0),
    ("130", "net", 3.65, 5.00, -0.271, -0.292, -0.250, 0),
    ("all", "net", 2.575, 3.25, -0.208, -0.230, -0.190, 0),
    ("010", "lpt", 3.00, 1.50, 1.0, 0.9, 1.1, 0),
    ("130", "lpt", 9.00, 5.00, 0.8, 0.7, 0.9, 3),
    ("all", "lpt", 6.00, 3.25, 0.846, 0.8, 0.9, 3),
]


def comparison(
    rows: list[tuple[str, str, float, float, float, float, float, int]], schema: pa.DataFrameSchema = COMPARISON
) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(scenario="online", against="sjf", low=1.0, high=9.0)
    frame["n"] = frame["load"].map({"010": 200, "130": 200, "all": 400})
    return schema.validate(frame[list(schema.columns)])


def test_the_table_ranks_policies_and_shows_the_reference_among_them() -> None:
    lines = table(comparison(ROWS)).splitlines()
    assert lines[0].startswith("**online**: mean slowdown (difference from sjf")
    assert lines[2:] == [
        "| policy | 10 | 130 | all |",
        "| --- | ---: | ---: | ---: |",
        "| net | 1.50 (+0.4 ±1.6 %) | **3.65** (-27.1 ±2.1 %) | **2.58** (-20.8 ±2.0 %) |",
        "| sjf | 1.50 | 5.00 | 3.25 |",
        "| lpt | 3.00 (+100.0 ±10.0 %) | 9.00† (+80.0 ±10.0 %) | 6.00† (+84.6 ±5.0 %) |",
    ]


def test_a_headline_tells_all_loads_then_the_best_and_the_worst() -> None:
    assert headline(comparison(ROWS), {"net"}, 0.95) == [
        "net (online): mean slowdown 20.8 % below sjf over all loads (95 % interval 19.0 to 23.0, n = 400 jobsets)",
        "net (online): mean slowdown 27.1 % below sjf at load 130 (95 % interval 25.0 to 29.2, n = 200 jobsets)",
        "net (online): mean slowdown 0.4 % above sjf at load 10 "
        "(95 % interval 1.0 below to 2.1 above, n = 200 jobsets)",
    ]


def test_a_headline_of_one_load_is_one_sentence_and_tells_unfinished_jobs() -> None:
    one_load = [ROWS[4], ROWS[5]]
    assert headline(comparison(one_load), {"lpt"}, 0.9) == [
        "lpt (online): mean slowdown 80.0 % above sjf at load 130 "
        "(90 % interval 70.0 to 90.0, n = 200 jobsets; 3 jobs unfinished, so at least this slow)",
    ]


def test_a_table_of_waiting_times_says_so() -> None:
    waits = [("130", "net", 0.50, 0.80, -0.375, -0.5, -0.25, 2), ("all", "net", 0.50, 0.80, -0.375, -0.5, -0.25, 2)]
    frame = comparison(waits, DELAY)
    lines = table(frame, "waiting time").splitlines()
    assert lines[0] == (
        "**online**: mean waiting time (difference from sjf, ± half its interval). Bold: the whole interval is below. "
        "†: some jobs unfinished, so at least this long."
    )
    assert lines[2:] == [
        "| policy | 130 |",
        "| --- | ---: |",
        "| net | **0.50**† (-37.5 ±12.5 %) |",
        "| sjf | 0.80 |",
    ]


def test_of_no_comparison_there_is_no_table() -> None:
    assert table(empty(DELAY), "waiting time") == ""
