"""Stored weights of networks, by name, and where networks compute: `device` of params.yaml.

Simulation stays on the CPU. On a CUDA device, networks draw images and compute dense layers by torch's own operations.
Not all of these are deterministic, so that results need not repeat byte for byte.

Torch's compiler is not used. But PyTorch's optimizers import `torch._dynamo` at their first step, to exclude themselves
from compilation, and this import takes as long as that of torch itself. A placeholder answers their two calls; any
other access imports the real compiler.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import torch

from pipeline.core.config.learning import Card, described, difference
from pipeline.core.types import FloatArray
from pipeline.errors import UserError

COMPILER = "torch._dynamo"


def weights_of(network: torch.nn.Module) -> dict[str, FloatArray]:
    """Return a network's weights by name."""
    return {name: value.detach().cpu().contiguous().numpy() for name, value in network.state_dict().items()}


def restore_weights(network: torch.nn.Module, weights: Mapping[str, FloatArray], agent: str) -> None:
    """Load stored weights into a network; UserError if they differ from its own in name, shape or type."""
    differing = difference(described(weights_of(network)), described(weights))
    if differing:
        raise UserError(f"model of agent '{agent}': {differing}")
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})


def must_match_params(place: Path, found: Card, asked: Card, names: Iterable[str]) -> None:
    """Raise a UserError if some fields of a stored network's card differ from those of params.yaml."""
    for name in names:
        here, now = getattr(found, name), getattr(asked, name)
        if here != now:
            raise UserError(f"{place}: {name} {here}; params.yaml has {now} now: run 'dvc repro' first")


MKL_FUNCTIONS = (
    *("acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp"),
    *("log", "log10", "log2", "sin", "sqrt", "tan", "tanh", "trunc"),
)


@cache
def initialise_mkl() -> None:
    """Call each vector function on one number and one thread, once per process, before any learning.

    With Intel's MKL, PyTorch's `sqrt`, `exp`, `tanh` and a dozen others are MKL's, which selects their code at the
    first call. If two threads make that call at once, one may get code of low precision for its half of the tensor
    (pytorch/pytorch issue 188792; MKL 2024.2). Adam's square root is such a call: on a busy machine with two threads,
    7 of 240 runs of a small network took a different first step.
    """
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype)
        for name in MKL_FUNCTIONS:
            getattr(torch, name)(one)


class CompilerPlaceholder(ModuleType):
    """Module that optimizers find in place of the compiler."""

    def graph_break(self, *_: object, **__: object) -> None:
        """Do nothing: no code is compiled."""

    def disable(self, function: Callable[..., object], *_: object, **__: object) -> Callable[..., object]:
        """Return the function unchanged."""
        return function

    def __getattr__(self, name: str) -> object:
        """Import the compiler; refuse `__names__`, which inspections of modules read, maybe during torch's import."""
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER]
        return getattr(importlib.import_module(COMPILER), name)


def leave_compiler_out() -> None:
    """Install the placeholder, unless the compiler is imported already."""
    if COMPILER not in sys.modules:
        sys.modules[COMPILER] = torch._dynamo = CompilerPlaceholder(COMPILER)


def device_of(wanted: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` selects here; UserError if `cuda` is not there."""
    there_is = torch.cuda.is_available()
    if wanted == "cuda" and not there_is:
        raise UserError("params.yaml: device: 'cuda' asked for, but PyTorch finds no CUDA device; use auto or cpu")
    return torch.device("cuda" if there_is and wanted != "cpu" else "cpu")
