"""Compiled roll-outs against lock step: the same decisions, whoever asks."""

import numpy as np
import pytest
from builders import random_jobset

from pipeline.core.config import Mlp
from pipeline.core.types import keys
from pipeline.errors import UserError
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.agents.training import sampled_rollout
from pipeline.problems.pool.agents.training.decisions import DecisionBuffer, Decisions, by_chance, record
from pipeline.problems.pool.agents.training.sampled_rollout import play_by_chance
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched

CLUSTERS = {
    "deeprm": Cluster((10, 10), 20, 10, 60, False),
    "ahead": Cluster((4, 3), 8, 3, 5, True),
    "one resource": Cluster((5,), 6, 2, 6, True),
    "wide, one slot": Cluster((300, 2), 5, 1, 7, False),
}


def drawn(of: Cluster, episodes: int = 9, jobs: int = 25) -> list[JobSet]:
    return [random_jobset(np.random.default_rng(number), of, jobs, 30) for number in range(episodes)]


def in_order(played: Decisions) -> list[np.ndarray]:
    """The columns of all decisions, episode by episode."""
    order = np.lexsort((played.turn, played.episode))
    return [column[order] for column in (*played.observed, *played[1:5])]


def both(of: Cluster, masked: bool, hidden: int = 7) -> tuple[Decisions, Decisions]:
    """What a network does when it is asked in lock step, and when it plays inside the kernel."""
    jobs, network = batch(drawn(of)), build(Mlp(name="mlp", hidden=hidden, clock=True), of, seed=3)
    key = keys(1, np.arange(jobs.episodes), np.zeros(jobs.episodes, dtype=np.int64))
    asked, alone = (Batched(jobs, of, 200, "slowdown", skip_forced=masked) for _ in range(2))
    return record(asked, by_chance(network.frozen(), masked), key), play_by_chance(network, alone, masked, key)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    ("of", "at_least"), [*((of, 5) for of in CLUSTERS.values()), (CLUSTERS["ahead"], 1), (CLUSTERS["ahead"], 64)]
)
@pytest.mark.usefixtures("two_threads")
def test_whole_episodes_are_those_of_lock_step(
    of: Cluster, masked: bool, at_least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampled_rollout, "MIN_DECISIONS", at_least)
    monkeypatch.setattr(sampled_rollout, "TOTAL_DECISIONS", 0)
    asked, alone = both(of, masked)
    assert len(alone.action) > 9 * 10
    assert len(set(alone.action.tolist())) == of.slots + 1
    for ours, theirs in zip(in_order(alone), in_order(asked), strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(alone.rewards, asked.rewards)


def test_the_turns_of_an_episode_are_counted_across_calls() -> None:
    _, played = both(CLUSTERS["deeprm"], masked=False)
    assert [played.turn[played.episode == b].tolist() for b in range(9)] == [
        list(range(int((played.episode == b).sum()))) for b in range(9)
    ]


def test_a_book_is_used_again_and_grows() -> None:
    of, buffer = CLUSTERS["deeprm"], DecisionBuffer()
    network, found = build(Mlp(name="mlp", hidden=4, clock=False), of, seed=1), []
    for episodes in (2, 30, 30):
        jobs = batch(drawn(of, episodes))
        key = keys(1, np.arange(episodes), np.zeros(episodes, dtype=np.int64))
        found.append(in_order(play_by_chance(network, Batched(jobs, of, 200, "slowdown"), False, key, buffer)))
    assert len(found[1][0]) > 3 * len(found[0][0])
    for small, again, larger in zip(found[0], found[2], found[1], strict=True):
        assert np.array_equal(again, larger)
        assert np.array_equal(larger[: len(small)], small)


def test_jobsets_without_a_choice_are_refused() -> None:
    of = CLUSTERS["one resource"]._replace(stall=0)
    one = JobSet(np.array([0]), np.array([2]), np.array([[1]]))
    network = build(Mlp(name="mlp", hidden=4, clock=False), of, seed=1)
    with pytest.raises(UserError, match="leave no decision to learn from"):
        play_by_chance(
            network, Batched(batch([one]), of, 9, "slowdown", skip_forced=True), True, np.zeros(1, np.uint64)
        )
