"""Learn cluster schedulers and test whether they beat the heuristics people already use."""

import hashlib
import os
import sys
from pathlib import Path

COMPILED = "compiled-"  # prefix of the folders of compiled code
WORDS = (b"njit", b"@inlined", b"@threaded", b"NamedTuple")  # of compiled code; fields are compiled by position
# Folders that neither hold compiled code nor define its arguments; `sites` compiles in one file, which numba checks.
PLAIN = {
    *("accounting", "champions", "cli", "comparing", "config", "external", "interactive", "kubernetes", "logs"),
    *("papers", "report", "schemas", "serving", "sites", "stages", "steering", "storage", "tracking"),
}


def _key_compiled_code_by_sources() -> None:
    """Make numba keep compiled code in a folder named after a digest of all its sources.

    By default it checks only a kernel's own file, and would reuse the kernel after changes of code inlined from others.
    If the folder cannot be written to, numba uses the user's cache folder.
    """
    here, digest, sources = Path(__file__).parent, hashlib.sha256(), list[Path]()
    for place, folders, files in os.walk(here):
        folders[:] = [name for name in folders if name != "__pycache__" and name not in PLAIN]
        sources += [Path(place, name) for name in files if name.endswith(".py")]
    for path in sorted(sources):
        source = path.read_bytes()
        if any(word in source for word in WORDS):
            digest.update(path.relative_to(here).as_posix().encode() + source)
    given = Path(os.environ.get("NUMBA_CACHE_DIR", here / "__pycache__"))
    place_of_all = here / "__pycache__" if given.name.startswith(COMPILED) else given  # inherited from a parent process
    os.environ["NUMBA_CACHE_DIR"] = str(place_of_all / f"{COMPILED}{digest.hexdigest()[:16]}")
    if "numba" in sys.modules:  # numba has already read its environment
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


_key_compiled_code_by_sources()  # on import, because numba reads its environment once
