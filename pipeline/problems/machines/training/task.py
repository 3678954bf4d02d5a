"""What a learner of many machines is given, and how its play is recorded."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from pipeline.config import A3cRecipe, DaggerRecipe, EvolutionRecipe, MachinesRecipe, PpoRecipe
from pipeline.core import CompiledRule, FloatArray, IntArray, KeyArray
from pipeline.errors import UserError
from pipeline.learning.returns import generalised_advantage
from pipeline.learning.sampling import sample
from pipeline.problems.machines.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.networks.features import Features, features
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.simulator.compiled.rules import players
from pipeline.simulation.rollout import Turn, play_turns

Gradient = PpoRecipe | A3cRecipe | DaggerRecipe

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
}


def optimizer_for(network: ActorCritic, recipe: Gradient) -> torch.optim.Optimizer:
    """Return the recipe's optimizer."""
    return OPTIMIZERS[recipe.optimizer](network.parameters(), lr=recipe.learning_rate)


def set_scale(network: ActorCritic, cost: FloatArray) -> None:
    """Set what the critic counts costs in, if it is not known yet: the standard deviation of the episodes' costs."""
    if not float(network.scale):
        network.scale.fill_(float(cost.std()) or float(cost.mean()) or 1.0)


def set_rate(optimizer: torch.optim.Optimizer, recipe: Gradient, step: int, updates: int) -> None:
    """Set the learning rate of an update, which depends on its number alone."""
    left = (updates - step + 1) / updates if recipe.falling else 1.0
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate * left


def take_step(network: ActorCritic, optimizer: torch.optim.Optimizer, clip: float | None, number: int) -> None:
    """Follow the gradient, whose norm is clipped.

    Raises:
        UserError: it is not finite.
    """
    size = torch.nn.utils.clip_grad_norm_(network.parameters(), float("inf") if clip is None else clip)
    if not bool(size.isfinite()):
        raise UserError(f"update {number}: the gradient is not finite; lower learning_rate, or set clip")
    optimizer.step()


Kind = TypeVar("Kind", bound=MachinesRecipe | EvolutionRecipe)

MOST_JOBSETS = 100_000  # of an update; keeps the random keys of updates apart


class Task(NamedTuple):
    """A scheduling problem to learn."""

    begin: Callable[[Sequence[Jobs]], Simulator]  # what plays jobsets; `gained` is minus their cost by the objective
    recipe: MachinesRecipe | EvolutionRecipe
    seed: int
    loads: Sequence[int]  # to train on, in percent
    train: Mapping[int, Sequence[Jobs]]  # by load, as `generate` wrote them
    validation: Mapping[int, Sequence[Jobs]]
    fresh: Callable[[int, int], Jobs]  # (load, number) -> a training jobset that `generate` did not write
    objective: str = "slowdown"  # a word of COSTS: what `begin` charges

    def recipe_for(self, kind: type[Kind]) -> Kind:
        """Return the recipe, which must be of a kind."""
        if not isinstance(self.recipe, kind):
            raise TypeError(f"expected a {kind.__name__}, got a {type(self.recipe).__name__}")
        return self.recipe

    def draw(self, update: int, count: int) -> list[Jobs]:
        """Return `count` new jobsets for an update, the loads in turn."""
        loads = self.loads
        return [self.fresh(loads[k % len(loads)], update * count + k) for k in range(count)]


class Played(NamedTuple):
    """D decisions of B episodes, one lock step after the other."""

    observed: Features  # of D observations
    action: IntArray  # [D]
    log_chance: FloatArray  # [D]  of that action
    value: FloatArray  # [D]  the critic's
    episode: IntArray  # [D]
    turn: IntArray  # [D]  place among the decisions of its episode
    now: FloatArray  # [D]  time
    spent: FloatArray  # [D]  cost of its episode so far
    cost: FloatArray  # [B]  of each episode
    end: FloatArray  # [B]  when it was over
    taught: IntArray  # [D]  what a teacher would have done; none without one


def log_chances(logits: torch.Tensor, may: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities [D, A]; those of illegal actions are very low, not infinite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~may, -1e9), dim=1)


def record(network: ActorCritic, simulator: Simulator, key: KeyArray, teacher: CompiledRule | None = None) -> Played:
    """Let a network play by its own chances to the end of every episode, and record all decisions.

    Draws are those of a key [B] an episode; a teacher, if there is one, is asked what it would do.
    """
    taught_by = None if teacher is None else players([teacher] * len(key), key)
    steps = []

    def decide(turn: Turn) -> IntArray:
        rows, observed = turn.rows, features(turn.view, network.shape)
        with torch.no_grad():
            inputs = Inputs(observed)
            logits, value = network(inputs)
            chances = log_chances(logits, inputs.may).numpy()
        action: IntArray = sample(logits.numpy(), observed.may, True, turn.draws)
        chosen = chances[np.arange(len(rows)), action]
        taught = action[:0] if taught_by is None else simulator.decide(rows, taught_by)
        now, spent = simulator.now[rows], -simulator.gained[rows]
        steps.append((*observed, action, chosen, value.numpy(), rows, turn.decision, now, spent, taught))
        return action

    for _ in play_turns(simulator, decide, key):
        pass
    columns = [np.concatenate(column) for column in zip(*steps, strict=True)]
    observed = Features(*columns[:5])
    ends = -simulator.gained, simulator.now.copy()
    return Played._make([observed, *columns[5:-1], *ends, columns[-1]])


def by_critic(played: Played, gamma: float, trace: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return advantages and the critic's targets [D], both in units of `scale`."""
    episodes, turns = len(played.cost), int(played.turn.max()) + 1
    length = np.bincount(played.episode, minlength=episodes)
    place = played.episode, played.turn
    spent, value = np.zeros((episodes, turns + 1)), np.zeros((episodes, turns + 1))
    spent[place] = played.spent
    spent[np.arange(episodes), length] = played.cost
    value[place] = played.value
    rewards = -np.diff(spent, axis=1) / scale
    rewards[np.arange(turns)[None] >= length[:, None]] = 0.0
    gain = generalised_advantage(rewards, value, length, gamma, trace)[place]
    return gain, gain + played.value


def by_others(played: Played, episodes: int) -> FloatArray:
    """Return how much less each decision's cost to come is than that of the jobset's other episodes at its time [D].

    The others' costs between their decisions are interpolated; an episode that is over has none to come (Kool, van
    Hoof, Welling 2019, at equal time: decision numbers of two episodes mean different times).
    """
    order = np.lexsort((played.turn, played.episode))
    first = np.concatenate([[0], np.cumsum(np.bincount(played.episode, minlength=len(played.cost)))])
    gain = np.empty(len(order))
    paths = []
    for b in range(len(played.cost)):
        mine = order[first[b] : first[b + 1]]
        times = np.concatenate([played.now[mine], [played.end[b]]])
        paths.append((times, np.concatenate([played.spent[mine], [played.cost[b]]])))
    for b in range(len(played.cost)):
        mine = order[first[b] : first[b + 1]]
        group = b - b % episodes
        others = [k for k in range(group, group + episodes) if k != b]
        to_come = np.mean([played.cost[k] - np.interp(played.now[mine], *paths[k]) for k in others], axis=0)
        gain[mine] = to_come - (played.cost[b] - played.spent[mine])
    return gain
