"""How the best heuristic of a pooled cluster is chosen."""

import pandas as pd
import pytest

from pipeline.config import Params
from pipeline.problems.parts import Best
from pipeline.problems.pool.scoring import scoring
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
