"""The vectorized environment for Stable-Baselines3, with action masks for sb3-contrib."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

import deeprm
from pipeline.errors import UserError

try:
    from stable_baselines3.common.vec_env import VecEnv as Base
except ModuleNotFoundError as error:
    raise UserError("deeprm.sb3: stable-baselines3 is not installed: pip install sb3-contrib") from error


class VecEnv(Base):
    """`num_envs` episodes in one compiled simulator; each restarts in the step that ends it, as SB3 expects.

    >>> envs = VecEnv("deeprm/Pool-v0", num_envs=4, load=130)
    >>> sorted(envs.reset()), len(envs.env_method("action_masks"))
    (['cluster', 'jobs', 'queue'], 4)

    Args:
        id: of the environment, as in `deeprm.IDS`.
        num_envs: number of episodes, N.
        settings: other arguments of `SchedulingVectorEnv`.

    Raises:
        UserError: an argument is wrong, or a log cannot be read.
    """

    def __init__(self, id: str, num_envs: int = 8, **settings: Any) -> None:
        made = deeprm.make_vec(id, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **settings)
        self.envs: Any = made.unwrapped  # Any: Gymnasium's base class knows neither masks nor lists of seeds
        self.render_mode = self.envs.render_mode
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)
        self._actions = np.zeros(0)
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, dtype=np.int64)

    def reset(self) -> Any:
        """Begin an episode in all environments, with the seeds set by `seed`; return observations [N, ...] by name."""
        seeds = list(self._seeds) if any(seed is not None for seed in self._seeds) else None
        seen, self._infos = self.envs.reset(seed=seeds)
        self._reset_seeds()
        self._returns[:], self._lengths[:] = 0, 0
        return seen

    def step_async(self, actions: Any) -> None:
        """Store the actions [N] of the next step."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Apply the actions; return observations, rewards [N], dones [N] and N infos (SB3's keys at the end)."""
        seen, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        over = terminations | truncations
        self._returns += rewards
        self._lengths += 1
        records: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for k in np.flatnonzero(over):
            metrics = infos["final_info"]["metrics"]
            records[k] = {
                "terminal_observation": infos["final_obs"][k],
                "TimeLimit.truncated": bool(truncations[k]),
                "episode": {"r": float(self._returns[k]), "l": int(self._lengths[k]), "t": 0.0},
                "metrics": {name: float(value[k]) for name, value in metrics.items() if not name.startswith("_")},
            }
        self._returns[over], self._lengths[over] = 0, 0
        return seen, rewards.astype(np.float32), over, records

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **named: Any) -> list[Any]:
        """Return the masks [A] of some environments; other methods raise AttributeError."""
        if method_name != "action_masks":
            raise AttributeError(f"env_method: expected action_masks, got {method_name}")
        masks = self.envs.action_masks()
        return [masks[k] for k in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Return whether environments have an attribute; sb3-contrib looks for `action_masks`."""
        return attr_name == "action_masks" or hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vectorized environment, once for each environment."""
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise AttributeError: environments share their settings."""
        raise AttributeError(f"set_attr: expected settings where VecEnv is made, got {attr_name}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return whether the wrapper is SB3's Monitor: its returns and lengths are in the infos."""
        from stable_baselines3.common.monitor import Monitor

        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """Return a picture of every schedule."""
        return self.envs.render() or ()

    def close(self) -> None:
        """Release all resources."""
        self.envs.close()
