"""How policies of a pooled cluster are scored: the best heuristic, and who may place jobs ahead."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.core.config import Params
from pipeline.interactive.pool.policies import cluster_for
from pipeline.problems.parts import Best
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.heuristics.scores import HEURISTICS, scoring
from pipeline.simulation.results import Results


def results(**slowdowns: tuple[float, float]) -> dict[str, Results]:
    """Of policies: the mean slowdown at 10 and 90 %."""
    frames = {name: pd.DataFrame({"load": [10, 90], "mean_slowdown": means}) for name, means in slowdowns.items()}
    return {name: Results(pd.DataFrame(), frame) for name, frame in frames.items()}


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [("online", Best({10: "sjf", 90: "hold"})), ("unknown_load", Best({10: "even", 90: "even"}, single=True))],
)
def test_the_best_heuristic_is_one_for_all_loads_where_policies_do_not_know_the_load(
    params: Params, scenario: str, expected: Best
) -> None:
    examined = results(sjf=(1.0, 9.0), hold=(4.0, 5.0), even=(2.0, 6.0))  # means 5, 4.5 and 4
    assert scoring(params, scenario).best(examined) == expected


NOW, AHEAD = [0, 5, 4], [0, 4, 9]  # starts by SJF of three jobs that each need all there is, the second one long


@pytest.mark.parametrize(
    ("ahead", "by_rule", "by_agent"), [(False, NOW, NOW), (True, AHEAD, AHEAD), ("agents", NOW, AHEAD)]
)
def test_a_scenario_says_who_may_reserve_steps_to_come(
    params: Params, tmp_path: Path, ahead: object, by_rule: list[int], by_agent: list[int]
) -> None:
    # In step 1 only the long job waits: who may reserve gives it step 4 at once. In step 4 both wait.
    row = params.pool_scenario("online").model_copy(update={"place_ahead": ahead})
    rows = params.model_copy(update={"scenarios": {**params.scenarios, "online": row}})
    jobs = JobSet(np.array([0, 1, 2]), np.array([4, 5, 1]), np.full((3, 2), 10))
    for agent, expected in ((None, by_rule), ("deeprm", by_agent)):
        found = scoring(rows, "online", agent).score({"": HEURISTICS["sjf"]}, jobsets={10: [jobs]})[""]
        assert found.jobs["start"].tolist() == expected
    model, rule = cluster_for(str(tmp_path), row), cluster_for("sjf", row)
    assert (rule.place_ahead, model.place_ahead) == (by_rule == AHEAD, by_agent == AHEAD)
    assert cluster_for("plan_sjf", row) == rule
    assert cluster_for(f"plan_{tmp_path}", row).place_ahead == model.place_ahead
