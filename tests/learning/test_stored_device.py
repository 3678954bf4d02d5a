"""Training does without torch's compiler, and whoever wants it gets it."""

import subprocess
import sys

from builders import REPOSITORY

STEPS = """
import inspect
import sys

import torch

from pipeline.learning.stored import leave_compiler_out


def step() -> list[float]:
    for weight in layer.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
    return [float(value) for weight in layer.parameters() for value in weight.detach().flatten()]


leave_compiler_out()
torch.manual_seed(1)
layer = torch.nn.Linear(2, 1)
before = {key: value.clone() for key, value in layer.state_dict().items()}
optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
without = step()
inspect.getmodule(sys._getframe())  # it asks every module for its file
print("torch._dynamo.config" in sys.modules)

import torch._dynamo.config

leave_compiler_out()
print(type(torch._dynamo).__name__, type(sys.modules["torch._dynamo"]).__name__)
layer.load_state_dict(before)
print(step() == without)
"""


def test_an_optimizer_steps_alike_with_and_without_it() -> None:
    said = subprocess.check_output([sys.executable, "-c", STEPS], cwd=REPOSITORY, text=True)
    assert said.split() == ["False", "module", "module", "True"]
