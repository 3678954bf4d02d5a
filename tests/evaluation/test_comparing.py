"""The numbers that DVC shows of a comparison: few, named, and by hand what the tables say."""

import pandas as pd
import pytest

from pipeline.evaluation.comparing import key_metrics, slowdown_curves
from pipeline.schemas import COMPARISON, SUMMARY

# Mean slowdown at loads 50 and 150; over both, sjf 4, tetris 3.5, hold 3, net 2.5, fcfs 8.
MEANS = {"fcfs": (4.0, 12.0), "hold": (2.0, 4.0), "net": (2.0, 3.0), "sjf": (2.0, 6.0), "tetris": (1.5, 5.5)}
BEST = (1.5 + 4.0) / 2  # tetris at load 50, hold at 150
REST = {"p50_slowdown": 1.0, "p99_slowdown": 1.0, "worst_slowdown": 9.0, "completion_time": 5.0, "makespan": 40.0}


def summaries() -> pd.DataFrame:
    rows = [
        {"scenario": "online", "load": load, "policy": policy, "slowdown": means[k], "unfinished": k}
        for policy, means in MEANS.items()
        for k, load in enumerate((50, 150))
    ]
    frame = pd.DataFrame(rows).assign(n=10, jobs=90, utilisation=0.5, not_work_conserving=0.0, **REST)
    frame = frame.assign(slowdown_low=frame["slowdown"] - 0.5, slowdown_high=frame["slowdown"] + 0.5)
    return SUMMARY.validate(frame[list(SUMMARY.columns)])


def comparisons() -> pd.DataFrame:
    mean = {policy: sum(means) / 2 for policy, means in MEANS.items()}
    against = {"sjf": mean["sjf"], "best_heuristic": BEST}
    rows = [
        {"policy": policy, "against": name, "mean": mean[policy], "mean_against": other}
        | {"difference": mean[policy] / other - 1}
        for name, other in against.items()
        for policy in MEANS
        if policy != name
    ]
    frame = pd.DataFrame(rows).assign(scenario="online", load="all", n=20, low=1.0, high=9.0, unfinished=0)
    frame = frame.assign(difference_low=-1.0, difference_high=1.0)
    other_load = frame.assign(load="050", mean_against=1.0, difference=9.0)
    return COMPARISON.validate(pd.concat([other_load, frame])[list(COMPARISON.columns)])


def test_key_metrics_are_those_over_all_loads() -> None:
    found = key_metrics(summaries(), comparisons(), ["net", "of_another_scenario"])
    assert found == {
        "online": {
            "best_heuristic": {"slowdown": BEST},
            "hold": {"slowdown": 3.0},
            # 2.5 is 9.09 % below 2.75, and 37.5 % below 4.
            "net": {"percent_from_best": -9.09, "percent_from_sjf": -37.5, "slowdown": 2.5},
            "sjf": {"slowdown": 4.0},
            "tetris": {"slowdown": 3.5},
            "unfinished_jobs": 5,
        }
    }


def test_key_metrics_are_in_order_of_name_whatever_the_order_of_agents() -> None:
    found = key_metrics(summaries(), comparisons(), ["net", "fcfs"])["online"]
    assert list(found) == ["best_heuristic", "fcfs", "hold", "net", "sjf", "tetris", "unfinished_jobs"]


@pytest.mark.parametrize("place", [0, -1])
def test_curves_are_records_in_order_of_policy_and_load(place: int) -> None:
    found = slowdown_curves(summaries().sample(frac=1, random_state=7))
    first = {"scenario": "online", "load": 50, "policy": "fcfs", "slowdown": 4.0, "low": 3.5, "high": 4.5}
    last = {"scenario": "online", "load": 150, "policy": "tetris", "slowdown": 5.5, "low": 5.0, "high": 6.0}
    assert len(found) == 10
    assert found[place] == (first, last)[place]
