"""Where a network computes: `device` of params.yaml. Simulation stays on the CPU.

On a CUDA device networks take drawn images and dense layers by torch's own operations, of which not all give the same
bits twice: results there are exempt from the promise of the same bytes.

Torch's compiler is not used, and importing it takes as long as all of torch, in every training: PyTorch's optimizers
import `torch._dynamo` at their first step, to tell it not to compile them. A stand-in takes these two calls; whatever
asks it for anything else gets the compiler itself, imported then.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import torch

from pipeline.errors import UserError

NAME = "torch._dynamo"


class StandIn(ModuleType):
    """What optimizers find in the compiler's place."""

    def graph_break(self, *_: object, **__: object) -> None:
        """Divide what is compiled; nothing is."""

    def disable(self, function: Callable[..., object], *_: object, **__: object) -> Callable[..., object]:
        """Return a function that is not to be compiled, as it is."""
        return function

    def __getattr__(self, name: str) -> object:
        """Give way to the compiler; not for who only looks at every module, maybe while torch is being imported."""
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


def leave_compiler_out() -> None:
    """Have optimizers of this process find the stand-in, unless the compiler is there already."""
    if NAME not in sys.modules:
        sys.modules[NAME] = torch._dynamo = StandIn(NAME)


def device_of(wanted: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` means here.

    Raises:
        UserError: `cuda` was asked for and there is none.
    """
    there_is = torch.cuda.is_available()
    if wanted == "cuda" and not there_is:
        raise UserError("params.yaml: device: 'cuda' asked for, but PyTorch finds no CUDA device; use auto or cpu")
    return torch.device("cuda" if there_is and wanted != "cpu" else "cpu")
