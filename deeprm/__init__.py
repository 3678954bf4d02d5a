"""Cluster scheduling as Gymnasium environments, and the comparison of your own policies with the heuristics in use.

>>> import deeprm
>>> env = deeprm.make("deeprm/Pool-v0")                       # as gymnasium.make does
>>> envs = deeprm.make_vec("deeprm/Pool-v0", num_envs=64)     # rows of one compiled simulator
>>> deeprm.load_policy("sjf").name
'sjf'

`deeprm.evaluate(policy, "deeprm/Pool-v0")` plays a policy on the test jobsets next to every heuristic. `make` and
`make_vec` take the arguments of `deeprm.env.SchedulingEnv`: load, slots, scenario, objective, jobs and others.
"""

from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import make, make_vec

from deeprm.scenarios import IDS

if TYPE_CHECKING:
    from deeprm.evaluating import Evaluation, evaluate
    from deeprm.policies import load_policy

__all__ = ["IDS", "Evaluation", "evaluate", "load_policy", "make", "make_vec"]

LAZY = {"Evaluation": "deeprm.evaluating", "evaluate": "deeprm.evaluating", "load_policy": "deeprm.policies"}
MODULES = ("wrappers", "sb3")


def __getattr__(name: str) -> Any:
    """Import what needs more than an environment does when it is first asked for."""
    from importlib import import_module

    if name in MODULES:
        return import_module(f"deeprm.{name}")
    if name not in LAZY:
        raise AttributeError(f"module 'deeprm' has no attribute '{name}'")
    return getattr(import_module(LAZY[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *MODULES]


for _id, _scenario in IDS.items():
    gymnasium.register(
        _id,
        entry_point="deeprm.env:SchedulingEnv",
        vector_entry_point="deeprm.vector:SchedulingVectorEnv",
        kwargs={"own": _scenario},
    )
