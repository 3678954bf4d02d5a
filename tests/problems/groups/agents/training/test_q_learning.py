"""Q-learning by hand: values stand in a table, of which each step changes what it was shown."""

from collections.abc import Sequence
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from group_builders import CLUSTER, RECIPE, tiny_task, untrained
from torch import Tensor, nn

from pipeline.core.config import QNetworkConfig
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.problems.groups.agents.networks.features import States, shape_of
from pipeline.problems.groups.agents.networks.q_network import Inputs, build, tensors
from pipeline.problems.groups.agents.training.q_learning import Learner, Target, batch_target
from pipeline.problems.groups.agents.training.task import Task, Transitions

NOW, THEN = 0, 1  # states
STEP = 2  # units from a level to the next


class Table(nn.Module):
    """Values [states, G, L, O] in the place of a network; the first thing told of a state is its number."""

    reward: Tensor | None = None

    def __init__(self, value: Tensor, scale: float = 1.0) -> None:
        super().__init__()
        self.value = nn.Parameter(value.clone())
        self.register_buffer("scale", torch.tensor([scale]))

    def forward(self, seen: Inputs, given: Tensor) -> Tensor:
        state = seen[0][:, :, :1].long()
        level = (given[..., 0] / STEP).long().expand(*state.shape[:2], -1)
        return self.value[state, torch.arange(state.shape[1])[None, :, None], level]

    def rewards(self, seen: Inputs, given: Tensor) -> Tensor | None:
        return None if self.reward is None else self.reward.expand(seen[0].shape[0], *self.reward.shape)


def table(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], scale: float = 1.0) -> Table:
    """Values of the next state, for each group by level and order; those of the present one are 0."""
    then = torch.tensor([first, second], dtype=torch.float32)
    return Table(torch.stack([torch.zeros_like(then), then]), scale)


def task(**settings: Any) -> Task:
    """A task on 4 units, with 0, 2 or 4 for each of two groups."""
    return tiny_task(RECIPE.model_copy(update=settings))


def states(*numbers: int) -> States:
    shape = shape_of(CLUSTER)
    told = np.zeros((len(numbers), 2, shape.features), dtype=np.float32)
    told[:, :, 0] = np.array(numbers)[:, None]
    return States(told, np.zeros((len(numbers), 2, shape.amounts), dtype=np.float32))


def decision(reward: tuple[float, float], over: bool = False, level: tuple[int, int] = (1, 1)) -> Transitions:
    """One decision in the present state, after which comes the next one: what was given, order 0, and the reward."""
    share = STEP * np.array([level], dtype=np.float32)[:, :, None]
    rewards = np.array([reward], dtype=np.float32)
    return Transitions(states(NOW), share, np.zeros((1, 2), dtype=int), rewards, states(THEN), np.array([over]))


def target(online: Table, lagging: Table, batch: Transitions, **settings: Any) -> list[list[float]]:
    found: list[list[float]] = batch_target(online, Target(lagging), task(**settings), batch).tolist()
    return found


# Of 4 units the knapsack gives all to group 0, worth 5: 3 + 1 and 4 are less. Left to itself, each would have 4 units.
VALUES_THEN = ([[0, -9], [3, -9], [5, -9]], [[0, -9], [1, -9], [4, -9]])
VALUES = table(*VALUES_THEN, scale=2)


def test_with_the_knapsack_a_target_is_the_reward_and_what_all_groups_can_have_later() -> None:
    # Rewards are counted in the scale, 2; gamma is 1/2.
    assert target(VALUES, VALUES, decision((2, -4))) == [[1 + 2.5, -2 + 0]]


def test_where_rewards_are_summed_the_next_configurations_are_those_of_most_reward() -> None:
    # All for group 1 is rewarded most: it is worth 4 then, and group 0 with nothing is worth 0.
    network = table(*VALUES_THEN, scale=2)
    network.reward = torch.tensor([[[0.0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [9, 0]]])
    assert target(network, VALUES, decision((2, -4))) == [[1 + 0, -2 + 2]]


def test_rewards_are_learned_beside_values() -> None:
    config = QNetworkConfig(name="q_network", hidden=(8, 6), weights="shared", combine="reward")
    network = build(config, CLUSTER, untrained().past.numpy(), seed=2)
    network.scale.fill_(2)
    batch, given = decision((2, -4)), torch.tensor([[[[2.0]], [[2.0]]]])
    learner = Learner(network, task(learning_rate=0.02), Memory())
    for _ in range(150):
        learner.step(batch)
    found = network.rewards(tensors(batch.state), given)
    assert found is not None
    assert found[0, :, 0, 0].tolist() == pytest.approx([1, -2], abs=0.2)  # in the scale


def test_with_each_groups_own_best_a_target_promises_more_than_there_is() -> None:
    assert target(VALUES, VALUES, decision((2, -4)), bootstrap="own") == [[1 + 2.5, -2 + 2]]


@pytest.mark.parametrize("bootstrap", ["joint", "own"])
def test_nothing_comes_later_when_an_episode_is_over(bootstrap: str) -> None:
    assert target(VALUES, VALUES, decision((2, -4), over=True), bootstrap=bootstrap) == [[1, -2]]


def test_each_decision_of_a_batch_has_its_own_target() -> None:
    both = [decision((2, -4)), decision((6, 0), over=True)]
    seen, then = states(NOW, NOW), states(THEN, THEN)
    share, order, reward, over = (np.concatenate([one[k] for one in both]) for k in (1, 2, 3, 5))
    batch = Transitions(seen, share, order, reward, then, over)
    assert target(VALUES, VALUES, batch) == [[3.5, -2], [3, 0]]


@pytest.mark.parametrize("bootstrap", ["joint", "own"])
def test_the_best_order_of_the_next_level_counts(bootstrap: str) -> None:
    values = table([[0, 0], [0, 6], [1, 2]], [[0, 0], [8, 0], [0, 0]])
    assert target(values, values, decision((0, 0)), bootstrap=bootstrap) == [[3, 4]]


# To the network itself 2 units for each are best, of order 1 for group 1; its target values these at 3 and 1.
ONLINE = table([[0, 0], [6, 0], [1, 0]], [[0, 0], [2, 3], [0, 0]])
LAGGING = table([[0, -9], [3, -9], [5, -9]], [[0, -9], [4, 1], [2, -9]])


@pytest.mark.parametrize("bootstrap", ["joint", "own"])
def test_doubled_the_network_chooses_and_its_target_values(bootstrap: str) -> None:
    assert target(ONLINE, LAGGING, decision((0, 0)), double=True, bootstrap=bootstrap) == [[1.5, 0.5]]


def test_not_doubled_the_target_does_both() -> None:
    assert target(ONLINE, LAGGING, decision((0, 0))) == [[1.5, 2]]  # 3 + 4
    assert target(ONLINE, LAGGING, decision((0, 0)), bootstrap="own") == [[2.5, 2]]


def test_a_target_has_no_gradient() -> None:
    found = batch_target(VALUES, Target(VALUES), task(double=True), decision((2, -4)))
    assert not found.requires_grad


def learn(network: nn.Module, batch: Transitions, steps: int = 1, **settings: Any) -> list[dict[str, float]]:
    learner = Learner(network, task(**settings), Memory())
    return [learner.step(batch, settings.get("conservative", 0.0)) for _ in range(steps)]


def moved(network: Table) -> list[list[float]]:
    """How far values of the present state are from 0, group by group: of each level's order 0, then order 1."""
    value = network.value.detach()[NOW].transpose(1, 2).reshape(2, -1).double().round(decimals=5)
    found: list[list[float]] = value.tolist()
    return found


def test_the_loss_is_of_squares_or_hubers() -> None:
    # From 0 to 3.5 and -2.
    assert learn(table(*VALUES_THEN, scale=2), decision((2, -4)))[0] == pytest.approx({"loss": 8.125, "q": 0})
    huber = learn(table(*VALUES_THEN, scale=2), decision((2, -4)), huber=True)[0]
    assert huber == pytest.approx({"loss": (3 + 1.5) / 2, "q": 0})


def test_a_step_moves_what_was_set_towards_its_target_and_nothing_else() -> None:
    network = table(*VALUES_THEN)
    found = learn(network, decision((1, -1), over=True, level=(2, 1)), steps=2)
    assert found[0] == pytest.approx({"loss": 1, "q": 0})
    # Adam's first steps are as long as its rate, 0.1, whatever the error; so the second begins at 0.1 and -0.1.
    assert found[1]["loss"] == pytest.approx(0.81, rel=1e-4)
    assert moved(network)[0][:2] + moved(network)[0][3:] == [0] * 5
    assert moved(network)[1][:1] + moved(network)[1][2:] == [0] * 5
    assert network.value[THEN].tolist() == torch.tensor(VALUES_THEN).tolist()


def test_what_was_logged_is_valued_at_its_order() -> None:
    network = table(*VALUES_THEN)
    learn(network, decision((1, -1), over=True)._replace(order=np.array([[1, 0]])))
    assert moved(network) == [[0, 0, 0, 0, 0.1, 0], [0, -0.1, 0, 0, 0, 0]]


def test_the_conservative_term_lowers_what_the_log_does_not_show() -> None:
    # All 6 configurations of a group are worth 0, as their target is: without the term, nothing moves.
    network, seen = table(*VALUES_THEN), decision((0, 0), over=True, level=(2, 0))
    assert learn(network, seen)[0]["loss"] == 0
    assert moved(network) == [[0] * 6] * 2
    found = learn(network, seen, conservative=0.5)[0]
    assert found["loss"] == pytest.approx(0.5 * log(6))
    shown, other = 0.1, -0.1
    assert moved(network) == [[other, other, shown, other, other, other], [shown, *[other] * 5]]


def test_a_falling_rate_makes_smaller_steps() -> None:
    for falling, step in ((True, 0.025), (False, 0.1)):
        network = table(*VALUES_THEN)
        learner = Learner(network, task(falling=falling), Memory())
        learner.slow_down(0.25)
        learner.step(decision((1, -1), over=True))
        assert moved(network) == [[0, step, 0, 0, 0, 0], [0, -step, 0, 0, 0, 0]]


def test_a_clipped_gradient_is_no_longer_than_it_may_be() -> None:
    # Adam forgets a gradient of 2 * (10^5, 10^5) / 2 slowly: after it, one of some 1 hardly moves anything, unless
    # both were clipped to the same norm.
    reached = []
    for clip in (None, 1e-3):
        network = table(*VALUES_THEN)
        learner = Learner(network, task(clip=clip), Memory())
        learner.step(decision((1e5, 1e5), over=True, level=(1, 1)))
        for _ in range(5):
            learner.step(decision((-1e3, -1e3), over=True, level=(1, 1)))
        reached.append(moved(network)[0][1])
    assert reached[0] > 0.3  # still on its way up
    assert reached[1] < 0


def test_a_gradient_that_is_not_finite_is_a_mistake_of_the_recipe() -> None:
    with pytest.raises(UserError, match=r"^the gradient is not finite; lower learning_rate, or set clip$"):
        learn(table(*VALUES_THEN), decision((float("inf"), 0)))


@pytest.mark.parametrize(("every", "copied"), [(0, [1, 2, 3, 4, 5]), (1, [1, 2, 3, 4, 5]), (3, [0, 0, 3, 3, 3])])
def test_the_target_is_copied_every_so_many_steps(every: int, copied: list[int]) -> None:
    network, memory = table(*VALUES_THEN), Memory()
    learner, after = Learner(network, task(target=every), memory), [network.value.detach().clone()]
    for step in copied:
        learner.step(decision((1, -1)))
        after.append(network.value.detach().clone())
        held = memory.state()["network_target/value"]
        assert [bool((value.numpy() == held).all()) for value in after].index(True) == step


def test_a_target_that_is_behind_gives_its_own_values() -> None:
    network = untrained()
    seen, given = tensors(states(NOW)), torch.tensor([[0.0], [2.0]])
    lagging, before = Target(network), network(seen, given).detach().clone()
    with torch.no_grad():
        network.value.bias += 1
    assert lagging(seen, given).tolist() == before.tolist()
    for _ in range(2):
        lagging.follow(2)
    assert lagging(seen, given).detach() == pytest.approx(before + 1)


def test_a_target_that_is_taken_over_counts_on() -> None:
    network = untrained()
    before, one = network.value.bias.tolist(), Target(network)
    one.follow(3)
    one.follow(3)
    with torch.no_grad():
        network.value.bias += 1
    other = Target(network)
    other.load_state_dict(one.state_dict())
    assert other.weights["value.bias"].tolist() == before
    other.follow(3)
    assert other.weights["value.bias"].tolist() == network.value.bias.tolist()
    assert one.weights["value.bias"].tolist() == before  # nothing is shared with whom it was taken from


def test_steps_of_the_whole_network_bring_values_to_their_targets() -> None:
    network = untrained()
    network.scale.fill_(1)
    batch = decision((1.0, -2.0), over=True)
    losses = [one["loss"] for one in learn(network, batch, steps=150, learning_rate=0.02, clip=1.0)]
    assert losses[0] > 0.5
    assert losses[-1] < 0.01
