"""Where a network computes: `device` of params.yaml. Simulation stays on the CPU.

On a CUDA device, networks draw images and compute dense layers by torch's own operations. Not all of these are
deterministic, so that results need not repeat byte for byte.

Torch's compiler is not used. But PyTorch's optimizers import `torch._dynamo` at their first step, to exclude themselves
from compilation, and this import takes as long as that of torch itself. A placeholder answers their two calls; any
other access imports the real compiler.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import torch

from pipeline.errors import UserError

NAME = "torch._dynamo"


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
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


def leave_compiler_out() -> None:
    """Install the placeholder, unless the compiler is imported already."""
    if NAME not in sys.modules:
        sys.modules[NAME] = torch._dynamo = CompilerPlaceholder(NAME)


def device_of(wanted: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` selects here; UserError if `cuda` is not there."""
    there_is = torch.cuda.is_available()
    if wanted == "cuda" and not there_is:
        raise UserError("params.yaml: device: 'cuda' asked for, but PyTorch finds no CUDA device; use auto or cpu")
    return torch.device("cuda" if there_is and wanted != "cpu" else "cpu")
