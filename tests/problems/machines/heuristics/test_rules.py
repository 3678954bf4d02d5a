"""What each heuristic for many machines prefers, worked by hand, and what all of them must keep to."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from builders import many

from pipeline.core.types import Observation, Policy
from pipeline.problems.machines.env.simulator.rules import RULES
from pipeline.problems.machines.heuristics.rules import HEURISTICS, PEERS, random_placement, with_age, with_mix
from pipeline.problems.machines.heuristics.rules import score as score_of
from pipeline.simulation.rollout import Score, choose, compiled_rule_of, fcfs, heuristic, sjf

ONE = 1000  # thousandths
DRAW = np.array([0.5])
TABLES = {**HEURISTICS, **PEERS}


def score(policy: Policy) -> Score:
    """The scores of a policy's rule."""
    rule = compiled_rule_of(policy)
    assert rule is not None
    return partial(score_of, rule)


saf, f1, wfp3, unicep, packer = (score(HEURISTICS[name]) for name in ("saf", "f1", "wfp3", "unicep", "packer"))
wfp_peer, uni_peer = (score(PEERS[name]) for name in ("wfp_peer", "uni_peer"))
least_allocated, most_allocated = score(HEURISTICS["least_allocated"]), score(HEURISTICS["most_allocated"])
balanced_allocation, sjf_most_allocated = (
    score(HEURISTICS[name]) for name in ("balanced_allocation", "sjf_most_allocated")
)


def view_of(
    duration: Sequence[float],
    demand: Sequence[Sequence[float]],
    free: Sequence[Sequence[float]],
    capacity: Sequence[Sequence[float]] | None = None,
    waited: Sequence[float] | None = None,
    nodes: Sequence[int] | None = None,
    now: float = 0.0,
    legal: Sequence[Sequence[bool]] | None = None,
) -> Observation:
    """One episode's view; amounts in whole units, a duration of 0 is an empty slot, and legal is what fits."""
    wanted, left, whole = (
        (ONE * np.array(amounts)).astype(np.int64) for amounts in (demand, free, free if capacity is None else capacity)
    )
    there = np.array(duration) > 0
    width = there.astype(np.int64) if nodes is None else np.array(nodes)
    could = there[:, None] & (wanted[:, None] <= left[None]).all(axis=2)
    fits = could & (could.sum(axis=1) >= width)[:, None]
    return Observation(
        free=left[None, :, None],
        demand=wanted[None],
        duration=np.array([duration], dtype=float),
        waited=np.array([np.zeros(len(there)) if waited is None else waited], dtype=float),
        backlog=np.array([0]),
        backlog_head=np.zeros((1, 1 + left.shape[1])),
        capacity=whole[None],
        since_arrival=np.array([0.0]),
        legal=(fits if legal is None else np.array(legal))[None],
        fits_now=fits[None],
        now=np.array([now], dtype=float),
        nodes=width[None],
        fits_in=np.zeros((1, len(there))),
        arrived=np.zeros((1, 2 + left.shape[1])),
        may_idle=np.zeros(1, dtype=bool),
        to_end=np.full(1, np.inf),
        load=np.full(1, np.nan),
    )


def pick(score: Score, view: Observation) -> tuple[int, int]:
    """The job and the machine that are chosen."""
    slot, machine = divmod(int(choose(score(view), view)[0]), view.legal.shape[2])
    return slot, machine


def test_smallest_area_first_multiplies_duration_by_the_share_of_everything_that_is_asked_for() -> None:
    # CPUs 4 + 4, memory 2 + 8: 3 * (4 / 8 + 1 / 10), 2 * (2 * 2 / 8 + 2 * 2 / 10)
    view = view_of([3, 2], [[4, 1], [2, 2]], [[4, 2], [4, 8]], nodes=[1, 2])
    assert saf(view)[0] == pytest.approx([-1.8, -1.8])
    assert pick(saf, view_of([3, 2], [[4, 1], [2, 1]], [[4, 2], [4, 8]], nodes=[1, 2])) == (1, 0)


def test_the_area_of_a_job_that_has_waited_counts_for_less() -> None:
    # 8 * 4 / 4 / (1 + 6 / 2) and 3 * 4 / 4 / (1 + 0 / 2)
    view = view_of([8, 3], [[4], [4]], [[4]], waited=[6, 0])
    assert score(with_age(2.0))(view)[0] == pytest.approx([-2, -3])
    assert (pick(saf, view), pick(score(with_age(2.0)), view)) == ((1, 0), (0, 0))


def test_f1_weighs_early_jobs_by_870_and_the_logarithm_of_duration_by_processors() -> None:
    # log10(100) * 3 + 870 * log10(1000), log10(1000) * 2 + 870 * log10(100); what came before 1 counts as at 1
    view = view_of([100, 1000, 10], [[3], [1], [0.5]], [[4], [4]], waited=[0, 900, 1000], nodes=[1, 2, 1], now=1000)
    assert f1(view)[0] == pytest.approx([-(6 + 2610), -(6 + 1740), -1])
    assert pick(f1, view) == (2, 0)


def test_wfp3_cubes_the_wait_over_the_duration() -> None:
    # (6 / 3)^3 * 4 = 32, (8 / 4)^3 * 2 * 3 = 48
    view = view_of([3, 4], [[4], [3]], [[4], [4]], waited=[6, 8], nodes=[1, 2])
    assert wfp3(view)[0] == pytest.approx([32, 48])


def test_unicep_divides_the_wait_by_duration_and_by_the_logarithm_of_processors() -> None:
    # 12 / (log2(4) * 3) = 2, 12 / (log2(8) * 4) = 1; on one processor, of logarithm 0, it is worth almost anything
    view = view_of([3, 4, 100], [[4], [4], [1]], [[4], [4]], waited=[12, 12, 1], nodes=[1, 2, 1])
    assert unicep(view)[0, :2] == pytest.approx([2, 1])
    assert pick(unicep, view) == (2, 0)


def test_the_peers_take_minus_one_for_the_start_of_a_job_that_waits() -> None:
    # arrivals 3 and 7, waits -4 and -8: (-4 / 2)^3 * 2 = -16, (-8 / 8)^3 * 4 = -4; -4 / (1 * 2), -8 / (2 * 8)
    view = view_of([2, 8], [[2], [4]], [[4]], waited=[7, 3], now=10)
    assert wfp_peer(view)[0] == pytest.approx([-16, -4])
    assert uni_peer(view)[0] == pytest.approx([-2, -0.5])


def test_packer_aligns_a_job_with_what_each_machine_has_free() -> None:
    # (2/4 * 2/4 + 1/2 * 1/2) / 2 = 0.25; (2/4 * 4/4 + 1/4 * 2/4) / 2 = 0.3125
    view = view_of([5], [[2, 1]], [[2, 1], [4, 2]], capacity=[[4, 2], [4, 4]])
    assert packer(view)[0] == pytest.approx(np.array([[0.25, 0.3125]]))
    assert pick(packer, view) == (0, 1)


def test_packer_takes_nothing_for_a_resource_that_a_machine_does_not_have() -> None:
    view = view_of([5], [[2, 0]], [[4, 0]])
    assert packer(view)[0] == pytest.approx(np.array([[0.25]]))


def test_tetris_mixes_packing_the_wait_and_shortness() -> None:
    # On the idle machine of 4: packing 1/4 and 1, fairness 8/8 and 2/8, shortness 2/4 and 2/2.
    view = view_of([4, 2], [[1], [4]], [[4]], waited=[8, 2])
    assert score(with_mix(0.5, 0.25))(view)[0, :, 0] == pytest.approx([0.125 + 0.25 + 0.125, 0.5 + 0.0625 + 0.25])
    assert pick(score(with_mix(0.0, 1.0)), view) == pick(fcfs, view) == (0, 0)
    assert pick(score(with_mix(0.0, 0.0)), view) == pick(sjf, view) == (1, 0)
    assert pick(score(with_mix(1.0, 0.0)), view) == pick(packer, view) == (1, 0)


def test_tetris_measures_the_longest_wait_and_the_shortest_job_over_all_slots_that_hold_one() -> None:
    # Slot 0 does not fit but is the shortest and has waited longest; slot 2 is empty.
    view = view_of([1, 2, 0], [[9], [1], [0]], [[4]], waited=[8, 2, 0])
    assert score(with_mix(0.0, 0.5))(view)[0, 1, 0] == pytest.approx(0.5 * 2 / 8 + 0.5 * 1 / 2)


# Machine 0 has 4 and 8 with all free, machine 1 has 8 and 8 of which 4 and 2 are free; the job wants 2 and 2.
# Taken once it is there: 2/4 and 2/8, mean 3/8; 6/8 and 8/8, mean 7/8. Deviations: 1/8 on both machines.
MACHINES: dict[str, list[list[float]]] = {"free": [[4, 8], [4, 2]], "capacity": [[4, 8], [8, 8]]}


def test_least_allocated_spreads_and_most_allocated_packs() -> None:
    view = view_of([5], [[2, 2]], **MACHINES)
    assert least_allocated(view)[0] == pytest.approx(np.array([[5 / 8, 1 / 8]]))
    assert most_allocated(view)[0] == pytest.approx(np.array([[3 / 8, 7 / 8]]))
    assert pick(least_allocated, view) == (0, 0)
    assert pick(most_allocated, view) == (0, 1)


def test_balanced_allocation_takes_the_machine_whose_resources_are_taken_evenly() -> None:
    assert balanced_allocation(view_of([5], [[2, 2]], **MACHINES))[0] == pytest.approx(np.array([[7 / 8, 7 / 8]]))
    # 1/4 and 2/8 are even, 5/8 and 8/8 are 3/16 off their mean
    view = view_of([5], [[1, 2]], **MACHINES)
    assert balanced_allocation(view)[0] == pytest.approx(np.array([[1, 13 / 16]]))
    assert pick(balanced_allocation, view) == (0, 0)


def test_a_machine_without_a_resource_has_all_of_it_taken() -> None:
    view = view_of([5], [[1, 0]], [[4, 0], [2, 1]])
    # 1/4 and 1, 1/2 and 0
    assert most_allocated(view)[0] == pytest.approx(np.array([[0.625, 0.25]]))


@pytest.mark.parametrize("scores", [least_allocated, most_allocated, balanced_allocation])
def test_scores_of_machines_count_only_for_the_job_that_came_first(scores: Score) -> None:
    view = view_of([5, 1], [[2, 2], [1, 2]], waited=[3, 1], **MACHINES)
    assert np.isneginf(scores(view)[0, 1]).all()
    assert pick(scores, view)[0] == 0


def test_kubernetes_goes_past_a_job_that_does_not_fit() -> None:
    view = view_of([5, 1], [[9, 9], [1, 2]], waited=[3, 1], **MACHINES)
    assert pick(most_allocated, view) == (1, 1)


def test_sjf_most_allocated_packs_the_shortest_job() -> None:
    view = view_of([5, 1, 3], [[2, 2]] * 3, **MACHINES)
    assert pick(sjf_most_allocated, view) == (1, 1)


def test_a_job_that_must_wait_is_scored_on_any_machine_it_may_be_sent_to() -> None:
    # It wants 4 and 4; machine 1 has 4 and 2 free: 8/8 and 10/8 taken, were it there; machine 0 has 1 and 1/2
    view = view_of([5], [[4, 4]], **MACHINES, legal=[[True, True]])
    assert most_allocated(view)[0] == pytest.approx(np.array([[0.75, 1.125]]))
    assert pick(most_allocated, view) == (0, 1)


def test_random_placements_are_drawn_evenly_from_the_legal_ones_and_never_void() -> None:
    view = many(view_of([5, 1, 0], [[2, 2], [1, 4], [0, 0]], **MACHINES), 1200)
    grid = (np.arange(1200) + 0.5) / 1200
    chosen, count = np.unique(random_placement(view, grid), return_counts=True)
    # Job 0 fits on both machines, job 1 on the first one only.
    assert chosen.tolist() == [0, 1, 2]
    assert count.tolist() == [400, 400, 400]


def test_without_a_legal_placement_all_are_void() -> None:
    view = view_of([5, 1], [[9, 9], [9, 9]], **MACHINES)
    assert {name: int(policy(view, DRAW)[0]) for name, policy in TABLES.items()} == dict.fromkeys(TABLES, 4)


class TestChoose:
    def test_takes_the_best_machine_of_the_best_job(self) -> None:
        view = view_of([1, 1], [[1], [1]], [[4], [4], [4]])
        assert choose(np.array([[[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]]), view).tolist() == [1 * 3 + 2]

    def test_gives_ties_to_the_lowest_slot_and_then_to_the_lowest_machine(self) -> None:
        view = view_of([1, 1], [[1], [1]], [[4], [4], [4]])
        assert choose(np.array([[[1.0, 2.0, 2.0], [2.0, 2.0, 2.0]]]), view).tolist() == [1]

    def test_leaves_the_best_machine_where_the_job_may_not_go(self) -> None:
        view = view_of([1], [[2]], [[1], [4]])
        assert choose(np.array([[[9.0, 1.0]]]), view).tolist() == [1]

    def test_is_void_where_every_machine_is_held_back(self) -> None:
        view = view_of([1], [[1]], [[4], [4]])
        assert choose(np.full((1, 1, 2), -np.inf), view).tolist() == [2]

    def test_decides_for_no_episode(self) -> None:
        view = view_of([1], [[1]], [[4], [4]]).take(slice(0, 0))
        assert choose(np.zeros((0, 1, 2)), view).tolist() == choose(np.zeros((0, 1)), view).tolist() == []


@pytest.mark.parametrize("name", TABLES)
def test_every_heuristic_takes_a_legal_placement_and_decides_for_each_episode_by_itself(name: str) -> None:
    busy = view_of([5, 1, 0], [[2, 2], [1, 4], [0, 0]], waited=[6, 3, 0], now=9, **MACHINES)
    other = view_of([2, 7, 4], [[4, 2], [4, 4], [1, 1]], waited=[2, 1, 0], now=4, **MACHINES)
    both = Observation._make(np.concatenate(pair) for pair in zip(busy, other, strict=True))
    actions = TABLES[name](both, np.array([0.1, 0.8]))
    assert all(both.legal.reshape(2, -1)[np.arange(2), actions])
    assert actions.tolist() == [int(TABLES[name](v, np.array([d]))[0]) for v, d in ((busy, 0.1), (other, 0.8))]


def test_every_heuristic_has_a_compiled_rule_of_its_own() -> None:
    rules = {name: rule.rule for name, policy in TABLES.items() if (rule := compiled_rule_of(policy)) is not None}
    assert rules == {name: name for name in TABLES} | {"random": "random_placement", "tetris": "tetris_fair"}
    assert set(rules.values()) == set(RULES)


def test_tetris_untuned_is_an_even_mix_and_tuned_tells_its_rule_of_both_weights() -> None:
    untuned, tuned = compiled_rule_of(HEURISTICS["tetris"]), compiled_rule_of(with_mix(0.5, 0.2))
    assert (untuned is not None and untuned.knobs) == (1 / 3, 1 / 3)
    assert (tuned is not None and tuned.knobs) == (0.5, 0.2)


def test_a_score_of_jobs_goes_to_the_lowest_machine_with_room() -> None:
    view = view_of([3, 2], [[1], [2]], [[1], [4]])
    assert heuristic(sjf)(view, DRAW).tolist() == [1 * 2 + 1]
    assert heuristic(fcfs)(view, DRAW).tolist() == [0]
