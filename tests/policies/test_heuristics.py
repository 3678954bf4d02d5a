"""What each heuristic prefers, worked by hand, and what all of them must keep to."""

import numpy as np
import pytest
from builders import many, observation, viewed, wander

from pipeline.core import Cluster, Observation, legal_actions
from pipeline.policies.heuristics import (
    HEURISTICS,
    Score,
    alignment,
    choose,
    fcfs,
    hold,
    packer,
    sjf,
    sjf_align,
    tetris,
)

INFINITE = float("inf")
GRID = (np.arange(1200) + 0.5) / 1200  # draws, evenly spread over [0, 1)


def chosen(scores: list[float], view: Observation) -> int:
    return int(choose(np.array([scores]), view)[0])


def pick(score: Score, view: Observation) -> int:
    return int(choose(score(view), view)[0])


class TestChoose:
    def test_takes_the_best_scored_job(self) -> None:
        assert chosen([1.0, 3.0, 2.0], observation(duration=[1, 1, 1])) == 1

    def test_gives_ties_to_the_lowest_slot(self) -> None:
        assert chosen([1.0, 2.0, 2.0], observation(duration=[1, 1, 1])) == 1

    def test_leaves_the_best_job_where_it_may_not_be_placed(self) -> None:
        assert chosen([1.0, 3.0, 2.0], observation(duration=[1, 1, 1], fits_now=[True, False, True])) == 2

    def test_takes_a_job_with_a_low_score_rather_than_none(self) -> None:
        assert chosen([-1e9, -2e9, 0.0], observation(duration=[1, 1, 0])) == 0

    def test_is_void_where_nothing_may_be_placed(self) -> None:
        assert chosen([1.0, 2.0, 3.0], observation(duration=[1, 1, 1], fits_now=[False] * 3)) == 3

    def test_is_void_where_every_job_is_held_back(self) -> None:
        assert chosen([-INFINITE, 9.0, -INFINITE], observation(duration=[1, 0, 1])) == 3

    def test_places_ahead_what_is_legal_and_does_not_fit_now(self) -> None:
        view = observation(duration=[1, 1, 1], fits_now=[True, False, False], legal=[True, True, False])
        assert chosen([1.0, 2.0, 3.0], view) == 1

    def test_settles_every_episode_by_itself(self) -> None:
        view = many(observation(duration=[1, 1, 0]), 3)
        assert choose(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [-INFINITE] * 3]), view).tolist() == [1, 0, 3]

    def test_numbers_an_action_by_job_and_machine(self) -> None:
        places = np.array([[[True, False], [False, True], [True, True]]])
        view = observation(duration=[1, 1, 1])._replace(legal=places)
        assert chosen([1.0, 2.0, 0.0], view) == 1 * 2 + 1
        assert chosen([1.0, 2.0, 3.0], view) == 2 * 2 + 0  # of two machines the first
        assert chosen([-INFINITE] * 3, view) == 6


def test_fcfs_takes_the_job_that_has_waited_longest() -> None:
    assert pick(fcfs, observation(duration=[1, 1, 1], waited=[2, 7, 4])) == 1


def test_fcfs_goes_past_a_job_that_does_not_fit() -> None:
    view = observation(duration=[1, 1, 1], waited=[2, 7, 4], fits_now=[True, False, True])
    assert pick(fcfs, view) == 2


def test_sjf_takes_the_shortest_job() -> None:
    assert pick(sjf, observation(duration=[5, 2, 3])) == 1


def test_sjf_does_not_take_an_empty_slot_for_a_short_job() -> None:
    assert pick(sjf, observation(duration=[5, 0, 3])) == 2


def test_packer_takes_the_job_best_aligned_with_the_free_units() -> None:
    # 8 * 1 + 2 * 2 = 12, 8 * 2 + 2 * 1 = 18, 8 * 1 + 2 * 1 = 10
    view = observation(duration=[1, 9, 1], demand=[[1, 2], [2, 1], [1, 1]], free=[[8, 2]])
    assert packer(view).tolist() == [[12, 18, 10]]
    assert pick(packer, view) == 1


def test_packer_looks_at_the_current_step_alone() -> None:
    view = observation(duration=[1, 1], demand=[[1, 2], [2, 1]], free=[[2, 8], [9, 0]])
    assert pick(packer, view) == 0


def test_packer_counts_units_beyond_sixteen_bits() -> None:
    view = observation(duration=[1, 1], demand=[[300, 300], [200, 1]], capacity=[300, 300])
    narrow = view._replace(free=view.free.astype(np.int16), demand=view.demand.astype(np.int16))
    assert packer(narrow).tolist() == [[180_000, 60_300]]


def test_alignment_is_the_mean_product_of_free_and_demanded_shares() -> None:
    view = observation(duration=[1, 1], demand=[[5, 2], [0, 4]], free=[[8, 3]], capacity=[10, 4])
    # (0.5 * 0.8 + 0.5 * 0.75) / 2 = 0.3875; (0 * 0.8 + 1 * 0.75) / 2 = 0.375
    assert alignment(view)[0] == pytest.approx([0.3875, 0.375])


def test_tetris_mixes_alignment_and_shortness() -> None:
    view = observation(duration=[4, 2], demand=[[10, 10], [4, 4]])
    # alignment 1 and 0.4, shortness 0.25 and 0.5: at weight 0.2 it is 0.4 and 0.48, at 0.5 it is 0.625 and 0.45
    assert tetris(0.2)(view)[0] == pytest.approx([0.4, 0.48])
    assert (pick(tetris(0.2), view), pick(tetris(0.5), view)) == (1, 0)


def test_tetris_without_alignment_is_sjf_and_with_nothing_else_is_the_packer() -> None:
    view = observation(duration=[4, 2, 3], demand=[[10, 10], [4, 4], [1, 1]])
    assert pick(tetris(0.0), view) == pick(sjf, view) == 1
    assert pick(tetris(1.0), view) == pick(packer, view) == 0


def test_sjf_align_breaks_ties_between_equally_short_jobs_by_alignment() -> None:
    view = observation(duration=[3, 2, 2], demand=[[10, 10], [1, 1], [1, 2]])
    assert (pick(sjf, view), pick(sjf_align, view)) == (1, 2)


def test_sjf_align_never_prefers_a_longer_job() -> None:
    assert pick(sjf_align, observation(duration=[3, 2], demand=[[10, 10], [0, 0]])) == 1


def test_hold_starts_no_long_job_while_a_short_one_waits() -> None:
    view = observation(duration=[10, 3], fits_now=[True, False])
    assert pick(hold(10), view) == 2
    assert pick(sjf_align, view) == 0


def test_hold_starts_a_long_job_where_only_long_ones_wait() -> None:
    assert pick(hold(10), observation(duration=[12, 10, 0])) == 1


def test_hold_calls_a_job_long_from_its_limit_on() -> None:
    view = observation(duration=[9, 3], fits_now=[True, False])
    assert (pick(hold(10), view), pick(hold(9), view)) == (0, 2)


def shares(view: Observation) -> list[int]:
    """How many of 1,200 evenly spread draws end in each action."""
    actions = HEURISTICS["random"](many(view, len(GRID)), GRID)
    return [int((actions == action).sum()) for action in range(view.duration.shape[1] + 1)]


def test_random_draws_void_as_often_as_each_job_that_may_start() -> None:
    busy = observation(duration=[1, 1, 1], fits_now=[True, False, True], free=[[9, 9]])
    assert shares(busy) == [400, 0, 400, 400]


def test_random_never_idles_on_an_idle_cluster_with_a_job_that_fits() -> None:
    assert shares(observation(duration=[1, 1, 1], fits_now=[True, False, True])) == [600, 0, 600, 0]


def test_random_is_void_where_nothing_may_be_placed() -> None:
    assert shares(observation(duration=[1, 0, 1], fits_now=[False] * 3)) == [0, 0, 0, 1200]


def test_random_takes_the_outermost_draws_as_legal_actions_too() -> None:
    view = many(observation(duration=[0, 1, 1], free=[[9, 9]]), 2)
    assert HEURISTICS["random"](view, np.array([0.0, 1 - 2**-53])).tolist() == [1, 3]


CLUSTERS = [
    Cluster((8,), 12, 4, 3, False, 12),
    Cluster((6, 9), 6, 4, 3, False, 6),
    Cluster((6, 9), 6, 3, 3, True, 6),
    Cluster((3, 4, 5), 6, 5, 3, True, 6),
]


@pytest.fixture(scope="module")
def met() -> list[Observation]:
    """What random moves come across on clusters of one to three resources."""
    return [viewed(of, wander) for of in CLUSTERS]


@pytest.mark.parametrize("name", list(HEURISTICS))
class TestEveryHeuristic:
    def test_takes_legal_actions_only(self, name: str, met: list[Observation]) -> None:
        for view in met:
            draws = np.random.default_rng(0).random(len(view.now))
            actions = HEURISTICS[name](view, draws)
            assert actions.shape == view.now.shape
            assert np.issubdtype(actions.dtype, np.integer)
            assert legal_actions(view)[np.arange(len(actions)), actions].all()

    def test_is_void_only_where_it_must_unless_it_holds_back_or_is_random(
        self, name: str, met: list[Observation]
    ) -> None:
        held_back = 0
        for view in met:
            actions = HEURISTICS[name](view, np.full(len(view.now), 0.999))
            void = actions == view.duration.shape[1]
            placeable = view.legal.any(axis=(1, 2))
            assert void[~placeable].all()
            held_back += int(void[placeable].sum())
        assert (held_back > 0) == (name in ("hold", "random"))

    def test_decides_the_same_on_the_same_view_and_draws(self, name: str, met: list[Observation]) -> None:
        for view in met:
            draws = np.random.default_rng(1).random(len(view.now))
            first = HEURISTICS[name](view, draws)
            assert np.array_equal(first, HEURISTICS[name](view, draws))
            some = np.arange(0, len(view.now), 3)
            assert np.array_equal(first[some], HEURISTICS[name](view.take(some), draws[some]))

    def test_leaves_the_view_as_it_was(self, name: str, met: list[Observation]) -> None:
        for view in met:
            before = [field.copy() for field in view]
            HEURISTICS[name](view, np.full(len(view.now), 0.5))
            assert all(np.array_equal(one, other) for one, other in zip(before, view, strict=True))


def test_the_clusters_of_the_contract_show_what_it_is_about(met: list[Observation]) -> None:
    for of, view in zip(CLUSTERS, met, strict=True):
        assert view.legal.any(axis=(1, 2)).any()
        assert not view.legal.any(axis=(1, 2)).all()
        assert (view.legal & ~view.fits_now).any() == of.place_ahead
        assert (view.backlog > 0).any()
