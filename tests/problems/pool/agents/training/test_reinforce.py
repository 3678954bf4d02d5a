"""REINFORCE: its advantages by hand, and that it learns a problem of seconds."""

import numpy as np
import pytest
import torch
from builders import many, observation, tiny_jobset, tiny_task
from torch.optim.optimizer import register_optimizer_step_post_hook

import pipeline.problems.pool.agents.training.reinforce as learner
from pipeline.core.config import Mlp, Params, Recipe, Reinforce
from pipeline.core.config.pool.learning import ValueBaseline
from pipeline.core.types import CompiledRule, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.learning.stored import weights_of
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.encodings import Layout
from pipeline.problems.pool.agents.networks.network import PLAY, Network
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.agents.training.decisions import DecisionBuffer, Decisions, by_rule, record
from pipeline.problems.pool.agents.training.reinforce import Critic, advantages, reinforce
from pipeline.problems.pool.agents.training.task import JOBSETS, Task
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import JobSet, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched

BUDGET = Reinforce(name="reinforce", recipe="ours", loads=(120,), updates=12, jobsets=16, episodes=8, validate_every=1)
BRIEF = BUDGET.model_copy(update={"jobsets": 3, "episodes": 4})


VALUE = ValueBaseline(hidden=16, learning_rate=0.01, steps=8)


@pytest.fixture(params=["paper", "ours", "value"])
def recipe(request: pytest.FixtureRequest, params: Params) -> Recipe:
    return by_value(params) if request.param == "value" else params.recipes[request.param]


def by_value(params: Params, **changes: object) -> Recipe:
    """The paper's recipe with the baseline of its section 5."""
    return params.recipes["paper"].model_copy(update={"baseline": "value", "value": VALUE, **changes})


def untrained(task: Task, seed: int = 1) -> Network:
    return build(Mlp(name="mlp", hidden=20, clock=False), task.cluster, seed)


def content(network: Network) -> dict[str, bytes]:
    return {name: weight.tobytes() for name, weight in weights_of(network).items()}


def slowdown(network: Network, task: Task) -> float:
    """Mean slowdown on validation jobsets, sampled."""
    policy = PLAY["sampled"](network, task.recipe.masked)
    return score({"": policy}, task.validation, task.cluster, task.step_limit, 0, task.recipe.masked)[""].mean


def test_play_improves_with_the_recipe_of_ours(params: Params) -> None:
    task = tiny_task(params.recipes["ours"].model_copy(update={"learning_rate": 0.01}))
    network = untrained(task)
    start = slowdown(network, task)
    updates = list(reinforce(network, task, BUDGET))
    assert slowdown(network, task) < 0.75 * start
    assert updates[-1].metrics["entropy"] < updates[0].metrics["entropy"]


def test_play_improves_with_the_recipe_of_the_paper(params: Params) -> None:
    task = tiny_task(params.recipes["paper"].model_copy(update={"learning_rate": 0.003}))
    network = untrained(task)
    start = slowdown(network, task)
    list(reinforce(network, task, BUDGET.model_copy(update={"jobsets": 4})))
    assert slowdown(network, task) < 0.85 * start


def test_one_update_changes_every_weight_and_gives_the_same_bytes_again(recipe: Recipe) -> None:
    task = tiny_task(recipe)
    one, other = untrained(task), untrained(task)
    start = content(one)
    first, second = next(reinforce(one, task, BRIEF)), next(reinforce(other, task, BRIEF))
    assert first == second
    assert content(one) == content(other)
    assert all(content(one)[name] != weight for name, weight in start.items())


def test_another_seed_is_another_update(recipe: Recipe) -> None:
    one, other = (untrained(tiny_task(recipe)) for _ in range(2))
    next(reinforce(one, tiny_task(recipe, seed=1), BRIEF))
    next(reinforce(other, tiny_task(recipe, seed=2), BRIEF))
    assert content(one) != content(other)


def test_every_update_draws_its_own_episodes(params: Params) -> None:
    task = tiny_task(params.recipes["paper"].model_copy(update={"learning_rate": 1e-12}))  # the same jobsets and policy
    first, second = (
        update.metrics for update in reinforce(untrained(task), task, BRIEF.model_copy(update={"updates": 2}))
    )
    assert first["mean_return"] != second["mean_return"]


@pytest.mark.parametrize("objective", ["slowdown", "completion_time", "makespan", "utilisation"])
def test_the_return_that_is_reported_is_the_objectives(params: Params, objective: str) -> None:
    task = tiny_task(params.recipes["paper"], objective)
    reported = next(reinforce(untrained(task), task, BRIEF)).metrics
    assert reported["best_return"] >= reported["mean_return"]
    assert (reported["mean_return"] > 0) == (objective == "utilisation")


def test_unfinished_jobs_of_cut_episodes_are_counted(params: Params) -> None:
    task = tiny_task(params.recipes["paper"], step_limit=1)  # jobs of one step may finish, no other
    reported = next(reinforce(untrained(task), task, BRIEF)).metrics
    jobs = [task.train[120][k] for k in range(BRIEF.jobsets)]
    all_jobs = BRIEF.episodes * sum(len(one.arrival) for one in jobs)
    of_one_step = BRIEF.episodes * sum(int(((one.duration == 1) & (one.arrival == 0)).sum()) for one in jobs)
    assert all_jobs - of_one_step <= reported["unfinished"] <= all_jobs
    whole = tiny_task(params.recipes["ours"])
    assert next(reinforce(untrained(whole), whole, BRIEF)).metrics["unfinished"] == 0


def two_episodes() -> Decisions:
    """Two episodes of one jobset, three decisions each.

    Rewards to come: -3, -1, 0 and -8, -4, -2. The first episode decides at steps 0, 0, 1, the second at 0, 1, 2.
    """
    return Decisions(
        observed=compact(many(observation(duration=[1]), 6)),
        action=np.zeros(6, dtype=np.int64),
        episode=np.array([0, 1, 0, 1, 0, 1]),
        turn=np.array([0, 0, 1, 1, 2, 2]),
        now=np.array([0, 0, 0, 1, 1, 2]),
        rewards=np.array([[-2.0, -1.0, 0.0], [-4.0, -2.0, -2.0]]),
    )


def gains(params: Params, **changes: object) -> list[float]:
    plain = {"gamma": 1.0, "normalise": False, "equal_loads": False, **changes}
    gain = advantages(two_episodes(), 2, params.recipes["ours"].model_copy(update=plain))
    return [float(value) for value in gain]


def test_leave_one_out_compares_at_the_same_time(params: Params) -> None:
    # first: -3 + 8, -3 + 8, -1 + 4; second: -8 + 3, -4 + 1, -2 - 0
    assert gains(params, baseline="leave_one_out") == [5.0, -5.0, 5.0, -3.0, 3.0, -2.0]


def test_the_decision_baseline_compares_at_the_same_decision(params: Params) -> None:
    # first: -3, -3, -1; second: -8, -4, -2; means by decision: -5.5, -3.5, -1.5
    assert gains(params, baseline="decision") == [2.5, -2.5, 0.5, -0.5, 0.5, -0.5]


def test_a_value_network_is_asked_before_it_learns_and_comes_to_expect_what_comes(params: Params) -> None:
    # All decisions are of one state, of returns -3, -8, -3, -4, -1, -2: it can expect but their mean, -3.5.
    played = two_episodes()
    critic, other = (Critic(Layout((10, 10), 20, 1, 0, False), VALUE, 1, Memory()) for _ in range(2))
    returns = np.array([-3.0, -8.0, -3.0, -4.0, -1.0, -2.0])
    first = advantages(played, 2, by_value(params), critic)
    assert first == pytest.approx(
        returns - other.judge(played.observed, returns[::-1].copy())
    )  # of one mean and spread
    for _ in range(100):
        last = advantages(played, 2, by_value(params), critic)
    assert last == pytest.approx(returns + 3.5, abs=0.3)


def test_play_improves_with_a_value_network_as_baseline(params: Params) -> None:
    task = tiny_task(by_value(params, learning_rate=0.003))
    network = untrained(task)
    start = slowdown(network, task)
    list(reinforce(network, task, BUDGET.model_copy(update={"jobsets": 4})))
    assert slowdown(network, task) < 0.85 * start


def test_advantages_are_of_discounted_returns(params: Params) -> None:
    # at gamma 0.5: -2.5, -1, 0 and -5.5, -3, -2
    assert gains(params, baseline="leave_one_out", gamma=0.5) == [3.0, -3.0, 3.0, -2.0, 2.0, -2.0]


def test_where_loads_count_alike_advantages_are_shares_of_what_the_jobset_costs(params: Params) -> None:
    # Its two episodes cost 3 and 8.
    raw, shares = (gains(params, baseline="leave_one_out", equal_loads=alike) for alike in (False, True))
    assert shares == pytest.approx([value / 5.5 for value in raw])


def test_normalised_advantages_are_in_units_of_their_spread(params: Params) -> None:
    raw, scaled = (gains(params, baseline="decision", normalise=on) for on in (False, True))
    assert float(np.std(scaled)) == pytest.approx(1.0)
    assert scaled == pytest.approx([value / float(np.std(raw)) for value in raw])


def test_a_job_that_did_better_than_its_peers_becomes_more_probable(params: Params) -> None:
    # Both jobs fit, one at a time: the short one first is better, whatever the network thought.
    task = tiny_task(params.recipes["ours"].model_copy(update={"jobsets": "fixed", "entropy": 0.0}))
    jobs = tiny_jobset(120, 0, 0)._replace(
        arrival=np.array([0, 0]), duration=np.array([6, 1]), demand=np.array([[4, 4], [4, 4]])
    )
    task = task._replace(train={120: [jobs]})
    network = untrained(task)
    observed = compact(Batched(batch([jobs]), task.cluster, 50).observe(np.array([0])))
    before = torch.softmax(network(observed)[0, :2], dim=0)[1]
    for _ in reinforce(network, task, BUDGET.model_copy(update={"jobsets": 1, "updates": 3})):
        pass
    assert torch.softmax(network(observed)[0, :2], dim=0)[1] > before


def test_gradients_are_clipped_where_the_recipe_says(params: Params) -> None:
    """Weights would not tell, for RMSprop undoes a factor; the gradients that an update leaves do."""
    for clip, most in ((0.01, 0.01), (None, np.inf)):
        task = tiny_task(params.recipes["paper"].model_copy(update={"clip": clip}))
        network = untrained(task)
        next(reinforce(network, task, BRIEF))
        norm = float(torch.cat([weight.grad.flatten() for weight in network.parameters()]).norm())  # type: ignore[union-attr]
        assert norm <= most * (1 + 1e-4)
        assert (norm > 0.011) == (clip is None)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_training_that_diverges_is_stopped(params: Params, kind: str) -> None:
    task = tiny_task(params.recipes["paper"])
    network = build(params.agents["deeprm" if kind == "mlp" else "deeprm2"].network, task.cluster, seed=1)
    with torch.no_grad():
        next(network.parameters())[0] = np.nan
    with pytest.raises(UserError, match="update 1: the gradient is not finite; lower learning_rate, or set clip"):
        next(reinforce(network, task, BRIEF))


@pytest.mark.usefixtures("two_threads")
def test_groups_that_are_played_one_after_another_give_the_gradient_of_all_at_once(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tiny_task(params.recipes["paper"])
    found = []
    for jobs_at_once in (10**6, 1):
        monkeypatch.setattr(learner, "JOBS_AT_ONCE", jobs_at_once)
        network = untrained(task)
        (update,) = reinforce(network, task, BUDGET.model_copy(update={"updates": 1}))
        found.append(([weight.grad for weight in network.parameters()], update.metrics))
    (whole, told), (grouped, told_in_groups) = found
    assert told_in_groups == pytest.approx(told)
    for one, other in zip(whole, grouped, strict=True):
        assert one is not None
        assert other is not None
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6 * float(one.abs().max()))


def test_the_jobsets_of_an_update_are_shared_out_among_its_steps(params: Params) -> None:
    """Two steps of half the jobsets each are two updates of half the jobsets, but for their draws."""
    task = tiny_task(params.recipes["ours"])
    for minibatches, norms in ((1, 1), (2, 2), (99, BRIEF.jobsets)):
        recipe = task.recipe.model_copy(update={"minibatches": minibatches})
        network, steps = untrained(task), 0

        def count(optimizer: object, *_: object) -> None:
            nonlocal steps
            steps += 1

        handle = register_optimizer_step_post_hook(count)
        next(reinforce(network, task._replace(recipe=recipe), BRIEF))
        handle.remove()
        assert steps == norms


def test_a_book_is_used_again_and_grows(params: Params) -> None:
    task, buffer = tiny_task(params.recipes["paper"]), DecisionBuffer()
    for jobsets in (2, 5, 3):
        jobs, number = batch(task.train[120][:jobsets]), np.arange(jobsets)
        key = keys(0, number, np.zeros_like(number))
        sjf = by_rule(CompiledRule("sjf"), key)
        kept, fresh = (
            record(Batched(jobs, task.cluster, 100, "slowdown"), sjf, key, where) for where in (buffer, None)
        )
        assert all(np.array_equal(one, other) for one, other in zip(kept.observed, fresh.observed, strict=True))
        assert all(np.array_equal(one, other) for one, other in zip(kept[1:], fresh[1:], strict=True))


def test_decisions_are_kept_in_order_with_what_was_seen(params: Params) -> None:
    task = tiny_task(params.recipes["paper"])
    jobsets = task.train[120][:5]
    number = np.arange(5)
    simulator = Batched(batch(jobsets), task.cluster, 100, "slowdown")
    key = keys(0, number, np.zeros_like(number))
    kept = record(simulator, by_rule(CompiledRule("sjf"), key), key)
    again = Batched(batch(jobsets), task.cluster, 100, "slowdown")
    for turn in range(kept.turn.max() + 1):
        now = np.flatnonzero(kept.turn == turn)
        assert kept.episode[now].tolist() == again.rows.tolist()
        view = again.observe(again.rows)
        assert all(
            np.array_equal(one, other) for one, other in zip(kept.observed.take(now), compact(view), strict=True)
        )
        assert np.array_equal(kept.now[now], view.now)
        again.step(again.rows, kept.action[now])
    assert not len(again.rows)
    assert kept.rewards.shape == (5, again.schedule().steps.max())
    assert np.array_equal(kept.rewards, again.rewards[:, : kept.rewards.shape[1]])


def test_episodes_without_a_choice_are_refused(params: Params) -> None:
    task = tiny_task(params.recipes["ours"])
    alone = task.train[120][0]._replace(arrival=np.array([0]), duration=np.array([1]), demand=np.array([[1, 1]]))
    simulator, key = Batched(batch([alone]), task.cluster, 100, skip_forced=True), np.zeros(1, dtype=np.uint64)
    with pytest.raises(UserError, match="no decision to learn from"):
        record(simulator, by_rule(CompiledRule("sjf"), key), key)


def test_fresh_jobsets_are_never_met_twice_and_take_the_loads_in_turn(params: Params) -> None:
    asked: list[tuple[int, int]] = []

    def note(load: int, number: int) -> JobSet:
        asked.append((load, number))
        return tiny_jobset(load, 2, number)

    task = tiny_task(params.recipes["ours"])._replace(loads=[50, 120], fresh=note)
    draw = JOBSETS["fresh"](task, 3)
    for update in (1, 2, 3):
        assert len(draw(update)) == 3
    assert len({number for _, number in asked}) == 9
    # Each update goes on where the last one ended, or 50 % would come twice as often as 120 %.
    assert [load for load, _ in asked] == [120, 50, 120, 50, 120, 50, 120, 50, 120]


def test_fixed_jobsets_are_the_written_ones_in_every_update(params: Params) -> None:
    task = tiny_task(params.recipes["paper"])
    draw = JOBSETS["fixed"](task, 3)
    assert draw(1) is draw(2)
    assert all(one is other for one, other in zip(draw(1), task.train[120][:3], strict=True))


def test_an_update_tells_its_metrics_to_people() -> None:
    assert Update(3, {"loss": 0.123456, "decisions": 871.0}).note == "loss 0.1235, decisions 871"
