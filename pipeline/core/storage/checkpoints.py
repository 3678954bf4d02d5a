"""Checkpoints to resume a killed stage: not outputs of DVC, named by a digest of all that the result depends on."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from pipeline.core.config import repository_root
from pipeline.core.storage.files import one_line, write
from pipeline.core.storage.paths import sha256_of
from pipeline.errors import UserError

Tensors = Mapping[str, npt.NDArray[np.generic]]

CODE = Path(__file__).parents[1]
PACKAGES = ("torch", "numpy", "numba")  # whose version may change a result
ENTRY = "checkpoint"  # one entry of metadata: several would be written in random order


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
        "packages": {name: version(name) for name in PACKAGES},
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
    write(path, save_tensors(dict(checkpoint.tensors), metadata={ENTRY: json.dumps(entry, sort_keys=True)}))


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
        tensors = load_tensors(content)
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
