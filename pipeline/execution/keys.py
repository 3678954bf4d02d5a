"""What a task is called in the store: a digest of the code, the function, what it is given, and the inputs it reads."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from pipeline.execution.version import code_digest
from pipeline.storage.paths import sha256_of


def keys_of(function: Callable[[Any], Any], tasks: Sequence[object], inputs: Sequence[Path] = ()) -> list[str]:
    """Return the key of every task.

    Args:
        function: of a module, or a partial of one; what it holds (parameters, a seed) is part of the key.
        tasks: what it is called with.
        inputs: files and folders that it reads, by what they hold.

    Raises:
        TypeError: something has no digest, as a closure.
    """
    held = [(path.as_posix(), sha256_of(path)) for path in inputs]
    common = _digest((code_digest(), function, held))
    return [hashlib.sha256(common + _digest(task)).hexdigest() for task in tasks]


def _digest(value: object) -> bytes:
    digest = hashlib.sha256()
    for piece in _pieces(value):
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.digest()


def _pieces(value: object) -> Iterator[bytes]:
    """Yield bytes that are the same for equal values in any process, and others for any other value."""
    yield _name_of(type(value)).encode()
    if value is None or isinstance(value, bool | int | float | str | np.generic | Path):
        yield repr(value).encode()
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, BaseModel):
        yield value.model_dump_json().encode()
    elif isinstance(value, Mapping):
        yield from _parts([part for item in value.items() for part in item])
    elif isinstance(value, list | tuple):
        yield from _parts(value)
    elif isinstance(value, functools.partial):
        yield from _parts([value.func, value.args, value.keywords])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _parts([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif callable(value) and "<" not in _name_of(value):
        yield _name_of(value).encode()
    else:
        raise TypeError(f"a task is given {value!r}, which has no digest")


def _parts(values: Sequence[object]) -> Iterator[bytes]:
    yield str(len(values)).encode()
    for value in values:
        yield from _pieces(value)


def _name_of(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
