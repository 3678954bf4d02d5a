"""CMA-ES: finds a minimum, repeats, and resumes."""

import numpy as np
import pytest

from pipeline.core.types import FloatArray
from pipeline.learning.evolution import DIAGONAL_FROM, Evolution

TARGET = np.array([1.0, -2.0, 0.5])


def cost(candidates: FloatArray) -> FloatArray:
    return np.asarray(((candidates - np.resize(TARGET, candidates.shape[1])) ** 2).sum(axis=1))


def evolved(generations: int, weights: int = 3) -> Evolution:
    search = Evolution(np.zeros(weights), 0.5, 12, seed=3)
    for _ in range(generations):
        search.tell(cost(search.ask()))
    return search


def test_it_finds_the_weights_of_least_cost() -> None:
    assert np.abs(evolved(80).mean - TARGET).max() < 1e-3


@pytest.mark.parametrize("weights", [3, DIAGONAL_FROM])
def test_resumed_it_goes_on_to_the_same_bits(weights: int) -> None:
    before = evolved(5, weights)
    resumed = Evolution(np.zeros(weights), 0.5, 12, seed=3)
    resumed.load_state_dict(before.state_dict())
    for search in (before, resumed):
        search.tell(cost(search.ask()))
    assert np.array_equal(before.mean, resumed.mean)
    assert np.array_equal(before.ask(), resumed.ask())


def test_other_seeds_draw_other_candidates() -> None:
    one, other = (Evolution(np.zeros(3), 0.5, 12, seed).ask() for seed in (3, 4))
    assert one.shape == (12, 3)
    assert not np.array_equal(one, other)


def test_what_is_learned_is_the_mean_of_the_last_centres() -> None:
    averaged, centres = Evolution(np.zeros(3), 0.5, 12, seed=3, averaged=0.4), [evolved(n).mean for n in range(1, 11)]
    for _ in range(10):
        averaged.tell(cost(averaged.ask()))
    assert averaged.mean == pytest.approx(np.mean(centres[-4:], axis=0))
    assert np.abs(averaged.mean - centres[-1]).max() > 1e-3
