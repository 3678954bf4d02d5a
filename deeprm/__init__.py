"""Cluster scheduling as Gymnasium environments, and the comparison of your own policies with established heuristics.

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

if TYPE_CHECKING:
    from deeprm.evaluating import Evaluation, evaluate, load_policy

# Environments by id, with the scenario of `scenarios.yaml` that each uses by default.
IDS = {
    "deeprm/Pool-v0": "online",
    "deeprm/Stream-v1": "streams",
    "deeprm/Offline-v0": "offline",
    "deeprm/Machines-v0": "machines",
    "deeprm/Groups-v0": "shares",
    "deeprm/RLScheduler-v0": "rlscheduler",
}
__all__ = ["IDS", "Evaluation", "evaluate", "load_policy", "make", "make_vec"]

LAZY = ("Evaluation", "evaluate", "load_policy")  # need more imports than an environment
MODULES = ("wrappers", "sb3")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in MODULES:
        return import_module(f"deeprm.{name}")
    if name not in LAZY:
        raise AttributeError(f"module 'deeprm' has no attribute '{name}'")
    return getattr(import_module("deeprm.evaluating"), name)


def __dir__() -> list[str]:
    return [*__all__, *MODULES]


for _id, _scenario in IDS.items():
    gymnasium.register(
        _id,
        entry_point="deeprm.env:SchedulingEnv",
        vector_entry_point="deeprm.vector:SchedulingVectorEnv",
        kwargs={"own": _scenario},
    )
