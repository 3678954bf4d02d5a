"""Where test processes find compiled code; in a folder on their PYTHONPATH that no other session deletes.

numba stores compiled code by the location of its sources, which temporary experiments have elsewhere. They should
still use what the repository's own modules have compiled (the folder's name identifies its sources). A test that knows
that it changed no compiled code sets COMPILED_AS to the name of the repository's folder.
"""

import os
from pathlib import Path

from numba.core.caching import InTreeCacheLocator

PACKAGE = Path(__file__).parents[3] / "pipeline"


class Shared(InTreeCacheLocator):
    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        name = os.environ.get("COMPILED_AS") or Path(os.environ["NUMBA_CACHE_DIR"]).name
        compiled = PACKAGE / "__pycache__" / name
        inside = Path(py_file).parts[len(Path(py_file).parts) - Path(py_file).parts[::-1].index("pipeline") :]
        original = PACKAGE.joinpath(*inside)
        self._cache_path = str(compiled / self.get_suitable_cache_subpath(str(original)))
