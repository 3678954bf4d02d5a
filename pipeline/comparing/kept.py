"""Pictures that need not be drawn again: a PNG says, beside its pixels, what it was drawn from, and by which code.

Drawing takes longer than all that is counted, and most changes touch few of the pictures. What a picture says of itself
is computed from everything that its bytes depend on, so that they are those of a new one.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from inspect import getsourcefile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORIGIN = "drawn from"  # PNG's keyword of the text
START, HEAD, CHECK = 8, 8, 4  # bytes: of every PNG; of a chunk, its length and its kind; its checksum


def picture(place: Path, draw: Callable[..., "Figure"], *about: object) -> bytes:
    """Return the PNG of a figure: the one that lies at a place, if it was drawn from the same, else a new one.

    Args:
        place: of the PNG; it may be missing, damaged or another one, and is not written.
        draw: a function of a module; what it draws depends on its arguments, this code and matplotlib alone.
        about: its arguments: tables, columns, texts, numbers, or mappings and sequences of them, in a fixed order.

    Raises:
        TypeError: an argument whose content has no digest.
    """
    origin = origin_of(draw, *about)
    with suppress(OSError, ValueError):
        there = place.read_bytes()
        if f"{ORIGIN}\0{origin}".encode("latin-1") in texts(there):
            return there
    return plots.png(draw(*about), {ORIGIN: origin})


def origin_of(draw: Callable[..., "Figure"], *about: object) -> str:
    """Return the digest of all that a picture depends on."""
    digest = hashlib.sha256()
    for name in (getsourcefile(draw), plots.__file__):
        digest.update(Path(name or "").read_bytes())
    digest.update(f"{version('matplotlib')} {draw.__qualname__}".encode())
    for part in _content(list(about)):
        digest.update(part)
    return digest.hexdigest()


def texts(png: bytes) -> list[bytes]:
    """Return the texts of a PNG that is whole.

    Raises:
        ValueError: it is not.
    """
    found, at, kind = [], START, b""
    while kind != b"IEND":
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + HEAD]
        content, at = png[at + HEAD : at + HEAD + size], at + HEAD + size + CHECK
        if zlib.crc32(kind + content) != int.from_bytes(png[at - CHECK : at]) or at > len(png):
            raise ValueError("a PNG that is cut or damaged")
        found += [content] if kind == b"tEXt" else []
    return found


def _content(value: object) -> Iterator[bytes]:
    """Return the bytes that tell a value from all others."""
    yield type(value).__name__.encode()
    if isinstance(value, pd.DataFrame | pd.Series):
        names = [value.name] if isinstance(value, pd.Series) else list(zip(value.columns, value.dtypes, strict=True))
        yield repr((names, list(value.index.names), value.shape)).encode()
        yield pd.util.hash_pandas_object(value).to_numpy().tobytes()
    elif isinstance(value, Mapping):
        yield from (part for item in value.items() for part in _content(list(item)))
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        yield from (part for item in value for part in _content(item))
    elif value is None or isinstance(value, str | int | float):
        yield repr(value).encode()
    else:
        raise TypeError(f"expected tables, texts, numbers or collections of them, got {type(value).__name__}")
