"""Networks of a pooled cluster as ONNX files: the image is drawn within the graph."""

from pathlib import Path

import torch
from torch import Tensor

from pipeline.core import storage
from pipeline.core.config import PoolCard
from pipeline.errors import UserError
from pipeline.interactive.exporting import Fields, Shapes, greedy, onnx_of
from pipeline.problems.pool.agents.networks.cnn import Cnn
from pipeline.problems.pool.agents.networks.encodings import image_of
from pipeline.problems.pool.agents.networks.mlp import Mlp
from pipeline.problems.pool.agents.networks.networks import restore


def onnx(folder: Path) -> bytes:
    """Return a stored network as an ONNX file that plays greedily among the legal actions.

    Raises:
        UserError: the network has no ONNX form.
    """
    model = storage.read_model(folder, PoolCard)
    card = model.card
    if card.network.name == "scores":
        raise UserError(
            f"{folder}: a network 'scores' has no ONNX form: its features are compiled code; 'serve' answers by it"
        )
    network = restore(card, model.weights).network

    def outputs(view: Fields) -> tuple[Tensor, Tensor]:
        assert isinstance(network, Mlp | Cnn)
        slots = torch.cat([view["duration"][:, :, None], view["demand"]], dim=2)
        rest = torch.stack([view["backlog"], view["since_arrival"]], dim=1)
        image = image_of(view["free"][:, 0], slots, rest, network.layout).float()
        return greedy(network.on_image(image), view["action_mask"])

    slots, resources = card.slots, len(card.resources)
    numbers: Shapes = {
        **{"free": (1, card.horizon, resources), "demand": (slots, resources), "duration": (slots,)},
        **{"backlog": (), "since_arrival": ()},
    }
    return onnx_of(network, outputs, ["logits", "action"], numbers, {"action_mask": (slots + 1,)})
