"""The learning algorithms of many machines by their name in params.yaml; `ppo` and `dagger` are here.

`ppo`: proximal policy optimisation (Deepk8s section 4.5.2, equation 4; Schulman et al. 2017). One update: the network
plays fresh jobsets, sampling its actions, and learns several times from the recorded decisions, in minibatches, by the
clipped objective, a squared-error critic (equation 3) and an entropy term. Departures: advantages are generalised
estimates (in the paper: the return less the value) or, as a setting, the return less the mean return of the jobset's
other episodes from the same time on. Advantages are in units of their standard deviation, costs in units of the
standard deviation of the first update's returns.

`dagger`: dataset aggregation (Deepk8s section 4.5.3, equation 5; Ross, Gordon, Bagnell 2011). One update: the network
samples its own actions, a teacher names its action in each state that occurs, and the network learns from a sample of
all such pairs so far. The loss is minus the log-probability of the teacher's action, less an entropy term. There is no
critic. Departure: the pool keeps only the latest pairs, so that memory is bounded.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch

from pipeline.core.config import pick
from pipeline.core.config.machines.learning import Dagger, DaggerRecipe, Ppo, PpoRecipe
from pipeline.core.types import FloatArray, IntArray
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update, none
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic, Inputs
from pipeline.problems.machines.agents.networks.features import Features
from pipeline.problems.machines.agents.training.a3c import a3c
from pipeline.problems.machines.agents.training.evolution import evolution
from pipeline.problems.machines.agents.training.task import (
    Learner,
    Task,
    Trajectory,
    by_critic,
    log_chances,
    mean_entropy,
    play_update,
    scale_of,
)
from pipeline.problems.machines.env.teachers import TEACHERS


def ppo(network: ActorCritic, task: Task, config: Ppo, memory: Memory | None = None) -> Iterator[Update]:
    """Improve a network by its own play, one update at a time."""
    memory = memory or Memory()
    recipe = task.recipe_for(PpoRecipe)
    learner = Learner(network, recipe, config.updates, memory)
    for step in range(memory.done + 1, config.updates + 1):
        learner.begin(step)
        jobsets = task.draw(step, config.jobsets)
        played = play_update(network, task, step, jobsets, config.episodes)
        gain, target = by_critic(played, recipe.gamma, recipe.trace, scale_of(network, played.cost))
        if recipe.advantage == "leave_one_out":
            gain = by_others(played, config.episodes)
            group = played.episode // config.episodes
            size = np.sqrt(np.bincount(group, weights=gain**2) / np.maximum(np.bincount(group), 1))
            gain = gain / (size[group] + 1e-9)  # hard jobsets cost a hundred times as much as easy ones
        gain = gain / (gain.std() + 1e-9)
        rng = np.random.default_rng([task.seed, step])
        losses = [
            _improve(learner, recipe, played, gain, target, rows)
            for _ in range(recipe.epochs)
            for rows in np.array_split(rng.permutation(len(gain)), min(recipe.minibatches, len(gain)))
        ]
        report = dict(zip(("actor_loss", "critic_loss", "entropy"), np.mean(losses, axis=0), strict=True))
        yield Update(step, {**report, "cost": played.cost_of_job(jobsets), "decisions": float(len(gain))})


def by_others(played: Trajectory, episodes: int) -> FloatArray:
    """Return how far each decision's cost to come is below that of the jobset's other episodes at the same time [D].

    The others' costs are interpolated between their decisions; an episode that is over has none to come. It is the
    baseline of Kool, van Hoof, Welling 2019, compared at equal times: equal decision numbers mean different times.
    """
    order = np.lexsort((played.turn, played.episode))
    mine = np.split(order, np.cumsum(np.bincount(played.episode, minlength=len(played.cost)))[:-1])
    gain = np.empty(len(order))
    paths = [
        (np.append(played.now[rows], played.end[b]), np.append(played.spent[rows], played.cost[b]))
        for b, rows in enumerate(mine)
    ]
    for b, rows in enumerate(mine):
        group = b - b % episodes
        others = [k for k in range(group, group + episodes) if k != b]
        to_come = np.mean([played.cost[k] - np.interp(played.now[rows], *paths[k]) for k in others], axis=0)
        gain[rows] = to_come - (played.cost[b] - played.spent[rows])
    return gain


def _improve(
    learner: Learner, recipe: PpoRecipe, played: Trajectory, gain: FloatArray, target: FloatArray, rows: IntArray
) -> tuple[float, float, float]:
    """Take one step of the optimizer on some decisions; return the losses and the mean entropy."""
    inputs = Inputs(played.observed.take(rows))
    logits, value = learner.network(inputs)
    chances = log_chances(logits, inputs.may)
    chosen = chances.gather(1, torch.from_numpy(played.action[rows])[:, None])[:, 0]
    ratio = (chosen - torch.from_numpy(played.log_chance[rows])).exp()
    better = torch.from_numpy(gain[rows].astype(np.float32))
    actor = -torch.minimum(ratio * better, ratio.clamp(1 - recipe.ratio, 1 + recipe.ratio) * better).mean()
    critic = (value - torch.from_numpy(target[rows].astype(np.float32))).square().mean()
    entropy = mean_entropy(chances)
    learner.descend(actor + recipe.critic * critic - recipe.entropy * entropy)
    return float(actor.detach()), float(critic.detach()), float(entropy.detach())


def dagger(network: ActorCritic, task: Task, config: Dagger, memory: Memory | None = None) -> Iterator[Update]:
    """Teach a network what a heuristic would do in the states that the network reaches."""
    memory = memory or Memory()
    recipe = task.recipe_for(DaggerRecipe)
    teacher = pick(TEACHERS, config.teacher, "teacher")
    learner, pool = Learner(network, recipe, config.updates, memory), Pool(recipe.pool)
    memory.keep(pool=pool)
    for step in range(memory.done + 1, config.updates + 1):
        learner.begin(step)
        jobsets = task.draw(step, config.jobsets)
        played = play_update(network, task, step, jobsets, teacher=teacher)
        pool.add(played.observed, played.taught)
        rng = np.random.default_rng([task.seed, step])
        losses = [
            _imitate(learner, *pool.take(rng.integers(len(pool), size=recipe.batch)), recipe.entropy)
            for _ in range(recipe.steps)
        ]
        report = dict(zip(("loss", "accuracy", "entropy"), np.mean(losses, axis=0), strict=True))
        yield Update(step, {**report, "cost": played.cost_of_job(jobsets), "pool": float(len(pool))})


class Pool:
    """The latest pairs of state and teacher's action."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.columns: list[npt.NDArray[np.generic]] = []

    def __len__(self) -> int:
        return len(self.columns[-1]) if self.columns else 0

    def add(self, observed: Features, action: IntArray) -> None:
        """Add pairs; if there are too many, drop the oldest."""
        new = [*observed, action]
        old = self.columns or [column[:0] for column in new]
        self.columns = [np.concatenate(pair)[-self._most :] for pair in zip(old, new, strict=True)]

    def take(self, rows: IntArray) -> tuple[Features, IntArray]:
        """Return some pairs."""
        *observed, action = (column[rows] for column in self.columns)
        return Features._make(observed), action.astype(np.int64, copy=False)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return the pairs for saving."""
        return {str(k): torch.from_numpy(column) for k, column in enumerate(self.columns)}

    def load_state_dict(self, state: dict[str, torch.Tensor], /) -> None:
        """Restore saved pairs."""
        self.columns = [state[str(k)].numpy().copy() for k in range(len(state))]


def _imitate(
    learner: Learner, observed: Features, action: IntArray, entropy_weight: float
) -> tuple[float, float, float]:
    """Take one step of the optimizer; return the loss, the share of matching actions, and the mean entropy."""
    inputs, taught = Inputs(observed), torch.from_numpy(action)
    chances = log_chances(learner.network(inputs)[0], inputs.may)
    imitated, entropy = -chances.gather(1, taught[:, None]).mean(), mean_entropy(chances)
    learner.descend(imitated - entropy_weight * entropy)
    equal = (chances.argmax(dim=1) == taught).float().mean()
    return float(imitated.detach()), float(equal), float(entropy.detach())


ALGORITHMS: dict[str, Callable[..., Iterator[Update]]] = {
    "none": none,
    "ppo": ppo,
    "a3c": a3c,
    "dagger": dagger,
    "evolution": evolution,
}
