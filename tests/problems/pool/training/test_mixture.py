"""DeepRM3's policy gradient: advantages by hand, what comes after a window, and that it learns a problem of seconds."""

import numpy as np
import pytest
import torch
from builders import jobset, tiny_jobset
from set_learning import BRIEF, WINDOWS, content, gradient, set_task, sets

from pipeline.config import Mixture, Recipe, StreamWindows
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.problems.pool.learning import slowdown
from pipeline.problems.pool.networks.relative import relative_buffer
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.mixture import (
    LEAST,
    Learned,
    LearningBatch,
    advantages,
    chances,
    left,
    mixture,
    windows,
)
from pipeline.problems.pool.training.rolling import Rollout
from pipeline.problems.pool.training.task import Task

SHORT_RUNS = BRIEF.model_copy(update={"streams": None, "updates": 15, "jobsets": 12, "episodes": 8})
STREAMS_ONLY = BRIEF.model_copy(update={"jobsets": 0})


@pytest.fixture
def recipe() -> Recipe:
    return gradient()


# Advantages

REWARDS = np.array([[-2.0, -1.0, 0.0], [-4.0, -2.0, -2.0]])  # to come: -3, -1, 0 and -8, -4, -2; 5.5 in the mean


def two_episodes(first: int = 0, copies: int = 1) -> LearningBatch:
    """Two episodes of a jobset, which decide at steps 0, 0, 1 and 0, 1, 2; of further jobsets all costs ten times."""
    episode, turn, now = np.array([[0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2]])
    count = 6 * copies
    episode = np.concatenate([episode + 2 * k for k in range(copies)])
    played = Rollout(
        relative_buffer(count, 1),
        np.zeros(count, dtype=np.int64),
        episode,
        np.tile(turn, copies),
        np.tile(now + first, copies),
    )
    return LearningBatch(played, np.concatenate([REWARDS * 10.0**k for k in range(copies)]), first, apart=False)


# In the order of the decisions: steps 0, 0, 0, 1, 1, 2 of episodes 0, 1, 0, 1, 0, 1.
WORKED = {
    "leave_one_out": [-3 + 8, -8 + 3, -3 + 8, -4 + 1, -1 + 4, -2 - 0],
    "decision": [2.5, -2.5, 0.5, -0.5, 0.5, -0.5],  # means of the first, second, third: -5.5, -3.5, -1.5
    "time": [-3 + 14 / 3, -8 + 14 / 3, -3 + 14 / 3, -4 + 2.5, -1 + 2.5, 0.0],  # means of steps 0, 1, 2: -14/3, -2.5, -2
}


@pytest.mark.parametrize("first", [0, 7])
@pytest.mark.parametrize("baseline", list(WORKED))
def test_an_advantage_is_a_share_of_what_the_jobset_costs(recipe: Recipe, baseline: str, first: int) -> None:
    plain = recipe.model_copy(update={"baseline": baseline, "normalise": False})
    expected = [gain / 5.5 for gain in WORKED[baseline]]
    assert advantages(two_episodes(first), 2, plain).tolist() == pytest.approx(expected)
    # a jobset that costs ten times as much counts alike
    assert advantages(two_episodes(first, copies=2), 2, plain).tolist() == pytest.approx(2 * expected)


def test_normalised_advantages_are_in_units_of_their_spread(recipe: Recipe) -> None:
    found = advantages(two_episodes(), 2, recipe)
    raw = np.array(WORKED["leave_one_out"])
    assert recipe.normalise
    assert found.tolist() == pytest.approx((raw / raw.std()).tolist())


def test_advantages_are_of_discounted_returns(recipe: Recipe) -> None:
    # at gamma 0.5: -2.5, -1, 0 and -5.5, -3, -2
    half = recipe.model_copy(update={"gamma": 0.5, "normalise": False})
    expected = [gain / 5.5 for gain in (3.0, -3.0, 3.0, -2.0, 2.0, -2.0)]
    assert advantages(two_episodes(), 2, half).tolist() == pytest.approx(expected)


def test_no_decision_has_no_advantage(recipe: Recipe) -> None:
    part = two_episodes()
    none = Rollout(part.played.observed.take(slice(0)), *(column[:0] for column in part.played[1:]))
    assert len(advantages(part._replace(played=none), 2, recipe)) == 0


# Windows

LONG, SHORT = 0, 1  # slots of the only two jobs: six steps and one; both want all three units


def two_jobs(recipe: Recipe) -> Task:
    """A stream of two jobs: whichever starts first, the first step costs the same."""
    jobs = jobset((0, 6, 3), (0, 1, 3))
    task = set_task(recipe)._replace(cluster=Cluster((3,), 8, 2, 4, False, stall=0), seed=5)
    return task._replace(stream=lambda split, load, number, steps: jobs)


def one_step(beyond: int) -> StreamWindows:
    return StreamWindows(loads=(80,), slots=(2,), windows=1, latest=0, steps=1, beyond=beyond)


def test_what_a_decision_costs_after_its_window_counts(recipe: Recipe) -> None:
    task = two_jobs(recipe)
    part = windows(task, one_step(beyond=9), sets().compiled(), update=1, episodes=12, number=100)
    played, total = part.played, part.rewards.sum(axis=1)
    assert part.rewards.shape == (12, 10 + 1)
    assert set(played.now.tolist()) == {0}
    # the short one first: it is there for a step, the long one for seven; the long one first: for six, and seven
    by_action = {SHORT: -(1 + 7 / 6), LONG: -(7 + 6 / 6)}
    assert {LONG, SHORT} <= set(played.action.tolist())
    for action, cost in by_action.items():
        assert total[played.episode[played.action == action]] == pytest.approx(cost)
    gain = advantages(part, 12, recipe)
    assert gain[played.action == SHORT].min() > 0 > gain[played.action == LONG].max()


def test_without_steps_beyond_the_window_nothing_tells_the_two_apart(recipe: Recipe) -> None:
    part = windows(two_jobs(recipe), one_step(beyond=0), sets().compiled(), update=1, episodes=12, number=100)
    assert {LONG, SHORT} <= set(part.played.action.tolist())
    assert part.rewards == pytest.approx(np.array([[-(1 + 1 / 6), 0.0]] * 12))
    plain = recipe.model_copy(update={"normalise": False})
    assert advantages(part, 12, plain) == pytest.approx(np.zeros(len(part.played.action)))


def test_what_is_left_costs_by_jobs_that_wait_and_by_work_not_yet_done() -> None:
    """At step 4, of three units: one waits, one has two of its five steps to go, one is over, one is yet to come."""
    jobs = batch([jobset((0, 6, 3), (1, 5, 1), (0, 2, 3), (4, 9, 3)), jobset((0, 7, 3))])
    start = np.array([-1, 1, 2, -1, 4])
    of = Cluster((3,), 8, 2, 4, False, stall=0)
    assert left(jobs, start, of, 4, (1.0, 0.0)).tolist() == [1.0, 1.0]
    assert left(jobs, start, of, 4, (0.0, 1.0)).tolist() == pytest.approx([6 + 2 / 3, 7.0])
    assert left(jobs, start, of, 4, (10.0, 2.0)).tolist() == pytest.approx([10 + 2 * (6 + 2 / 3), 10 + 14.0])


def test_what_is_left_after_a_window_is_its_last_reward(recipe: Recipe) -> None:
    """Whoever starts, one job waits for six or for one step; the running one has none or five to go."""
    config = one_step(beyond=0).model_copy(update={"left_job": 3.0, "left_work": 2.0})
    part = windows(two_jobs(recipe), config, sets().compiled(), update=1, episodes=12, number=100)
    rate = 1 + 1 / 6
    assert part.rewards[:, -1] == pytest.approx(np.full(12, -rate * (3 + 2 * 6)))
    twice = config.model_copy(update={"left_by_load": (2.0,)})
    again = windows(two_jobs(recipe), twice, sets().compiled(), update=1, episodes=12, number=100)
    assert again.rewards[:, -1] == pytest.approx(2 * part.rewards[:, -1])


def test_advantages_of_windows_are_in_units_of_their_own_spread(recipe: Recipe) -> None:
    plain = recipe.model_copy(update={"normalise": False})
    part = two_episodes()
    share = advantages(part, 2, plain)
    apart = advantages(part._replace(apart=True), 2, plain)
    assert apart == pytest.approx(share / (np.sqrt((share**2).mean()) + LEAST))


def test_the_copies_of_a_window_share_its_past_and_not_its_draws(recipe: Recipe) -> None:
    config = WINDOWS.model_copy(update={"latest": 8, "steps": 6})
    found = [windows(set_task(recipe), config, sets().compiled(), update, 3, 100) for update in range(1, 9)]
    assert {part.first for part in found} > {found[0].first}
    for part in found:
        assert part.rewards.shape == (2 * 3, 6 + 5 + 1)
        assert ((part.played.now >= part.first) & (part.played.now < part.first + 6)).all()
    assert any(len(np.unique(part.rewards[:3].sum(axis=1))) == 3 for part in found)


def test_windows_have_slots_and_loads_in_turn(recipe: Recipe) -> None:
    asked = []

    def stream(split: str, load: int, number: int, steps: int) -> JobSet:
        asked.append((split, load, number))
        return set_task(recipe).stream(split, load, number, steps)

    task = set_task(recipe)._replace(stream=stream)
    slots = [
        windows(task, WINDOWS, sets().compiled(), update, 2, 100).played.observed.job.shape[1] for update in (1, 2, 3)
    ]
    assert slots == [3, 5, 3]  # WINDOWS has 5 and 3, from update 0 on
    assert asked == [("fresh", load, number) for number, load in zip(range(2, 8), [80, 100] * 3, strict=True)]


# Learning


def judged(network: Sets, task: Task) -> float:
    whole = (0.0, float("inf"))
    return slowdown(network, task.validation[120], task, task.cluster, task.step_limit, whole)


def test_play_improves_on_short_runs(recipe: Recipe) -> None:
    task, network = set_task(recipe.model_copy(update={"learning_rate": 0.01})), sets(hidden=8)
    start = judged(network, task)
    updates = list(mixture(network, task, SHORT_RUNS))
    assert judged(network, task) < 0.9 * start
    assert updates[-1].metrics["entropy"] < updates[0].metrics["entropy"]
    assert updates[-1].metrics["mean_return"] > updates[0].metrics["mean_return"]


def test_streams_alone_teach_short_jobs_first(recipe: Recipe) -> None:
    """The two jobs of above: what is learned comes from beyond the window alone."""
    task = two_jobs(recipe.model_copy(update={"learning_rate": 0.05, "entropy": 0.0}))
    network = sets()
    simulator = Batched(batch([jobset((0, 6, 3), (0, 1, 3))]), task.cluster, 50)
    observed = network.encode(simulator.observe(np.array([0])))
    before = torch.softmax(network(observed)[0], dim=0)[SHORT]
    config = STREAMS_ONLY.model_copy(update={"streams": one_step(beyond=9), "updates": 20, "episodes": 8})
    list(mixture(network, task, config))
    assert torch.softmax(network(observed)[0], dim=0)[SHORT] > before + 0.2


def test_what_an_update_tells(recipe: Recipe) -> None:
    for config, returns in (
        (BRIEF, {"short_return", "stream_return"}),
        (STREAMS_ONLY, {"mean_return"}),
        (BRIEF.model_copy(update={"streams": None}), {"mean_return"}),
    ):
        for update in mixture(sets(), set_task(recipe), config):
            assert set(update.metrics) == {"entropy", "decisions", *returns}


@pytest.mark.parametrize("config", [BRIEF, STREAMS_ONLY], ids=["both", "streams"])
def test_a_training_that_was_killed_goes_on_to_the_same_bytes(recipe: Recipe, config: Mixture) -> None:
    recipe = recipe.model_copy(update={"annealed": True, "near": 0.5})
    config = config.model_copy(update={"updates": 4})
    whole, expected, states = sets(), [], []
    memory = Memory()
    memory.keep(network=whole)
    for update in mixture(whole, set_task(recipe), config, memory):
        expected.append(update)
        states.append({place: value.copy() for place, value in memory.state().items()})
    for done, state in enumerate(states, start=1):
        other, memory = sets(seed=99), Memory(state, done)
        memory.keep(network=other)
        assert list(mixture(other, set_task(recipe), config, memory)) == expected[done:]
        assert content(other) == content(whole)


def test_another_seed_is_another_update(recipe: Recipe) -> None:
    one, other, again = sets(), sets(), sets()
    for network, seed in ((one, 1), (other, 2), (again, 1)):
        list(mixture(network, set_task(recipe, seed), BRIEF))
    assert content(one) != content(other)
    assert content(one) == content(again)


def test_the_learning_rate_falls_to_nothing_in_a_line(recipe: Recipe) -> None:
    rates: dict[bool, list[float]] = {}
    for falling in (False, True):
        task = set_task(recipe.model_copy(update={"falling": falling, "learning_rate": 0.04}))
        memory, rates[falling] = Memory(), []
        for _ in mixture(sets(), task, BRIEF.model_copy(update={"updates": 4, "streams": None}), memory):
            rates[falling].append(memory._parts["optimizer"].state_dict()["param_groups"][0]["lr"])
    assert rates[True] == pytest.approx([0.04, 0.03, 0.02, 0.01])
    assert rates[False] == [0.04] * 4


def test_the_weight_of_the_entropy_falls_in_a_line(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    weights: dict[bool, list[float]] = {False: [], True: []}
    for annealed in weights:

        def noted(*asked: object, so: bool = annealed) -> Learned:
            weights[so].append(float(asked[4]))  # type: ignore[arg-type]
            return Learned(0, {})

        monkeypatch.setattr("pipeline.problems.pool.training.mixture.by_chance", noted)
        task = set_task(recipe.model_copy(update={"entropy": 0.8, "annealed": annealed}))
        list(mixture(sets(), task, SHORT_RUNS.model_copy(update={"updates": 4})))
    assert weights[True] == pytest.approx([0.8, 0.6, 0.4, 0.2])
    assert weights[False] == [0.8] * 4


def test_what_is_to_stay_near_its_first_policy_moves_less(recipe: Recipe) -> None:
    moved = []
    for near in (0.0, 10.0):
        network, task = sets(hidden=8), set_task(recipe.model_copy(update={"learning_rate": 0.01, "near": near}))
        simulator = Batched(batch(task.validation[120]), task.cluster, task.step_limit)
        seen = network.encode(simulator.observe(simulator.rows))
        before = chances(network.frozen()(seen), seen.may)
        assert before.sum(axis=1) == pytest.approx(1.0)
        list(mixture(network, task, SHORT_RUNS))
        moved.append(np.abs(chances(network.frozen()(seen), seen.may) - before).max())
    assert moved[0] > 2 * moved[1] > 0


def test_a_training_that_diverges_is_stopped(recipe: Recipe) -> None:
    network = sets()
    with torch.no_grad():
        network.score.weight[0, 0] = float("nan")
    with pytest.raises(UserError, match=r"^update 1: the gradient is not finite; lower learning_rate, or set clip$"):
        next(mixture(network, set_task(recipe), BRIEF))


def test_jobsets_without_a_choice_teach_nothing(recipe: Recipe) -> None:
    alone = tiny_jobset(120, 0, 0)._replace(arrival=np.array([0]), duration=np.array([1]), demand=np.array([[1, 1]]))
    task = set_task(recipe)._replace(fresh=lambda load, number: alone)
    network = sets()
    start = content(network)
    (update,) = mixture(network, task, BRIEF.model_copy(update={"streams": None, "updates": 1}))
    assert update.metrics["decisions"] == 0.0
    assert content(network) == start
