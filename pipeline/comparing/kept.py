"""Cache of pictures, keyed by their data and code.

Drawing takes longer than all statistics, and most changes affect few of the pictures. The cache is not an output of a
stage: DVC removes outputs before it runs a stage, and an output that it keeps excludes the stage from the run cache.
"""

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from inspect import getsourcefile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from pipeline.comparing import plots
from pipeline.core.storage.files import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = Path(".cache/pictures")
KEPT_S = 14 * 86_400.0  # age at which unused pictures are removed
SUM = hashlib.sha256().digest_size  # bytes of the checksum before the picture


def picture(folder: Path, draw: Callable[..., "Figure"], *about: object) -> bytes:
    """Return the PNG of a figure from the cache, or draw it.

    The figure depends only on the code of `draw`, a function of a module, on matplotlib, and on its arguments `about`:
    tables, columns, texts, numbers, or dicts and sequences of them in a fixed order (TypeError for others).
    """
    place = folder / f"{origin_of(draw, *about)}.png"
    with suppress(OSError):
        stored = place.read_bytes()
        if hashlib.sha256(stored[SUM:]).digest() == stored[:SUM]:
            place.touch()
            return stored[SUM:]
    drawn = plots.png(draw(*about))
    write(place, hashlib.sha256(drawn).digest() + drawn)
    return drawn


def sweep(folder: Path) -> None:
    """Remove pictures that have not been used for a long time."""
    for place in folder.glob("*.png"):
        with suppress(OSError):  # another stage has removed it
            if time.time() - place.stat().st_mtime > KEPT_S:
                place.unlink()


def origin_of(draw: Callable[..., "Figure"], *about: object) -> str:
    """Return the digest of a picture's data and code."""
    digest = hashlib.sha256()
    for name in (getsourcefile(draw), plots.__file__):
        digest.update(Path(name or "").read_bytes())
    digest.update(f"{version('matplotlib')} {draw.__qualname__} {json.dumps(about, default=_of_table)}".encode())
    return digest.hexdigest()


def _of_table(value: object) -> tuple[str, str, str]:
    """Return the type of a table, its names and shape, and its values; a TypeError for anything else."""
    if not isinstance(value, pd.DataFrame | pd.Series):
        raise TypeError(f"expected tables, texts, numbers or collections of them, got {type(value).__name__}")
    names = [value.name] if isinstance(value, pd.Series) else list(zip(value.columns, value.dtypes, strict=True))
    held = pd.util.hash_pandas_object(value).to_numpy().tobytes().hex()
    return type(value).__name__, repr((names, list(value.index.names), value.shape)), held
