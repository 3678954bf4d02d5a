"""Learn cluster schedulers and prove whether they beat the heuristics people already use."""

import hashlib
import os
import sys
from pathlib import Path

COMPILED = "compiled-"  # begins the name of a folder of compiled code
# Packages that hold no compiled code and nothing that it is given.
PLAIN = {
    "accounting",
    "champions",
    "cli",
    "comparing",
    "config",
    "logs",
    "papers",
    "report",
    "schemas",
    "serving",
    "stages",
    "steering",
    "storage",
    "tracking",
}


def _sources(here: Path) -> list[Path]:
    """Return the modules that may hold compiled code; not by way of what is compiled already."""
    found: list[Path] = []
    for place, folders, files in os.walk(here):
        left_out = PLAIN if place == str(here) else set()
        folders[:] = [name for name in folders if name != "__pycache__" and name not in left_out]
        found += [Path(place, name) for name in files if name.endswith(".py")]
    return sorted(found)


def _keep_compiled_code_by_its_sources() -> None:
    """Have numba keep compiled code in a folder that is named by all the sources of it.

    By itself it looks at one file only: where a kernel has a function of another file inlined, it would go on with the
    old one when that is changed. A folder that cannot be written to makes numba fall back on the user's own.
    """
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in _sources(here):
        source = path.read_bytes()
        if any(word in source for word in (b"njit", b"@inlined", b"NamedTuple")):  # whose fields go by their place
            digest.update(path.relative_to(here).as_posix().encode() + source)
    given = Path(os.environ.get("NUMBA_CACHE_DIR", here / "__pycache__"))
    place = here / "__pycache__" if given.name.startswith(COMPILED) else given  # that of the process that began this
    os.environ["NUMBA_CACHE_DIR"] = str(place / f"{COMPILED}{digest.hexdigest()[:16]}")
    if "numba" in sys.modules:  # it has read its environment already
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


_keep_compiled_code_by_its_sources()  # the one thing done on import: later would be too late for numba
