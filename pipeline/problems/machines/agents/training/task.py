"""The task of a learner on many machines, and the recording of its play."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from pipeline.core.config import EvolutionRecipe
from pipeline.core.config.machines.learning import MachinesRecipe
from pipeline.core.types import CompiledRule, FloatArray, IntArray, KeyArray, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.learning.returns import generalised_advantage
from pipeline.learning.sampling import sample
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.agents.networks.features import Features, features
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.simulator.rules import players
from pipeline.simulation.rollout import Turn, play_turns

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
}
MOST_JOBSETS = 100_000  # per update; keeps the random keys of updates apart

Kind = TypeVar("Kind", bound=MachinesRecipe | EvolutionRecipe)


class Learner:
    """A network and its optimizer, whose learning rate depends only on the number of the update."""

    def __init__(self, network: ActorCritic, recipe: MachinesRecipe, updates: int, memory: Memory) -> None:
        self.network, self._recipe, self._updates, self._number = network, recipe, updates, 0
        self._optimizer = OPTIMIZERS[recipe.optimizer](network.parameters(), lr=recipe.learning_rate)
        memory.keep(optimizer=self._optimizer)

    def begin(self, number: int) -> None:
        """Set the learning rate of an update."""
        self._number = number
        left = (self._updates - number + 1) / self._updates if self._recipe.falling else 1.0
        for group in self._optimizer.param_groups:
            group["lr"] = self._recipe.learning_rate * left

    def descend(self, loss: torch.Tensor) -> None:
        """Take a step along the gradient of a loss; see `step`."""
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.step()

    def step(self) -> None:
        """Take an optimizer step along the present gradient, whose norm is clipped.

        Raises:
            UserError: the gradient is not finite.
        """
        clip = float("inf") if self._recipe.clip is None else self._recipe.clip
        if not bool(torch.nn.utils.clip_grad_norm_(self.network.parameters(), clip).isfinite()):
            raise UserError(f"update {self._number}: the gradient is not finite; lower learning_rate, or set clip")
        self._optimizer.step()


class Task(NamedTuple):
    """A scheduling problem to learn."""

    begin: Callable[[Sequence[Jobs]], Simulator]  # simulates jobsets; `gained` is minus their cost by the objective
    recipe: MachinesRecipe | EvolutionRecipe
    seed: int
    loads: Sequence[int]  # to train on, in percent
    train: Mapping[int, Sequence[Jobs]]  # by load, as `generate` wrote them
    validation: Mapping[int, Sequence[Jobs]]
    fresh: Callable[[int, int], Jobs]  # (load, number) -> a training jobset that `generate` did not write
    objective: str = "slowdown"  # a key of COSTS: what `begin` charges

    def recipe_for(self, kind: type[Kind]) -> Kind:
        """Return the recipe; raise TypeError if it is of another kind."""
        if not isinstance(self.recipe, kind):
            raise TypeError(f"expected a {kind.__name__}, got a {type(self.recipe).__name__}")
        return self.recipe

    def draw(self, update: int, count: int) -> list[Jobs]:
        """Return `count` new jobsets for an update, cycling through the loads."""
        loads = self.loads
        return [self.fresh(loads[k % len(loads)], update * count + k) for k in range(count)]


class Trajectory(NamedTuple):
    """D decisions of B episodes, lock step by lock step."""

    observed: Features  # of D observations
    action: IntArray  # [D]
    log_chance: FloatArray  # [D]  log-probability of that action
    value: FloatArray  # [D]  the critic's estimate
    episode: IntArray  # [D]
    turn: IntArray  # [D]  number of the decision in its episode, from 0
    now: FloatArray  # [D]  time
    spent: FloatArray  # [D]  cost of the episode so far
    cost: FloatArray  # [B]  of each episode
    end: FloatArray  # [B]  when it was over
    taught: IntArray  # [D]  the teacher's action; empty without a teacher

    def cost_of_job(self, jobsets: Sequence[Jobs]) -> float:
        """Return the mean cost of a job; the episodes of a jobset are adjacent."""
        jobs = np.repeat([len(one.arrival) for one in jobsets], len(self.cost) // len(jobsets))
        return float((self.cost / jobs).mean())


def log_chances(logits: torch.Tensor, may: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities [D, A]; those of illegal actions are very low, not infinite, to keep gradients."""
    return torch.log_softmax(logits.masked_fill(~may, -1e9), dim=1)


def mean_entropy(chances: torch.Tensor) -> torch.Tensor:
    """Return the mean entropy of log-probabilities [D, A]."""
    return -(chances.exp() * chances).sum(dim=1).mean()


def play_update(
    network: ActorCritic,
    task: Task,
    update: int,
    jobsets: Sequence[Jobs],
    episodes: int = 1,
    teacher: CompiledRule | None = None,
) -> Trajectory:
    """Run jobsets, each in several episodes with the random draws of an update, and record the decisions."""
    number = update * MOST_JOBSETS + np.repeat(np.arange(len(jobsets)), episodes)
    key = keys(task.seed, number, np.tile(np.arange(episodes), len(jobsets)))
    return record(network, task.begin([jobs for jobs in jobsets for _ in range(episodes)]), key, teacher)


def record(
    network: ActorCritic, simulator: Simulator, key: KeyArray, teacher: CompiledRule | None = None
) -> Trajectory:
    """Sample a network's actions to the end of every episode, each with a key [B] of its own; record all decisions."""
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
    ends = -simulator.gained, simulator.now.copy()
    return Trajectory._make([Features(*columns[:5]), *columns[5:-1], *ends, columns[-1]])


def scale_of(network: ActorCritic, cost: FloatArray) -> float:
    """Return the critic's unit of cost: the standard deviation of the first episodes' costs, which set it."""
    if not float(network.scale):
        network.scale.fill_(float(cost.std()) or float(cost.mean()) or 1.0)
    return float(network.scale)


def by_critic(played: Trajectory, gamma: float, trace: float, scale: float) -> tuple[FloatArray, FloatArray]:
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
