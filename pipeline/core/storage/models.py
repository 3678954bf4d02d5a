"""Weights without pickle: model directories, with a card that is checked, and checkpoints to resume a killed stage.

Checkpoints are not outputs of DVC. They are named by a digest of all that the result depends on.
"""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_weights
from safetensors.numpy import save as save_weights

from pipeline.core.config import repository_root
from pipeline.core.config.learning import FORMAT, POOL, Card, Weights, described, difference
from pipeline.core.config.records import known_names
from pipeline.core.storage.files import one_line, read_json, write
from pipeline.core.storage.paths import MODELS, sha256_of
from pipeline.core.types import FloatArray
from pipeline.errors import UserError

CARD, WEIGHTS = "policy.json", "policy.safetensors"
PACKAGES = ("torch", "numpy", "numba", "safetensors")
Tensors = Mapping[str, npt.NDArray[np.generic]]
CODE = Path(__file__).parents[1]
MAY_CHANGE = ("torch", "numpy", "numba")  # packages whose version may change a result
ENTRY = "checkpoint"  # one entry of metadata: several would be written in random order
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


class Checkpoint(NamedTuple):
    """Progress of a learner."""

    tensors: Tensors
    notes: Any  # JSON


def checkpoint_key(rows: Mapping[str, Any], inputs: Iterable[Path]) -> str:
    """Return the digest of all that a result depends on: params, input files and folders, code, packages."""
    whole = {
        "rows": rows,
        "inputs": {path.as_posix(): sha256_of(path) for path in inputs if path.exists()},
        "code": {file.relative_to(CODE).as_posix(): sha256_of(file) for file in sorted(CODE.rglob("*.py"))},
        "packages": {name: version(name) for name in MAY_CHANGE},
    }
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def checkpoint_file(stage: str, key: str) -> Path | None:
    """Return the file of a checkpoint of a stage (such as `finetune@deeprm`); None outside of a DVC repository."""
    dvc = repository_root() / ".dvc"
    return dvc / "tmp" / "checkpoints" / stage / f"{key}.safetensors" if dvc.is_dir() else None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint under its key."""
    notes = json.dumps(checkpoint.notes, sort_keys=True)
    entry = {"key": path.stem, "notes": notes, "sha256": _contents(checkpoint.tensors, notes)}
    write(path, save_weights(dict(checkpoint.tensors), metadata={ENTRY: json.dumps(entry, sort_keys=True)}))


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint, if it exists; a UserError if damaged, or made with other parameters, inputs or code."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        others = sorted(path.parent.glob("*.safetensors"))
        if others:
            raise UserError(f"checkpoint {others[-1]}: made with other parameters, inputs or code") from None
        return None
    except OSError as error:
        raise UserError(f"checkpoint {path}: cannot be read ({error.strerror})") from error
    try:
        tensors = load_weights(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])  # eight bytes of length, then JSON
        entry = json.loads(header["__metadata__"][ENTRY])
        key, notes, sha256 = entry["key"], entry["notes"], entry["sha256"]
        found = Checkpoint(tensors, json.loads(notes))
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise UserError(f"checkpoint {path}: not a checkpoint ({one_line(error)})") from error
    if key != path.stem:
        raise UserError(f"checkpoint {path}: made with other parameters, inputs or code")
    if sha256 != _contents(tensors, notes):
        raise UserError(f"checkpoint {path}: damaged (its content is not what was written)")
    return found


def drop_checkpoints(path: Path) -> None:
    """Remove all checkpoints of a finished stage: this one and those of other parameters."""
    for file in path.parent.glob("*"):
        file.unlink(missing_ok=True)
    if path.parent.is_dir():
        path.parent.rmdir()


def _contents(tensors: Tensors, notes: str) -> str:
    found = hashlib.sha256(notes.encode())
    for name in sorted(tensors):
        value = tensors[name]
        found.update(f"{name} {value.dtype} {value.shape} ".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()
