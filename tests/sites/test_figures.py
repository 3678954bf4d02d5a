"""Figures of waits and their intervals, compared with hand computation and numpy."""

import numpy as np
import pytest
from queue_builders import Job, period, queue

from pipeline.sites.figures import Draws, blocks_of, draws, expanded, figures, slowdown

DAY = 86_400.0
RUN = np.array([10.0, 100.0, 1.0, 40.0])
TODAY = np.array([[0.0, 100.0, 9.0, 60.0]])  # mean 42.25; slowdowns 1, 2, 1, 2.5
WAIT = np.array([[0.0, 20.0, 49.0, 10.0]])  # mean 19.75; slowdowns 1, 1.2, 5, 1.25
BLOCK = np.array([0, 0, 1, 1])


def drawn(*blocks: list[float], replays: list[list[float]] | None = None) -> Draws:
    """Given draws, whose extremes are the interval."""
    weights = [[1.0]] * len(blocks) if replays is None else replays
    return Draws(np.array(blocks, dtype=float), np.array(weights), (0.0, 1.0))


def test_blocks_have_three_days_and_no_gaps() -> None:
    at = (5, 9, 9 + 1, 9 + 2.99, 9 + 3, 9 + 9.5)
    assert blocks_of(period(queue([1], *(Job(day * DAY, 1) for day in at)), first=1)).tolist() == [0, 0, 0, 1, 2]


def test_slowdowns_are_bounded_on_both_sides() -> None:
    """(9 + 1) / 10, not (9 + 1) / 1; (2 + 1) / 10 is raised to 1."""
    assert slowdown(np.array([100.0, 9.0, 2.0]), np.array([100.0, 1.0, 1.0])).tolist() == [2.0, 1.0, 1.0]


def test_every_measure_of_four_jobs() -> None:
    found = figures(WAIT, TODAY, RUN, BLOCK, drawn([1, 1], [1, 1]))
    assert list(found) == ["wait", "p99_wait", "longest_wait", "slowdown", "gain"]
    values = {name: (one.value, one.today) for name, one in found.items()}
    assert values["wait"] == (19.75, 42.25)
    assert values["p99_wait"] == values["longest_wait"] == (49.0, 100.0)
    assert values["slowdown"] == pytest.approx((2.1125, 1.625))
    changes = {name: one.change for name, one in found.items()}
    wanted = {"wait": 19.75 / 42.25 - 1, "p99_wait": -0.51, "longest_wait": -0.51, "slowdown": 0.3}
    assert changes == pytest.approx(wanted | {"gain": (19.75 / 42.25 * 1.3) ** 0.5 - 1})
    assert found["gain"].value == pytest.approx((19.75 / 42.25 * 1.3) ** 0.5)


def test_an_interval_is_that_of_the_resamples_and_not_of_the_sample() -> None:
    """Mean waits of the blocks are 10 and 29.5, compared with 50 and 34.5 today."""
    found = figures(WAIT, TODAY, RUN, BLOCK, drawn([1, 1], [2, 0], [0, 2]))["wait"]
    assert (found.low, found.high) == pytest.approx((-0.8, 29.5 / 34.5 - 1))
    assert found.change == pytest.approx(19.75 / 42.25 - 1)


def test_blocks_weigh_by_their_jobs() -> None:
    block = np.array([0, 1, 1, 1])
    found = figures(WAIT, TODAY, RUN, block, drawn([1, 1], [3, 1]))["wait"]
    assert found.low == pytest.approx((3 * 0 + 79) / (3 * 0 + 169) - 1)
    assert figures(WAIT + 6, TODAY + 6, RUN, block, drawn([1, 1], [3, 1]))["wait"].low == pytest.approx(115 / 205 - 1)


def test_replays_are_resampled_together_with_blocks() -> None:
    """Mean waits of the replays are 19.75 and 39.5, compared with 42.25 twice, or with 42.25 and 84.5."""
    one, two = np.vstack([WAIT, 2 * WAIT]), np.vstack([TODAY, TODAY])
    weights = [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    found = figures(one, two, RUN, BLOCK, drawn([1, 1], [1, 1], [1, 1], replays=weights))["wait"]
    assert found[:3] == pytest.approx((29.625, 42.25, 29.625 / 42.25 - 1))
    assert (found.low, found.high) == pytest.approx((19.75 / 42.25 - 1, 39.5 / 42.25 - 1))
    paired = figures(one, np.vstack([TODAY, 2 * TODAY]), RUN, BLOCK, drawn([1, 1], [1, 1], [1, 1], replays=weights))
    assert (paired["wait"].low, paired["wait"].high) == pytest.approx((19.75 / 42.25 - 1,) * 2)


def test_the_interval_of_the_longest_wait_is_its_range_over_replays() -> None:
    wait, today = np.array([[1.0, 10.0], [30.0, 2.0]]), np.array([[20.0, 3.0], [3.0, 20.0]])
    some = drawn([1, 1], [2, 0], [0, 2], replays=[[0.5, 0.5]] * 3)
    found = figures(wait, today, RUN[:2], BLOCK[1:3], some)["longest_wait"]
    assert found == pytest.approx((20.0, 20.0, 0.0, -0.5, 0.5))


def test_jobs_that_never_wait_under_either_order_have_no_change() -> None:
    found = figures(0 * WAIT, 0 * TODAY, RUN, BLOCK, drawn([1, 1], [2, 0]))
    assert {name: one[2:] for name, one in found.items()} == dict.fromkeys(found, (0.0, 0.0, 0.0))


@pytest.mark.parametrize("jobs", [1, 2, 99, 100, 101, 700])
def test_the_99th_percentile_is_numpys_in_every_resample(jobs: int) -> None:
    rng = np.random.default_rng(jobs)
    wait = rng.integers(0, 300, (2, jobs)).astype(float)
    block = np.sort(rng.integers(5, size=jobs))
    block[0] = 0
    some = draws(5, 2, 40, 0.95, seed=3)
    for row in range(41):
        counts = some.blocks[row].astype(int)[block]
        if counts.sum() == 0:
            continue
        each = [np.quantile(np.repeat(one, counts), 0.99, method="inverted_cdf") for one in wait]
        one = Draws(np.vstack([some.blocks[row]] * 2), np.vstack([some.replays[row]] * 2), (0.0, 1.0))
        found = figures(wait, wait, np.ones(jobs), block, one)["p99_wait"].value
        assert found == pytest.approx(float(some.replays[row] @ each))


def test_the_99th_percentile_of_many_jobs_is_that_of_one_of_the_next_ranks() -> None:
    """The longest tenth of 20,000 waits forms 1,000 groups, of 20,000 / 10 / 1,000 = 2 jobs each."""
    rng = np.random.default_rng(2)
    wait, block = rng.exponential(1000, (1, 20_000)), np.sort(rng.integers(3, size=20_000))
    found = figures(wait, wait, np.ones(20_000), block, drawn([1, 1, 1], [1, 1, 1]))["p99_wait"].value
    assert found in np.sort(wait[0])[19_799:19_802]  # 19,799: the first that is at least as long as 99 % of all


def test_draws_begin_with_the_sample_and_are_the_same_for_a_seed() -> None:
    one, two, other = (draws(4, 3, 500, 0.9, seed) for seed in (1, 1, 2))
    assert one.blocks.shape == (501, 4)
    assert one.blocks[0].tolist() == [1, 1, 1, 1]
    assert one.replays[0].tolist() == pytest.approx([1 / 3] * 3)
    assert set(one.blocks.sum(axis=1)) == {4}
    assert one.replays.sum(axis=1) == pytest.approx(np.ones(501))
    assert one.blocks.mean(axis=0) == pytest.approx(np.ones(4), abs=0.15)
    assert one.levels == pytest.approx((expanded(0.05, 4), 1 - expanded(0.05, 4)))
    assert (one.blocks == two.blocks).all()
    assert (one.blocks != other.blocks).any()


def test_expanded_percentiles_are_those_of_students_distribution() -> None:
    """The 0.025 quantiles of t are -3.1824 with 3 and -2.2622 with 9 degrees of freedom (tables)."""
    assert expanded(0.025, 4) == pytest.approx(0.000119, abs=3e-6)  # normal at -3.1824 * sqrt(4 / 3) = -3.6747
    assert expanded(0.025, 10) == pytest.approx(0.00855, abs=2e-5)  # at -2.2622 * sqrt(10 / 9) = -2.3846
    assert np.all(np.diff([expanded(0.025, n) for n in range(2, 100)]) > 0)
    assert expanded(0.025, 100_000) == pytest.approx(0.025, abs=1e-5)


def test_intervals_do_not_jump_at_any_number_of_blocks() -> None:
    """Similar data in 7 to 13 blocks: the width falls a little with each block (as 1 / sqrt(n), by 5 % at 10)."""
    width = {}
    for blocks in range(7, 14):
        widths = []
        for seed in range(30):
            rng = np.random.default_rng([seed, blocks])
            block = np.repeat(np.arange(blocks), 10)
            today = rng.exponential(1000, (3, blocks))[:, block] + rng.exponential(100, (3, len(block)))
            wait = today * rng.uniform(0.4, 1.2, blocks)[block]
            some = draws(blocks, 3, 300, 0.95, seed)
            found = figures(wait, today, np.full(len(block), 100.0), block, some)["gain"]
            widths.append(found.high - found.low)
        width[blocks] = np.mean(widths)
    ratios = np.array([width[n + 1] / width[n] for n in range(7, 13)])
    assert ratios.max() < 1.06
    assert ratios.min() > 0.82
