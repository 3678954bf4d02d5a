"""Networks as ONNX files that read the fields of an observation."""

import logging
import warnings
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

Fields = Mapping[str, Tensor]
Shapes = Mapping[str, tuple[int, ...]]  # of fields, after [B]
Outputs = tuple[Tensor, ...] | Tensor


class Exported(nn.Module):
    """A network, and a function that computes outputs by its weights from fields of an observation."""

    def __init__(self, network: nn.Module, outputs: Callable[[Fields], Outputs], names: list[str]) -> None:
        super().__init__()
        self.network, self._outputs, self._names = network.eval(), outputs, names

    def forward(self, *fields: Tensor) -> Outputs:
        """Return the outputs."""
        return self._outputs(dict(zip(self._names, fields, strict=True)))


def greedy(logits: Tensor, may: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits [B, A], minus infinity for illegal actions, and the best legal actions [B]."""
    found = torch.where(may, logits, torch.full_like(logits, -torch.inf))
    return found, found.argmax(dim=1)


def onnx_of(
    network: nn.Module, outputs: Callable[[Fields], Outputs], names: list[str], numbers: Shapes, masks: Shapes
) -> bytes:
    """Return an ONNX file whose inputs are the numbers and masks, with a free batch dimension B.

    `outputs` uses the network's weights; `names` are those of its results.
    """
    example = {name: torch.ones((2, *shape), dtype=torch.float64) for name, shape in numbers.items()}
    example |= {name: torch.ones((2, *shape), dtype=torch.bool) for name, shape in masks.items()}
    batch = torch.export.Dim("B", min=1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for name in ("torch.onnx", "onnx_ir", "onnxscript"):
            logging.getLogger(name).setLevel(logging.ERROR)
        program = torch.onnx.export(
            Exported(network, outputs, list(example)),
            tuple(example.values()),
            input_names=list(example),
            output_names=names,
            dynamic_shapes=(tuple({0: batch} for _ in example),),
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # it never is with dynamo
    content: bytes = program.model_proto.SerializeToString()
    return content
