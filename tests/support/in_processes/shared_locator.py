"""Where the processes of tests find compiled code; on their PYTHONPATH, in a folder that no other session deletes.

Compiled code is kept by the place of its sources, and temporary experiments have theirs in a folder of their own: all
of them shall use what the repository's own modules have compiled already (the folder's name tells its sources). A test
that knows that it changed no compiled code says so by COMPILED_AS, the name of the repository's folder.
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
