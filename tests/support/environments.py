"""Environments of every id, and actions that tests take in them."""

from typing import Any

import gymnasium
import numpy as np
from swf_lines import LUBLIN, there

import deeprm

BRIEF = {"arrivals": {"name": "poisson", "steps": 200, "measured": [0, 60]}, "step_limit": 200}
SHORT = {"deeprm/Stream-v1": {"scenario": BRIEF}}
IDS = tuple(deeprm.IDS)


def settings(name: str, **changes: Any) -> dict[str, Any]:
    """Arguments of an id, short enough for tests; RLScheduler's id needs a log, without which the test is skipped."""
    own = {"jobs": there(LUBLIN)} if name == "deeprm/RLScheduler-v0" else SHORT.get(name, {})
    return {**own, **changes}


def made(name: str, **changes: Any) -> gymnasium.Env:
    """One environment, without Gymnasium's wrappers."""
    return deeprm.make(name, **settings(name, **changes)).unwrapped


def several(name: str, count: int, **changes: Any) -> gymnasium.vector.VectorEnv:
    """A vectorized environment."""
    return deeprm.make_vec(name, num_envs=count, **settings(name, **changes))


def legal(mask: np.ndarray, rng: np.random.Generator, space: gymnasium.Space) -> Any:
    """A random action that the mask of one environment allows."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(rng.choice(np.flatnonzero(mask)))
    return rng.integers(space.nvec)


def shortest(observation: dict[str, np.ndarray], mask: np.ndarray, slots: int) -> int:
    """Choose the legal job that looks shortest, on its first legal machine; if there is none, void, the last action."""
    jobs = observation["jobs"].reshape(slots, -1)
    there = mask[:-1].reshape(slots, -1)
    length = np.where(there.any(axis=1), jobs[:, 1], np.inf)
    slot = int(length.argmin())
    return len(mask) - 1 if np.isinf(length[slot]) else slot * there.shape[1] + int(there[slot].argmax())
