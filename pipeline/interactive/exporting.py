"""Networks as ONNX files: from the fields of an observation to logits and the best legal action."""

import logging
import warnings
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

Fields = Mapping[str, Tensor]
Shapes = Mapping[str, tuple[int, ...]]  # of fields, after [B]


class Exported(nn.Module):
    """A network that maps the fields of an observation to an action; illegal ones have a logit of minus infinity."""

    def __init__(self, network: nn.Module, logits: Callable[[Fields], tuple[Tensor, Tensor]], names: list[str]) -> None:
        """Wrap `logits`, which uses the network's weights to compute logits [B, A] and legal actions [B, A]."""
        super().__init__()
        self.network, self._logits, self._names = network.eval(), logits, names

    def forward(self, *fields: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [B, A] and actions [B]."""
        found, may = self._logits(dict(zip(self._names, fields, strict=True)))
        logits = torch.where(may, found, torch.full_like(found, -torch.inf))
        return logits, logits.argmax(dim=1)


def example_of(numbers: Shapes, masks: Shapes) -> dict[str, Tensor]:
    """Return the fields of two observations, as example inputs of an export."""
    fields = {name: torch.ones((2, *shape), dtype=torch.float64) for name, shape in numbers.items()}
    return fields | {name: torch.ones((2, *shape), dtype=torch.bool) for name, shape in masks.items()}


def onnx_of(network: nn.Module, outputs: list[str], example: Fields) -> bytes:
    """Return an ONNX file with a free batch dimension B; inputs are named like the fields of the example."""
    batch = torch.export.Dim("B", min=1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for name in ("torch.onnx", "onnx_ir", "onnxscript"):
            logging.getLogger(name).setLevel(logging.ERROR)
        program = torch.onnx.export(
            network,
            tuple(example.values()),
            input_names=list(example),
            output_names=outputs,
            dynamic_shapes=(tuple({0: batch} for _ in example),),
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # it never is with dynamo
    content: bytes = program.model_proto.SerializeToString()
    return content
