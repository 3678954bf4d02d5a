"""What each heuristic prefers, worked by hand, and what all of them must keep to."""

from math import log

import numpy as np
import pytest
from builders import many, observation, viewed, wander

from pipeline.core.types import CompiledRule, FloatArray, Observation, legal_actions
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.simulator.rules import scores_of
from pipeline.problems.pool.env.teachers import JOB_FEATURES, VOID_FEATURES
from pipeline.problems.pool.heuristics.scores import HEURISTICS, with_knobs
from pipeline.simulation.rollout import Score, choose

INFINITE = float("inf")
fcfs, sjf, packer, sjf_align, saf, wspt, easy, easy_fcfs = (
    scores_of(CompiledRule(name)) for name in ("fcfs", "sjf", "packer", "sjf_align", "saf", "wspt", "easy", "easy_fcfs")
)
GRID = (np.arange(1200) + 0.5) / 1200  # draws, evenly spread over [0, 1)


def tetris(weight: float) -> Score:
    return scores_of(CompiledRule("tetris", weight))


def hold(long_steps: int) -> Score:
    return scores_of(CompiledRule("hold", long_steps))


def hold_until(long_steps: int, until: int) -> Score:
    return scores_of(CompiledRule("hold_until", knobs=(long_steps, until)))


def linear(of_features: list[float]) -> Score:
    return scores_of(CompiledRule("linear", weights=tuple(of_features)))


def alignment(view: Observation) -> FloatArray:
    return tetris(1.0)(view)


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


# Areas 4 * 0.1, 2 * 0.3 and 6 * 0.05; times the duration 1.6, 1.2 and 1.8.
WIDE_AND_SHORT = observation(duration=[4, 2, 6], demand=[[1, 1], [5, 1], [1, 0]])


def test_saf_takes_the_job_of_the_smallest_area() -> None:
    assert saf(WIDE_AND_SHORT)[0] == pytest.approx([-0.4, -0.6, -0.3])
    assert pick(saf, WIDE_AND_SHORT) == 2


def test_wspt_takes_the_job_of_the_largest_weight_to_area() -> None:
    assert wspt(WIDE_AND_SHORT)[0] == pytest.approx([-1.6, -1.2, -1.8])
    assert pick(wspt, WIDE_AND_SHORT) == 1


def behind(duration: int, wants: int, free: list[list[int]] | None = None) -> int:
    """What EASY does with a job that fits now, while one of 2 steps that wants 7 units is first and does not.

    Unless told, 4 units are free for three steps, and then all.
    """
    view = observation(
        duration=[2, duration],
        demand=[[7, 7], [wants, wants]],
        free=free or [[4, 4]] * 3,
        fits_now=[False, True],
    )
    return pick(easy, view)


def test_easy_takes_the_first_job_where_it_fits() -> None:
    assert pick(easy, observation(duration=[3, 2], demand=[[1, 1], [9, 9]])) == 1


def test_easy_starts_a_job_that_ends_before_the_first_one_can_start() -> None:
    assert behind(duration=3, wants=4) == 1


def test_easy_holds_back_a_job_that_would_delay_the_first_one() -> None:
    assert behind(duration=4, wants=4) == 2


def test_easy_starts_a_long_job_that_leaves_the_first_one_room() -> None:
    assert behind(duration=20, wants=3) == 1


def test_easy_finds_room_for_the_first_job_through_its_whole_duration() -> None:
    # Steps 1 and 3 have 9 units, but only for one step each: it starts at 5.
    holes = [[4, 4], [9, 9], [4, 4], [9, 9], [4, 4]]
    assert behind(duration=5, wants=4, free=holes) == 1
    assert behind(duration=6, wants=4, free=holes) == 2


def test_easy_looks_at_every_step_of_the_first_job() -> None:
    # It starts at 1 and has 9 units, then 8: beside it 2, then 1.
    falling = [[4, 4], [9, 9], [8, 8]]
    assert [behind(duration, wants=2, free=falling) for duration in (1, 2, 3)] == [1, 1, 2]


def test_easy_keeps_no_room_for_a_job_that_has_it_and_may_not_be_placed() -> None:
    view = observation(duration=[2, 20], demand=[[7, 7], [4, 4]], fits_now=[False, True])
    assert pick(easy, view) == 1


def test_easy_places_the_first_job_ahead_where_that_is_legal() -> None:
    view = observation(duration=[2, 3], free=[[0, 0]], fits_now=[False, True], legal=[True, True])
    assert pick(easy, view) == 0


def test_easy_by_arrival_keeps_room_for_the_job_that_came_first() -> None:
    view = observation(
        duration=[9, 4], demand=[[7, 7], [4, 4]], waited=[5, 1], free=[[4, 4]] * 3, fits_now=[False, True]
    )
    assert (pick(easy_fcfs, view), pick(easy, view)) == (2, 1)


def earliest(view: Observation, b: int, job: int, beside: int | None = None) -> int:
    """The first step at which a job has room until it ends, another one being started now, by trying all."""
    free = view.free[b, 0].astype(int)
    if beside is not None:
        free[: view.duration[b, beside]] -= view.demand[b, beside]
    length = view.duration[b, job]
    return next(t for t in range(len(free) + 1) if (free[t : t + length] >= view.demand[b, job]).all())


@pytest.mark.parametrize(("order", "rule"), [(sjf_align, easy), (fcfs, easy_fcfs)])
def test_easy_holds_back_just_the_jobs_that_delay_the_first_one(
    order: Score, rule: Score, met: list[Observation]
) -> None:
    held = kept = 0
    for view in met:
        wanted = np.where(view.duration > 0, order(view), -INFINITE)
        found = rule(view)
        for b, head in enumerate(wanted.argmax(axis=1)):
            begin = earliest(view, b, int(head))
            if not view.duration[b].any() or view.legal[b, head, 0] or begin == 0:
                continue
            for job in np.flatnonzero(view.fits_now[b, :, 0]):
                delayed = earliest(view, b, int(head), beside=int(job)) > begin
                assert np.isneginf(found[b, job]) == delayed
                held, kept = held + delayed, kept + (not delayed)
    assert held > 10
    assert kept > 10


# Shares 0.5 and 0.5, and 0.1 and 0.25, of which 0.8 and 0.75 are free.
PAIR = observation(duration=[4, 2], demand=[[5, 2], [1, 1]], waited=[3, 0], free=[[8, 3]], capacity=[10, 4], backlog=5)
FEATURES = {
    "short": [-log(4), -log(2)],
    "narrow": [-log(0.5), -log(0.175)],
    "aligned": [0.3875, 0.13375],
    "waited": [log(4), 0],
    "slowed": [log(1.75), 0],
    "dominant": [0.5, 0.25],
    "left": [0.25, 0.5],  # the least of 3 / 10 and 1 / 4; of 7 / 10 and 2 / 4
    "shortest": [-log(2), 0],
}


def weights(**of: float) -> list[float]:
    """Weights of the named features, void never wanted unless told; 0 of all others."""
    return [{"always": -20.0, **of}.get(name, 0.0) for name in JOB_FEATURES + VOID_FEATURES]


@pytest.mark.parametrize("name", JOB_FEATURES)
def test_the_linear_rule_scores_a_job_by_each_of_its_features(name: str) -> None:
    assert linear(weights(**{name: 1.0}))(PAIR)[0] == pytest.approx(FEATURES[name])
    assert linear(weights(**{name: -2.0}))(PAIR)[0] == pytest.approx([-2 * value for value in FEATURES[name]])


def test_the_linear_rule_adds_features_up() -> None:
    # -log 4 + 3 * 0.5 = 0.11, -log 2 + 3 * 0.25 = 0.06
    assert (pick(linear(weights(short=1, dominant=3)), PAIR), pick(linear(weights(short=1)), PAIR)) == (0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    # Two wait in slots and five behind; of the two one is shorter than the better one; 0.8 and 0.75 are free.
    [("waiting", log(8)), ("shorter", 0.5), ("free", 0.775)],
)
def test_the_linear_rule_is_void_where_that_is_worth_more_than_the_best_job(name: str, value: float) -> None:
    # The better job is worth 0.5.
    above, below = (weights(dominant=1, always=0.5 - value + by, **{name: 1}) for by in (1e-9, -1e-9))
    assert (pick(linear(above), PAIR), pick(linear(below), PAIR)) == (2, 0)


def test_the_linear_rule_compares_void_with_the_jobs_that_may_start() -> None:
    view = PAIR._replace(legal=np.array([[[False], [True]]]), fits_now=np.array([[[False], [True]]]))
    # The job that may is worth 0.25, and nothing is shorter than it.
    assert pick(linear(weights(dominant=1, always=0.3, shorter=-9)), view) == 2
    assert pick(linear(weights(dominant=1, always=0.2, shorter=9)), view) == 1


def test_the_linear_rule_never_idles_on_an_idle_cluster_with_a_job_that_fits() -> None:
    eager, idle = linear(weights(always=20)), observation(duration=[1, 2])
    assert pick(eager, idle) == 0
    assert pick(eager, idle._replace(free=idle.free - 1)) == 2
    assert pick(eager, observation(duration=[1, 2], fits_now=[False, False])) == 2


def test_hold_until_starts_no_long_job_before_its_step_unless_void_is_refused() -> None:
    waits = observation(duration=[12, 10], may_idle=True, now=4)
    assert pick(hold_until(10, 5), waits) == 2
    assert pick(hold_until(11, 5), waits) == 1
    assert pick(hold_until(10, 4), waits) == 1
    assert pick(hold_until(10, 5), waits._replace(may_idle=np.array([False]))) == 1


def test_the_linear_rule_may_wait_for_a_step_for_an_arrival_and_for_their_end() -> None:
    view = observation(duration=[3], may_idle=True, now=7, since_arrival=2, to_end=4.0)
    for feature, value in (("elapsed", 8), ("idle", 3), ("to_end", 5)):
        for void, expected in ((-0.9, 1), (-1.3, 0)):  # above and below what the job is worth, -log 3 = -1.1
            rule = linear(weights(short=1, always=0, **{feature: void / log(value)}))
            assert pick(rule, view) == expected, feature
    assert pick(linear(weights(short=1, always=0, to_end=-9)), view._replace(to_end=np.array([np.inf]))) == 1


def test_the_linear_rule_takes_a_job_that_wants_nothing_for_a_thousandth() -> None:
    view = observation(duration=[1, 1], demand=[[0, 0], [1, 1]])
    assert linear(weights(narrow=1))(view)[0] == pytest.approx([log(1000), log(10)])


def test_the_linear_rule_wants_a_weight_for_every_feature() -> None:
    with pytest.raises(ValueError, match="expected 15 weights, got 3"):
        with_knobs("linear", 1.0, 2.0, 3.0)


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
    Cluster((8,), 12, 4, 3, False),
    Cluster((6, 9), 6, 4, 3, False),
    Cluster((6, 9), 6, 3, 3, True),
    Cluster((3, 4, 5), 6, 5, 3, True),
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
        assert (held_back > 0) == (name in ("hold", "hold_until", "hold_long", "random", "easy", "easy_fcfs", "linear"))

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
            assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(before, view, strict=True))


def test_the_clusters_of_the_contract_show_what_it_is_about(met: list[Observation]) -> None:
    for of, view in zip(CLUSTERS, met, strict=True):
        assert view.legal.any(axis=(1, 2)).any()
        assert not view.legal.any(axis=(1, 2)).all()
        assert (view.legal & ~view.fits_now).any() == of.place_ahead
        assert (view.backlog > 0).any()
