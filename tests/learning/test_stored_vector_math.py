"""MKL's functions are called once before threads share them: which functions, and by whom."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.core.config import QNetworkConfig
from pipeline.learning.stored import MKL_FUNCTIONS, initialise_mkl
from pipeline.problems.groups.agents.networks.features import Shape as GroupsShape
from pipeline.problems.groups.agents.networks.q_network import QNetwork
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic
from pipeline.problems.machines.agents.networks.features import Shape as MachinesShape
from pipeline.problems.pool.agents.networks.network import Network, Scorer


def q_network() -> QNetwork:
    shape, config = GroupsShape(1, 1, 1), QNetworkConfig(name="q_network", weights="shared", hidden=(2, 2))
    return QNetwork(shape, config, np.zeros((1, shape.past), dtype=np.float32), np.ones(1))


def actor_critic() -> ActorCritic:
    return ActorCritic(MachinesShape(*[1] * len(MachinesShape._fields)))


def test_the_functions_are_those_that_pytorch_takes_from_mkl() -> None:
    header = Path(torch.__file__).parent / "include" / "ATen" / "cpu" / "vml.h"
    found = re.findall(r"^IMPLEMENT_VML_MKL\((\w+), \w+\)", header.read_text(), re.MULTILINE)
    assert sorted(MKL_FUNCTIONS) == sorted(found)


@pytest.mark.parametrize("make", [Network, Scorer, actor_critic, q_network], ids=lambda make: make.__name__)
def test_whoever_makes_a_network_has_called_them(make: Callable[[], nn.Module]) -> None:
    initialise_mkl.cache_clear()
    make()
    assert initialise_mkl.cache_info().misses == 1
