"""Model directories: weights without pickle, and a card that says what they are."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_weights
from safetensors.numpy import save as save_weights

from pipeline.config import ModelCard
from pipeline.core import FloatArray
from pipeline.errors import UserError
from pipeline.storage.files import one_line, write


class Model(NamedTuple):
    """A network as it is stored: what it is, and its weights by name."""

    card: ModelCard
    weights: dict[str, FloatArray]


def write_model(folder: Path, model: Model) -> None:
    """Write a model directory: weights without pickle, and a card that says what they are."""
    write(folder / "policy.safetensors", save_weights({k: np.ascontiguousarray(v) for k, v in model.weights.items()}))
    write(folder / "policy.json", (model.card.model_dump_json(indent=2) + "\n").encode())


def read_model(folder: Path) -> Model:
    """Read a model directory, or the `policy` inside an agent's directory.

    Raises:
        UserError: it is no model directory, or its files are damaged.
    """
    inside = folder / "policy"
    place = inside if inside.is_dir() else folder
    card_file, weights_file = place / "policy.json", place / "policy.safetensors"
    if not card_file.is_file() or not weights_file.is_file():
        raise UserError(f"{folder}: not a model directory: expected policy.json and policy.safetensors in it")
    try:
        card = ModelCard.model_validate_json(card_file.read_bytes())
        return Model(card, load_weights(weights_file.read_bytes()))
    except ValidationError as error:
        raise UserError(f"{card_file}: not a model card ({one_line(error)})") from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"{weights_file}: not weights ({one_line(error)})") from error
