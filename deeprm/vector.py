"""Many environments as rows of one compiled simulator (Gymnasium's `VectorEnv`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from deeprm.env import SchedulingEnv, Settings, check_render_mode, game_of, rendered
from deeprm.episodes import Episodes, Taken
from deeprm.games import Observations
from pipeline.core.types import BoolArray, FloatArray, IntArray

Infos = dict[str, Any]
Stepped = tuple[Observations, FloatArray, BoolArray, BoolArray, Infos]


class SchedulingVectorEnv(VectorEnv[Observations, IntArray, Any]):
    """`num_envs` environments; each is, bit for bit, a `SchedulingEnv` seeded with `seed` + its number.

    Arrays of observations and infos begin with the axis N of environments; infos also have masks `_name` [N].
    Arguments that are not listed below are those of `SchedulingEnv`.

    >>> import deeprm
    >>> envs = deeprm.make_vec("deeprm/Pool-v0", num_envs=3, load=130)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations["jobs"].shape, infos["action_mask"].shape
    ((3, 80), (3, 11))

    Args:
        num_envs: number of environments, N below.
        own: default scenario of the environment's id; Gymnasium's registry supplies it.
        autoreset_mode: NEXT_STEP (the step after the end of an episode begins the next one and ignores its action) or
            SAME_STEP (the next one begins at once; the last observation and info are `final_obs` and `final_info`).

    Raises:
        UserError: an argument is wrong, or a log cannot be read.
        ValueError: `autoreset_mode` is DISABLED.
    """

    def __init__(
        self,
        num_envs: int = 1,
        own: str = "online",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        load: int | None = None,
        illegal: str = "void",
        **settings: Unpack[Settings],
    ) -> None:
        check_render_mode(render_mode)
        mode = AutoresetMode(autoreset_mode)
        if mode == AutoresetMode.DISABLED:
            raise ValueError("autoreset_mode: expected NEXT_STEP or SAME_STEP, got DISABLED")
        self.metadata = {**SchedulingEnv.metadata, "autoreset_mode": mode}
        self.num_envs, self.render_mode = num_envs, render_mode
        self.episodes = Episodes(game_of(own, **settings), num_envs, load, illegal)
        self.single_observation_space = self.episodes.game.observation_space
        self.single_action_space = self.episodes.game.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._all = np.arange(num_envs)
        self._over = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin an episode in all environments; the seed of each is `seed` + its number, or in the sequence."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = [None if seed is None else seed + k for k in self._all] if isinstance(seed, int | None) else seed
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: expected {self.num_envs} seeds, got {len(seeds)}")
        for environment, one in enumerate(seeds):
            if one is not None:
                self.episodes.seed(environment, int(one))
        self.episodes.begin(self._all, options)
        self._over[:] = False
        return self.episodes.observe(), self._infos(np.zeros(self.num_envs))

    def step(self, actions: IntArray) -> Stepped:
        """Make one decision in each environment; in mode NEXT_STEP, replace episodes that the last step ended."""
        count, others = self.num_envs, np.flatnonzero(~self._over)
        if len(others) == count:
            taken = self.episodes.step(self._all, actions)
        else:
            taken = Taken(np.zeros(count), np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_))
            if len(others):
                for kept, value in zip(taken, self.episodes.step(others, np.asarray(actions)[others]), strict=True):
                    kept[others] = value
            self.episodes.begin(np.flatnonzero(self._over))
        self._over = taken.over & (not self._same_step)
        seen, infos = self.episodes.observe(), self._infos(taken.elapsed)
        ends = np.flatnonzero(taken.over)
        if len(ends):
            metrics: Infos = {}
            for name, value in self.episodes.metrics(ends).items():
                metrics[name], metrics[f"_{name}"] = np.zeros(count), np.zeros(count, dtype=np.bool_)
                metrics[name][ends], metrics[f"_{name}"][ends] = value, True
            infos |= {"metrics": metrics, "_metrics": taken.over}
            infos = self._replaced(seen, infos, ends) if self._same_step else infos
        return seen, taken.reward, taken.over & ~taken.cut, taken.cut, infos

    def action_masks(self) -> BoolArray:
        """Return which actions [N, A] are legal."""
        return self.episodes.mask

    def render(self) -> tuple[Any, ...]:
        """Return the schedule of every environment so far."""
        return tuple(rendered(self.episodes, k, self.render_mode) for k in range(self.num_envs))

    def _replaced(self, seen: Observations, infos: Infos, ends: IntArray) -> Infos:
        """Begin new episodes in place of ended ones, also in `seen`; return infos that include the final ones."""
        over, last = infos["_metrics"], np.full(self.num_envs, None, dtype=object)
        kept = {name: value[ends] for name, value in seen.items()}
        for place, k in enumerate(ends):
            last[k] = {name: value[place] for name, value in kept.items()}
        self.episodes.begin(ends)
        self.episodes.observe_again(seen, ends)
        final = {"final_obs": last, "_final_obs": over, "final_info": infos, "_final_info": over}
        return self._infos(np.where(over, 0.0, infos["elapsed"])) | final

    def _infos(self, elapsed: FloatArray) -> Infos:
        every = np.ones(self.num_envs, dtype=np.bool_)
        infos = {"action_mask": self.episodes.mask.view(np.int8), "elapsed": elapsed}
        infos |= {"illegal": self.episodes.illegal.copy()}
        return infos | {f"_{name}": every for name in infos}
