"""What a tree sees, in numbers worked by hand, and how it decides."""

import numpy as np
import pytest
from builders import cluster, many, observation, viewed, wander
from pydantic import ValidationError

from pipeline.core.types import Observation, legal_actions
from pipeline.interactive.explaining.tree import OF_JOB, OF_REST, Node, TreeCard, tree_features, tree_policy, words

DRAWS = np.zeros(1)


def card(*nodes: Node, threshold: float = 0.5) -> TreeCard:
    return TreeCard(agent="someone", scenario="online", threshold=threshold, nodes=nodes)


# Starts what runs for at most three steps: 90 % of those that wait beside something shorter, 80 % of the others.
SHORT = card(
    Node(chance=0.5, feature="duration", at=3.5, left=1, right=2),
    Node(chance=0.85, feature="shorter_waiting", at=0.5, left=3, right=4),
    Node(chance=0.1),
    Node(chance=0.8),
    Node(chance=0.9),
)
EVEN = card(Node(chance=0.7))


def act(tree: TreeCard, view: Observation) -> int:
    return int(tree_policy(tree)(view, DRAWS)[0])


def busy(duration: list[int], fits: list[bool] | None = None) -> Observation:
    """Waiting jobs beside one that holds a unit for two steps."""
    return observation(duration=duration, fits_now=fits, free=[[9, 10], [9, 10]])


def test_features_of_jobs_are_those_of_their_names() -> None:
    # Of ten units of each, 6 and 10 are free now. Beside the job of six steps, only that of two does not fit.
    view = observation(
        duration=[6, 2, 3, 0],
        demand=[[4, 1], [3, 2], [1, 1], [0, 0]],
        free=[[6, 10]],
        waited=[5, 0, 1, 0],
    )
    found = tree_features(view).job[0]
    told = [dict(zip(OF_JOB, job.tolist(), strict=True)) for job in found]
    assert [job["duration"] for job in told[:3]] == [6, 2, 3]
    assert [job["times_shortest"] for job in told[:3]] == [3, 1, 1.5]
    assert [job["demand"] for job in told[:3]] == [0.4, 0.3, 0.1]
    assert [job["waited"] for job in told[:3]] == [5, 0, 1]
    assert [job["shorter_waiting"] for job in told[:3]] == [2, 0, 1]
    assert [job["keeps_out"] for job in told[:3]] == [1, 0, 0]
    assert [job["leaves"] for job in told[:3]] == pytest.approx([0.2, 0.3, 0.5])


def test_features_of_the_rest_are_those_of_their_names() -> None:
    # In step 3, six units of cpu and nine of memory are free; one more of memory in two steps. Jobs came to 8 and 24.
    view = observation(duration=[6, 2, 0], free=[[6, 9], [6, 9], [6, 10]], backlog=4, since_arrival=3)
    view = view._replace(now=np.array([3]), arrived=np.array([[2.0, 8.0, 8.0, 24.0]]))
    told = dict(zip(OF_REST, tree_features(view).rest[0].tolist(), strict=True))
    assert told == {"waiting": 2, "backlog": 4, "free": 0.6, "until_free": 2, "since_arrival": 3, "load": 0.4}


def test_on_an_idle_cluster_units_are_freed_no_sooner_than_beyond_the_horizon() -> None:
    place = list(OF_REST).index("until_free")
    assert tree_features(observation(duration=[1], horizon=20)).rest[0, place] == 20


def test_the_job_of_the_highest_chance_starts() -> None:
    assert act(SHORT, busy([1, 3, 9])) == 1


def test_of_equal_chances_the_shortest_job_starts_and_of_equal_ones_the_first() -> None:
    assert act(EVEN, busy([4, 2, 3])) == 1
    assert act(EVEN, busy([4, 2, 2])) == 1


def test_what_does_not_fit_does_not_start() -> None:
    assert act(SHORT, busy([1, 3, 9], [True, False, True])) == 0


def test_no_job_starts_where_no_chance_is_above_the_threshold() -> None:
    assert act(SHORT, busy([9, 12, 5])) == 3
    assert act(EVEN.model_copy(update={"threshold": 0.7}), busy([1])) == 1
    assert act(EVEN.model_copy(update={"threshold": 0.69}), busy([1])) == 0


def test_on_an_idle_cluster_the_best_job_starts_all_the_same() -> None:
    assert act(SHORT, observation(duration=[9, 12, 5])) == 2


def test_a_value_on_the_edge_goes_left() -> None:
    edge = card(Node(chance=0.5, feature="duration", at=2.0, left=1, right=2), Node(chance=1.0), Node(chance=0.0))
    assert act(edge, busy([2])) == 0
    assert act(edge, busy([3])) == 1


def test_every_episode_is_decided_by_itself_and_legally() -> None:
    view = viewed(cluster(4, 3, horizon=5, slots=3), wander, episodes=8)
    actions = tree_policy(SHORT)(view, np.zeros(len(view.now)))
    assert legal_actions(view)[np.arange(len(actions)), actions].all()
    assert [act(SHORT, view.take(slice(k, k + 1))) for k in range(len(actions))] == actions.tolist()
    assert len(set(actions.tolist())) == 4
    assert (tree_policy(SHORT)(many(view.take(slice(0, 1)), 3), np.zeros(3)) == actions[0]).all()


def test_a_tree_survives_its_file() -> None:
    assert TreeCard.model_validate_json(SHORT.model_dump_json(exclude_defaults=True)) == SHORT
    assert SHORT.leaves == 3


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (Node(chance=0.5, feature="colour", left=1, right=1), "node 0: unknown feature 'colour'"),
        (Node(chance=0.5, feature="duration", left=0, right=1), "node 0: expected children below it, found 0 and 1"),
        (Node(chance=0.5, feature="duration", left=1, right=2), "node 0: expected children below it, found 1 and 2"),
    ],
)
def test_what_is_no_tree_is_refused(node: Node, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        card(node, Node(chance=0.1))


def test_every_feature_has_words_of_its_own() -> None:
    seen = tree_features(busy([1]))
    assert len(set(words("steps").values())) == seen.job.shape[2] + seen.rest.shape[1]


# Many machines


def on_two(free: list[list[int]], nodes: int = 1) -> Observation:
    """Jobs of two and of nine steps that want four units on each of their machines, and two machines of ten units."""
    view, both = observation(duration=[2, 9], demand=[[4, 4], [4, 4]], free=[[10, 10]]), np.ones((1, 2, 2), dtype=bool)
    units, capacity = np.array(free)[None, :, None], np.full((1, 2, 2), 10)
    return view._replace(legal=both, fits_now=both, free=units, capacity=capacity, nodes=view.nodes * nodes)


@pytest.mark.parametrize(("machine", "action"), [("first", 0), ("fullest", 1), ("emptiest", 0)])
def test_a_job_goes_to_the_machine_of_the_trees_kind(machine: str, action: int) -> None:
    view = on_two([[10, 10], [5, 5]])
    assert act(SHORT.model_copy(update={"machine": machine}), view) == action
    view = view._replace(legal=np.array([[[False, True], [True, True]]]))
    assert act(SHORT.model_copy(update={"machine": machine}), view) == 1  # the only one that may take it


def test_void_is_last_on_many_machines() -> None:
    tree = SHORT.model_copy(update={"threshold": 0.95, "machine": "emptiest"})
    assert act(tree, on_two([[10, 10], [5, 5]])) == 4


def test_amounts_are_summed_over_machines_and_over_a_jobs_nodes() -> None:
    seen = tree_features(on_two([[10, 10], [5, 5]], nodes=2))
    job = dict(zip(OF_JOB, seen.job[0, 1].tolist(), strict=True))
    assert (job["demand"], job["nodes"], job["keeps_out"]) == (0.4, 2, 1)
    assert job["leaves"] == pytest.approx(0.75 - 0.4)
    assert seen.rest[0, list(OF_REST).index("free")] == 0.75


def test_a_job_that_is_legal_and_does_not_fit_may_start_but_is_not_withheld() -> None:
    view = on_two([[10, 10], [5, 5]])
    seen = tree_features(view._replace(fits_now=np.array([[[False, False], [True, False]]])))
    assert seen.may_start.tolist() == [[True, True]]
    assert seen.fits.tolist() == [[False, True]]


def test_empty_slots_after_the_last_job_change_no_feature() -> None:
    """They are left out of the pairs of jobs that are compared."""
    few, many_slots = busy([3, 1]), busy([3, 1, 0, 0, 0])
    one, other = tree_features(few), tree_features(many_slots)
    assert other.job.shape[1] == 5
    assert (other.job[:, :2] == one.job).all()
    assert one.rest[0, list(OF_REST).index("waiting")] == other.rest[0, list(OF_REST).index("waiting")] == 2
    assert tree_features(busy([0, 0, 1])).job[0, 2, 0] == 1
