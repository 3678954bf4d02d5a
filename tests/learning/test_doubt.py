"""How unsure a network is, and what is tried, where several actions are as good as one another."""

import numpy as np

from pipeline.learning.doubt import chances, doubt, likeliest

LIKE = np.array([[0, 0, 2], [0, 0, 2]])


def test_doubt_counts_actions_that_are_alike_as_one() -> None:
    chance = np.array([[0.25, 0.25, 0.5], [0.5, 0.5, 0.0]])
    assert doubt(chance, LIKE).tolist() == [0.5, 0.0]


def test_a_chance_below_the_least_is_no_doubt() -> None:
    chance = np.array([[0.5, 0.375, 0.125]])
    assert doubt(chance, LIKE[:1]).tolist() == [1 - 0.875**2 - 0.125**2]
    assert doubt(chance, LIKE[:1], least=0.125).tolist() == [0.0]


def test_what_is_as_good_as_the_likeliest_is_tried_with_it() -> None:
    logits, may = np.array([[1.0, 9.0, 2.0], [1.0, 9.0, 0.5]]), np.array([[True] * 3, [True, False, True]])
    found = likeliest(logits, LIKE, may, most=1)  # the second stands behind the first, whatever its own logit is
    assert found.tolist() == [[False, False, True], [True, False, False]]
    assert likeliest(logits, LIKE, may, most=2).tolist() == may.tolist()


def test_chances_are_those_among_what_is_tried() -> None:
    found = chances(np.log([[1.0, 3.0, 4.0]]), np.array([[True, True, False]]))
    np.testing.assert_allclose(found, [[0.25, 0.75, 0.0]])
