"""DeepRM3's expert iteration: gains by hand, the gradient of the expected return, and that it learns in seconds."""

import numpy as np
import pytest
import torch
from builders import jobset, tiny_jobset
from set_learning import TRYING, WINDOWS, content, set_task, sets

from pipeline.config import Params, Recipe, StreamWindows
from pipeline.learning.memory import Memory
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.branching import Beyond, Branches, branches
from pipeline.problems.pool.training.expert import _add_gradient, _short, _stream, as_taken, expert, gains
from pipeline.problems.pool.training.mixture import LEAST, mixture
from pipeline.problems.pool.training.task import Task
from pipeline.problems.pool.training.validation import slowdown

SHORT_RUNS = TRYING.model_copy(update={"streams": None, "updates": 15, "jobsets": 12, "every": 2})
LONG, SHORT = 0, 1


@pytest.fixture
def recipe(params: Params) -> Recipe:
    return params.recipes["deeprm3"]


def first_decision(*jobs: tuple[int, int, int]) -> Branches:
    simulator = Batched(
        batch([jobset(*jobs)]), Cluster((3,), 8, 2, 4, False, stall=0), 99, "slowdown", skip_forced=True
    )
    return branches(simulator, sets(), simulator.rows, np.zeros(1), 1e-9, 12, Beyond())


def worked(returns: list[list[float]], chance: list[list[float]], before: float = 0.0) -> Branches:
    """Decisions of one episode."""
    table, count = np.array(chance), len(chance)
    none = first_decision((0, 6, 3), (0, 1, 3)).observed.take(slice(0))
    zeros = np.zeros(count, dtype=np.int64)
    return Branches(none, table > 0, table, np.array(returns), np.full(count, before), zeros, np.ones(count))


# Gains


def test_a_gain_is_a_share_of_what_the_jobset_costs(recipe: Recipe) -> None:
    plain = recipe.model_copy(update={"normalise": False})
    found = worked([[-4.0, -8.0, 0.0]], [[0.75, 0.25, 0.0]], before=-5.0)  # -5 in the mean, 10 with what was before
    assert gains(found, plain, apart=False).tolist() == [[pytest.approx(0.1), pytest.approx(-0.3), 0.0]]
    share = np.array([1 / 5, -3 / 5])  # of the window's; its deviation is the root of 0.75 * 0.04 + 0.25 * 0.36
    assert gains(found, plain, apart=True)[0, :2] == pytest.approx(share / (np.sqrt(0.12) + LEAST))


def test_normalised_gains_are_in_units_of_their_deviation(recipe: Recipe) -> None:
    found = worked([[-4.0, -8.0], [-1.0, -3.0]], [[0.75, 0.25], [0.5, 0.5]])
    gain = gains(found, recipe, apart=False)
    assert recipe.normalise
    assert (found.chance * gain**2).sum(axis=1).mean() == pytest.approx(1.0)
    assert (found.chance * gain).sum(axis=1) == pytest.approx(np.zeros(2))


def test_actions_that_bring_the_same_teach_nothing(recipe: Recipe) -> None:
    """Two jobs of as many steps, of all units and of most: whichever starts first, the other waits as long."""
    found, network = first_decision((0, 4, 3), (0, 4, 2)), sets()
    assert found.tried.tolist() == [[True, True, False]]
    assert found.returns[0, :2].tolist() == [-3.0, -3.0]
    gain = gains(found, recipe, apart=False)
    assert gain.tolist() == [[0.0, 0.0, 0.0]]
    _add_gradient(network, found, gain, 0.0)
    assert all(not weight.grad.any() for weight in network.parameters() if weight.grad is not None)


def test_shares_of_taken_actions_add_up_to_what_is_wanted() -> None:
    chance = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.9, 0.0, 0.0]])
    wanted = np.array([[0.2, -0.3, 0.1, 0.0], [-0.4, 0.4, 0.0, 0.0]])
    decision, action, share = as_taken(wanted, chance, chance > 0)
    assert list(zip(decision.tolist(), action.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0)]
    found = np.zeros_like(wanted)
    for d, a, g in zip(decision, action, share, strict=True):
        found[d] += g * (np.eye(4)[a] - chance[d])
    assert found == pytest.approx(wanted)


def test_the_gradient_is_that_of_the_expected_gain_and_of_the_entropy() -> None:
    """Held to torch's, through the whole network; each decision's entropy counts once."""
    found, network, other = first_decision((0, 6, 3), (0, 1, 3)), sets(), sets()
    gain = np.array([[-2.0, 1.5, 0.0]])
    entropy = _add_gradient(network, found, gain, 0.3)
    chances = torch.softmax(other(found.observed)[:, :2].double(), dim=1)
    spread = -(chances * chances.log()).sum()
    loss = -((chances * torch.from_numpy(gain[:, :2])).sum() + 0.3 * spread)
    loss.backward()
    assert entropy == pytest.approx(float(spread.detach()), abs=1e-6)
    for mine, its in zip(network.parameters(), other.parameters(), strict=True):
        expected = torch.zeros_like(mine) if its.grad is None else its.grad
        torch.testing.assert_close(mine.grad, expected, rtol=1e-3, atol=1e-6)


def test_a_decision_counts_for_all_that_were_passed_over(recipe: Recipe) -> None:
    """Every third of a short run and every fifth of a window is asked about: else windows would count for less."""
    longer = WINDOWS.model_copy(update={"steps": 40})
    config = TRYING.model_copy(update={"every": 3, "every_of_streams": 5, "unsure": 1e-9, "streams": longer})
    for play, every in ((_short, 3.0), (_stream, 5.0)):
        found = play(sets(), set_task(recipe), config, 1, np.random.default_rng(1))
        assert found is not None
        assert set(found.weight.tolist()) == {every}


# Learning


def judged(network: Sets, task: Task) -> float:
    return slowdown(network, task.validation[120], task, task.cluster, task.step_limit, (0.0, float("inf")))


def test_play_improves_on_short_runs(recipe: Recipe) -> None:
    task, network = set_task(recipe.model_copy(update={"learning_rate": 0.01})), sets()
    start = judged(network, task)
    updates = list(expert(network, task, SHORT_RUNS))
    assert judged(network, task) < 0.9 * start
    assert updates[-1].metrics["entropy"] < updates[0].metrics["entropy"]


def test_streams_alone_teach_short_jobs_first(recipe: Recipe) -> None:
    jobs = jobset((0, 6, 3), (0, 1, 3))
    task = set_task(recipe.model_copy(update={"learning_rate": 0.05, "entropy": 0.0}))
    task = task._replace(cluster=Cluster((3,), 8, 2, 4, False, stall=0), stream=lambda split, load, number, steps: jobs)
    window = StreamWindows(loads=(80,), slots=(2,), windows=2, latest=0, steps=1, beyond=9)
    network, found = sets(), first_decision((0, 6, 3), (0, 1, 3))
    config = TRYING.model_copy(update={"jobsets": 0, "streams": window, "updates": 20})
    list(expert(network, task, config))
    after = torch.softmax(network(found.observed)[0, :2], dim=0)
    assert after[SHORT] > found.chance[0, SHORT] + 0.2


def test_it_begins_as_a_mixture(recipe: Recipe) -> None:
    mixed, begun = sets(), sets()
    list(mixture(mixed, set_task(recipe), TRYING.model_copy(update={"updates": 2})))  # type: ignore[arg-type]
    list(expert(begun, set_task(recipe), TRYING.model_copy(update={"updates": 2, "begins": 2})))
    assert content(begun) == content(mixed)


def test_a_training_that_was_killed_goes_on_to_the_same_bytes(recipe: Recipe) -> None:
    config, whole, expected, states = TRYING.model_copy(update={"updates": 4, "begins": 1}), sets(), [], []
    memory = Memory()
    memory.keep(network=whole)
    for update in expert(whole, set_task(recipe), config, memory):
        expected.append(update)
        states.append({place: value.copy() for place, value in memory.state().items()})
    for done, state in enumerate(states, start=1):
        other, memory = sets(seed=99), Memory(state, done)
        memory.keep(network=other)
        assert list(expert(other, set_task(recipe), config, memory)) == expected[done:]
        assert content(other) == content(whole)


def test_another_seed_is_another_update(recipe: Recipe) -> None:
    one, other, again = sets(), sets(), sets()
    for network, seed in ((one, 1), (other, 2), (again, 1)):
        list(expert(network, set_task(recipe, seed), TRYING))
    assert content(one) != content(other)
    assert content(one) == content(again)


def test_jobsets_without_a_choice_teach_nothing(recipe: Recipe) -> None:
    alone = tiny_jobset(120, 0, 0)._replace(arrival=np.array([0]), duration=np.array([1]), demand=np.array([[1, 1]]))
    task, network = set_task(recipe)._replace(fresh=lambda load, number: alone), sets()
    start = content(network)
    (update,) = expert(network, task, SHORT_RUNS.model_copy(update={"updates": 1}))
    assert update.metrics["decisions"] == 0.0
    assert content(network) == start
