"""Wrappers for libraries that look for the action mask inside the observation."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class MaskInObservation(gymnasium.ObservationWrapper[dict[str, Any], Any, dict[str, Any]]):
    """Observations {"observations", "action_mask"}, as RLlib, TorchRL and PettingZoo have them.

    >>> import deeprm
    >>> seen, _ = MaskInObservation(deeprm.make("deeprm/Pool-v0")).reset(seed=1)
    >>> sorted(seen), seen["action_mask"].shape
    (['action_mask', 'observations'], (11,))
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        mask = spaces.MultiBinary(spaces.flatdim(env.action_space))
        self.observation_space = spaces.Dict({"observations": env.observation_space, "action_mask": mask})

    def observation(self, observation: Any) -> dict[str, Any]:
        """Return the observation, and the mask [A] (1: legal)."""
        return {"observations": observation, "action_mask": self.get_wrapper_attr("action_masks")().astype(np.int8)}
