"""Coverage of intervals: populations whose truth is known, by hand."""

import numpy as np
import pytest

from benchmarks import coverage
from benchmarks.coverage import CASES, Population, drawn, interval, population


def test_the_truth_of_a_population_is_the_ratio_of_means_over_loads() -> None:
    whole = Population({50: np.array([[1.0, 2.0], [3.0, 2.0]]), 80: np.array([[4.0, 8.0], [4.0, 8.0]])})
    assert whole.truth == pytest.approx((2 + 4) / (2 + 8) - 1)


def test_an_interval_of_equal_gaps_is_that_gap_and_misses_what_is_elsewhere() -> None:
    same = Population({70: np.tile([1.5, 2.0], (20, 1))})
    assert interval(same) == pytest.approx((-0.25, -0.25))


def test_windows_are_drawn_together_for_all_loads_and_jobsets_apart() -> None:
    values = np.arange(30.0)[:, None] * [1, 1] + 1
    together, apart = (
        drawn(Population({1: values, 2: values}, some), 30, np.random.default_rng(3)) for some in (True, False)
    )
    assert (together.costs[1] == together.costs[2]).all()
    assert (apart.costs[1] != apart.costs[2]).any()


def test_seeds_differ_from_repeat_to_repeat_around_their_common_mean() -> None:
    whole = population(CASES["seeds"])
    gaps = [drawn(whole, 200, np.random.default_rng(k)).truth - whole.truth for k in range(40)]
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / np.sqrt(40)
    assert np.std(gaps) > 0.003


def test_an_interval_that_is_too_narrow_is_seen_to_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = coverage.SETTINGS.model_copy(update={"confidence": 0.2})
    monkeypatch.setattr(coverage, "SETTINGS", narrow.model_copy(update={"resamples": 100}))
    found = coverage.measured("one load", 20)
    assert 8 < int(str(found["above"])) + int(str(found["below"])) <= 20
