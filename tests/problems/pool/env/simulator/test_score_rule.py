"""Scores, compiled: what the simulator plays is what a policy decides that is shown observations."""

import math

import numpy as np
import pytest
from builders import jobset, jobsets
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.types import CompiledRule, keys
from pipeline.problems.pool.agents.networks.network import greedy
from pipeline.problems.pool.agents.networks.scores import Scores
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players, scores_of
from pipeline.problems.pool.env.simulator.score_rule import COUNT, FEATURES
from pipeline.simulation.rollout import play

CLUSTER = Cluster((10, 7), 8, 5, 4, False, 3, 6)
AT = {name: number for number, name in enumerate(FEATURES)}


def scores(seed: int, hidden: int) -> Scores:
    network, rng = Scores(hidden), np.random.default_rng(seed)
    network.weights.copy_(network.weights.new_tensor(rng.normal(0, 1, len(network.weights))))
    return network


@settings(max_examples=60)
@given(data=st.data(), seed=st.integers(0, 99), hidden=st.integers(0, 2), ends=st.booleans())
def test_the_compiled_rule_decides_as_the_network_that_is_shown_observations(
    data: st.DataObject, seed: int, hidden: int, ends: bool
) -> None:
    of = CLUSTER if ends else CLUSTER._replace(arrivals_end=None)
    several = data.draw(st.lists(jobsets(of), min_size=1, max_size=3))
    several[0] = several[0]._replace(load=70.0)
    network, key = scores(seed, hidden), keys(1, np.arange(len(several)), np.zeros(len(several), dtype=np.int64))
    asked, alone = (Batched(batch(several), of, 60, skip_forced=True) for _ in range(2))
    play(asked, greedy(network, True), key)
    alone.play(alone.rows, players([network.rule] * len(several), key), 10_000)
    assert asked.schedule().start.tolist() == alone.schedule().start.tolist()


def begun(jobs: JobSet, of: Cluster = CLUSTER) -> Batched:
    return Batched(batch([jobs]), of, 60)


def features(jobs: JobSet, of: Cluster = CLUSTER) -> np.ndarray:
    """The features [M, COUNT] of the jobs that wait in step 0, each read off by a weight of its own."""
    view = begun(jobs, of).observe(np.array([0]))
    found = []
    for k in range(COUNT):
        found.append(scores_of(CompiledRule("scores", weights=tuple(np.eye(COUNT)[k].tolist())))(view)[0])
    return np.array(found).T


def test_features_are_what_their_names_say() -> None:
    jobs = jobset((0, 2, 5, 1), (0, 6, 1, 7), (0, 1, 10, 1))._replace(load=80.0)
    short, long, _, *empty = features(jobs)
    assert not np.any(empty)
    assert short[AT["length"]] == 2 / 15
    assert short[AT["log_length"]] == math.log(2)
    assert short[AT["dominant"]] == 0.5
    assert short[AT["tight"]] == 1 - 0.5
    assert short[AT["aligned"]] == pytest.approx((0.5 + 1 / 7) / 2)
    assert short[AT["short_more"]] == pytest.approx(0.8 * 6 / 50)
    assert (short[AT["outlasts"]], short[AT["endless_length"]], short[AT["long"]]) == (2 / 15, 0, 0)
    # (2 + 6 + 1 + 3 * 4) / (3 + 3) * 1.25 = 4.375 steps are long
    assert long[AT["long_idle"]] == long[AT["long"]] == long[AT["long_coming"]] == 1
    assert long[AT["long_load"]] == 0.8
    assert long[AT["long_short_jobs"]] == 0.2
    assert long[AT["long_long_jobs"]] == 1 / 5
    assert long[AT["long_short_work"]] == pytest.approx(2 * 0.5 + 1 * 1.0)
    assert long[AT["long_full"]] == 0


def test_jobs_that_could_start_beside_one_are_counted_once_it_has_its_units() -> None:
    of = CLUSTER._replace(slots=8)
    wide, *others = features(jobset((0, 1, 6, 1), *[(0, 9, 4, 1)] * 2, (0, 2, 5, 1), *[(0, 2, 1, 1)] * 4), of)
    assert wide[AT["others_fit"]] == 1.0  # six of them, and five count as many
    assert others[2][AT["others_fit"]] == 1.0
    few = features(jobset((0, 1, 6, 1), (0, 9, 4, 1), (0, 2, 5, 1)), of)
    assert [job[AT["others_fit"]] for job in few[:3]] == [1 / 5, 2 / 5, 1 / 5]
    assert [job[AT["long_others_fit"]] for job in few[:3]] == [0, 2 / 5, 0]
    assert not few[:, [AT["ended_others_fit"], AT["endless_others_fit"], AT["crowded_others_fit"]]].any()


def test_what_counts_once_arrivals_have_ended_is_told_apart() -> None:
    long, short, *_ = features(jobset((0, 9, 4, 1), (0, 2, 5, 1)), CLUSTER._replace(arrivals_end=0))
    for name in ("others_fit", "length", "log_dominant", "aligned"):
        assert short[AT[f"ended_{name}"]] == short[AT[name]] != 0
    assert (short[AT["long_ended"]], long[AT["long_ended"]], long[AT["long_ended_crowded"]]) == (0, 1, 0)


def test_a_backlog_crowds_the_slots() -> None:
    of = CLUSTER._replace(slots=2, backlog=30, arrivals_end=0)
    first, second = features(jobset(*[(0, 9, 4, 1)] * 12), of)
    assert first[AT["crowded_length"]] == 10 / 20 * 9 / 15
    assert second[AT["crowded_others_fit"]] == 10 / 20 * 1 / 5


def test_an_untold_load_is_estimated_by_the_jobs_that_came() -> None:
    several = [jobset((0, 6, 5, 1)), jobset((0, 8, 5, 1), *[(0, 1, 5, 1)] * 4)]
    few, many = (features(jobs)[0, AT["long_load"]] for jobs in several)
    each = 6 * (5 / 10 + 1 / 7) / 2
    assert few == pytest.approx(min(2.2, (each + 20 * 1.845) / 21 * 2.2 / 3))
    assert many == 2.2  # 6.2 jobs in three steps
    assert features(several[1]._replace(load=30.0))[0, AT["long_load"]] == 0.3


def test_where_nobody_tells_when_arrivals_end_they_go_on() -> None:
    endless = features(jobset((0, 6, 1, 1)), CLUSTER._replace(arrivals_end=None))[0]
    assert endless[AT["long_endless"]] == endless[AT["long_left"]] == endless[AT["long_coming"]] == 1
    assert endless[AT["long_more"]] == 0


def test_a_rule_without_its_weights_is_refused() -> None:
    with pytest.raises(ValueError, match=f"scores: expected {COUNT} weights and {COUNT + 1} of each unit, got 3"):
        players([CompiledRule("scores", weights=(1.0, 2.0, 3.0))], np.zeros(1, dtype=np.uint64))
