"""Model directories: weights without pickle, and a card that describes them and is checked."""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_weights
from safetensors.numpy import save as save_weights

from pipeline.core.config.learning import FORMAT, POOL, Card, Weights, described, difference
from pipeline.core.config.records import known_names
from pipeline.core.storage.files import one_line, read_json, write
from pipeline.core.storage.paths import MODELS
from pipeline.core.types import FloatArray
from pipeline.errors import UserError

CARD, WEIGHTS = "policy.json", "policy.safetensors"
PACKAGES = ("torch", "numpy", "numba", "safetensors")
PICKLES = (b"\x80", b"PK\x03\x04")  # how files of pickle and torch.save begin
SHOWN = 12  # characters of a digest
Kind_co = TypeVar("Kind_co", bound=Card, covariant=True)


class Model(NamedTuple, Generic[Kind_co]):
    """A stored network: its card, and its weights by name."""

    card: Kind_co
    weights: dict[str, FloatArray]


def write_model(folder: Path, model: Model[Card]) -> None:
    """Write a model directory; a UserError if a weight is not finite, or it cannot be written."""
    weights = {name: np.ascontiguousarray(value) for name, value in model.weights.items()}
    _must_be_finite(weights, f"{folder}: not written", "; training went astray: try a lower learning_rate")
    content = save_weights(weights)
    packages = {name: version(name).split("+")[0] for name in PACKAGES}  # the same for every build of a version
    stored = Weights(sha256=_sha256(content), tensors=described(weights), packages=packages)
    card = model.card.model_copy(update={"weights": stored})
    write(folder / WEIGHTS, content)
    write(folder / CARD, (card.model_dump_json(indent=2) + "\n").encode())


def read_model(folder: Path, kind: type[Kind_co]) -> Model[Kind_co]:
    """Read a model directory, or the `policy` inside an agent's directory, with a kind of card.

    Raises UserError: it is no model directory, is of another problem, or its files are damaged or not of one model.
    """
    card_file, weights_file = _files(folder)
    try:
        card = _read_card(card_file, kind)
        weights = _read_weights(weights_file, card.weights)
    except OSError as error:
        raise UserError(f"{folder}: cannot be read ({error.strerror})") from error
    return Model(card.model_copy(update={"weights": None}), weights)


def problem_of_model(folder: Path) -> str:
    """Return the problem in a model's card; a UserError if this is no model directory."""
    card = read_json(_files(folder)[0])
    return str(card.get("problem", "pool")) if isinstance(card, Mapping) else ""


def _files(folder: Path) -> tuple[Path, Path]:
    place = folder / "policy" if (folder / "policy").is_dir() else folder
    card, weights = place / CARD, place / WEIGHTS
    if not card.is_file() or not weights.is_file():
        raise UserError(f"{folder}: not a model directory: expected {CARD} and {WEIGHTS} in it")
    return card, weights


def _read_card(file: Path, kind: type[Kind_co]) -> Kind_co:
    try:
        raw = json.loads(file.read_bytes())
        found = raw.get("format", FORMAT) if isinstance(raw, dict) else FORMAT
        if found != FORMAT:
            raise UserError(f"{file}: expected a card of format {FORMAT}, found format {found}: make the model again")
        word = str(raw.get("problem", POOL)) if isinstance(raw, dict) else POOL
        if word != kind.word():
            raise UserError(f"{file}: expected a model of problem {kind.word()}, found one of {word!r}")
        return kind.model_validate_json(file.read_bytes())
    except (ValidationError, ValueError, RecursionError) as error:
        raise UserError(f"{file}: not a model card ({one_line(error)})") from error


def _read_weights(file: Path, card: Weights | None) -> dict[str, FloatArray]:
    content = file.read_bytes()
    if content.startswith(PICKLES):
        raise UserError(f"{file}: not safetensors: this looks like a pickle, and pickles are never loaded")
    try:
        weights = load_weights(content)
    except KeyError as error:
        raise UserError(f"{file}: not weights (a tensor of type {error.args[0]})") from error
    except (SafetensorError, ValueError, TypeError) as error:
        raise UserError(f"{file}: not weights ({one_line(error)})") from error
    if card is None:
        raise UserError(f"{file.with_name(CARD)}: not a model card (it does not describe the weights)")
    differing = difference(card.tensors, described(weights))
    if differing:
        raise UserError(f"{file}: not the weights of {CARD}: {differing}")
    _must_be_finite(weights, str(file), "")
    if _sha256(content) != card.sha256:
        wanted, got = card.sha256[:SHOWN], _sha256(content)[:SHOWN]
        raise UserError(f"{file}: not the weights of {CARD}: expected sha256 {wanted}..., found {got}...")
    return weights


def _must_be_finite(weights: Mapping[str, FloatArray], where: str, why: str) -> None:
    for name, value in weights.items():
        wrong = value[~np.isfinite(value)] if np.issubdtype(value.dtype, np.floating) else value[:0]
        if wrong.size:
            raise UserError(f"{where}: tensor {name}: expected finite numbers, found {wrong.flat[0]}{why}")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unknown_policy(name: str, heuristics: Iterable[str]) -> UserError:
    """Return the error of an unknown policy, with the most similar model folder."""
    models = [folder.name for folder in MODELS.glob("*") if folder.is_dir()]
    near = difflib.get_close_matches(Path(name).name, models, n=1)
    meant = f"; did you mean '{MODELS / near[0]}'?" if near else ""
    there = known_names(heuristics, name)
    return UserError(f"unknown policy '{name}': expected a model directory or a heuristic; {there}{meant}")
