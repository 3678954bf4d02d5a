"""Teachers of a pooled cluster are its heuristics, untuned."""

import numpy as np

from pipeline.core.config import LinearRuleSearch
from pipeline.problems.pool.env.simulator.linear_rule import WEIGHTS
from pipeline.problems.pool.env.teachers import COMPILED, FEATURES, FIRST, TEACHERS, least_cost, linear_weights
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import compiled_rule_of


def test_a_teacher_is_the_heuristic_of_its_name() -> None:
    assert {name: compiled_rule_of(HEURISTICS[name]) for name in COMPILED} == COMPILED
    assert len(COMPILED) == len(TEACHERS)


def test_of_equally_good_candidates_the_first_is_kept() -> None:
    found = least_cost(lambda drawn: np.zeros(len(drawn)), LinearRuleSearch(population=6, rounds=3, elite=2), seed=1)
    assert found == FIRST[0]


def test_weights_stand_in_the_order_of_their_features() -> None:
    assert len(linear_weights()) == len(FEATURES) == WEIGHTS
    assert linear_weights(narrow=2.0)[:3] == (0.0, 2.0, 0.0)
