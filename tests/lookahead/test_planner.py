"""The planner of all problems: which candidate is taken, and which actions are candidates."""

import numpy as np
import pytest

from pipeline.core.types import FloatArray, IntArray
from pipeline.lookahead.planner import ActionValues, Planner, SearchResult, best_liked
from pipeline.simulation.rollout import Turn

ERROR = np.array([[0.0, 0.4, 3.0], [0.0, 2.0, 0.0]])
COST = np.array([[5.0, 4.0, 3.0], [5.0, 4.0, np.inf]])
VALUES = ActionValues(COST, ERROR, np.array([[6, 6, 6], [6, 6, 0]]))


@pytest.mark.parametrize(("sure", "chosen"), [(0.0, [2, 1]), (1.0, [1, 0]), (0.1, [2, 1])])
def test_an_action_is_taken_only_where_it_is_better_by_so_many_errors(sure: float, chosen: list[int]) -> None:
    assert VALUES.surely_better(sure).tolist() == chosen


@pytest.mark.parametrize(("sure", "chosen"), [(0.0, [2, 1]), (0.5, [1, 0]), (0.1, [2, 1])])
def test_the_least_bound_counts(sure: float, chosen: list[int]) -> None:
    assert VALUES.best_bound(sure).tolist() == chosen  # at 0.5: 4 + 0.2 before 3 + 1.5; 4 + 1 is no less than 5


def test_the_best_liked_stand_behind_the_own_and_superfluous_ones_not_at_all() -> None:
    liked = np.array([[1.0, 3.0, 2.0, -np.inf, 2.0]])
    superfluous = np.array([[True, False, False, False, False]])
    action = np.array([[10, 11, 12, 13, 14]])
    assert best_liked(np.array([2]), action, liked, superfluous, 9).tolist() == [[12, 11, 14, -1, -1]]
    assert best_liked(np.array([0]), action, liked, superfluous, 3).tolist() == [[10, 11, 12]]


class TwoAtOnce:
    """A search whose candidates cost what they are numbered; it notes which decisions it was asked for together."""

    def __init__(self, action: IntArray) -> None:
        self.action, self.asked = action, list[list[int]]()

    def at_once(self, turn: Turn) -> int:
        return 2

    def candidates(self, turn: Turn) -> IntArray:
        return self.action

    def values(self, turn: Turn, action: IntArray) -> ActionValues:
        self.asked.append(turn.rows.tolist())
        cost: FloatArray = np.where(action >= 0, action, np.inf)
        return ActionValues(cost, np.zeros_like(cost), np.where(action >= 0, 1, 0))

    def best(self, values: ActionValues) -> IntArray:
        return values.surely_better(0.0)


def test_decisions_with_several_candidates_are_tried_a_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    search = TwoAtOnce(np.array([[4, 3], [7, -1], [2, 5], [9, 1]]))
    rows = np.arange(4)
    turn = Turn(None, rows, np.zeros((1, 4)), np.zeros(4), rows, rows.astype(np.uint64))  # type: ignore[arg-type]
    monkeypatch.setattr(Turn, "take", lambda self, some: self._replace(rows=self.rows[some]))
    found: SearchResult = Planner(search).look(turn)
    assert search.asked == [[0, 2], [3]]
    assert found.chosen.tolist() == [3, 7, 2, 1]
    assert found.values.futures.tolist() == [[1, 1], [0, 0], [1, 1], [1, 1]]
