"""Compiled code is kept between processes, and compiled again when one of its sources has changed."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import REPOSITORY

import pipeline

INNER = "from numba import njit\ninlined = njit\n@inlined\ndef inner(x):\n    return x + {number}\n"
OUTER = """
from numba import njit
from pipeline.kernels.inner import inner
@njit(cache=True)
def outer(x):
    return inner(x)
"""
SAY = "from pipeline.kernels.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A package with a kernel that contains a function of another file."""
    package = tmp_path / "pipeline"
    (package / "kernels").mkdir(parents=True)
    shutil.copy(REPOSITORY / "pipeline" / "__init__.py", package)
    (package / "kernels" / "inner.py").write_text(INNER.format(number=1))
    (package / "kernels" / "outer.py").write_text(OUTER)
    return tmp_path


def said(root: Path, script: str = SAY, **more: str) -> list[str]:
    """Return the output of a new process; NUMBA_CACHE_DIR is inherited from the tests."""
    named = os.environ | {"PYTHONPATH": str(root)} | more
    return subprocess.run(
        [sys.executable, "-c", script], check=True, cwd=root, env=named, capture_output=True, text=True
    ).stdout.split()


def folders(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("compiled-*"))


def test_a_change_in_another_file_is_compiled_and_one_of_no_kernel_s_is_not(root: Path) -> None:
    package = root / "pipeline"
    assert said(root) == ["2", "0"]
    (package / "kernels" / "plain.py").write_text("x = 1\n")
    (package / "report").mkdir()  # no kernel takes a record of this package
    (package / "report" / "page.py").write_text("from typing import NamedTuple\n")
    assert said(root) == ["2", "1"]
    assert len(folders(package / "__pycache__")) == 1
    (package / "kernels" / "record.py").write_text("from typing import NamedTuple\n")
    assert said(root) == ["2", "0"]
    (package / "kernels" / "inner.py").write_text(INNER.format(number=5))
    assert said(root) == ["6", "0"]
    assert said(root) == ["6", "1"]
    assert len(folders(package / "__pycache__")) == 3


def is_compiled(path: Path) -> bool:
    """Does a file define a kernel?"""
    return any(word in path.read_bytes() for word in pipeline.WORDS if word != b"NamedTuple")


def test_no_package_without_kernels_has_one() -> None:
    for package in pipeline.PLAIN - {"sites"}:
        folders = [path for path in (REPOSITORY / "pipeline").rglob(package) if path.is_dir()]
        sources = [path for folder in folders for path in folder.rglob("*.py")]
        assert sources
        assert not [path for path in sources if is_compiled(path)]


def test_no_package_without_kernels_calls_one_with_tuples_of_its_own() -> None:
    package = REPOSITORY / "pipeline"
    kernel = re.compile(r"@(?:njit|inlined|threaded)\b.*\ndef (\w+)\(")
    kernels = {
        (".".join(path.relative_to(REPOSITORY).with_suffix("").parts), name)
        for path in package.rglob("*.py")
        for name in kernel.findall(path.read_text())
    }
    assert len(kernels) > 200
    plain = [path for path in package.rglob("*.py") if pipeline.PLAIN & set(path.relative_to(package).parts)]
    nodes = [node for path in plain for node in ast.walk(ast.parse(path.read_text()))]
    called = {(node.module, one.name) for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
    assert {module for module, _ in kernels & called} == {"pipeline.learning.sampling"}  # its arguments are arrays


def test_all_that_sites_compiles_is_in_one_file_which_numba_itself_checks() -> None:
    sources = list((REPOSITORY / "pipeline/sites").glob("*.py"))
    compiled = [path for path in sources if is_compiled(path)]
    assert [path.name for path in compiled] == ["replay.py"]
    imports = [line for line in compiled[0].read_text().splitlines() if line.startswith("from pipeline")]
    assert imports == [
        "from pipeline.core.types import BoolArray, FloatArray, IntArray",
        "from pipeline.simulation.compiled import inlined",  # a source in the digest
    ]


NAMED = "import os, pipeline; print(os.environ['NUMBA_CACHE_DIR'])"


def test_a_source_is_known_by_its_folder_too(root: Path) -> None:
    found = said(root, NAMED)
    (root / "pipeline" / "other").mkdir()
    (root / "pipeline" / "other" / "inner.py").write_text(INNER.format(number=1))
    found += said(root, NAMED)
    (root / "pipeline" / "other").rename(root / "pipeline" / "others")  # same content, same order
    found += said(root, NAMED)
    assert len(set(found)) == 3
    assert {Path(name).parent for name in found} == {root / "pipeline" / "__pycache__"}


def test_numba_may_be_there_before(root: Path) -> None:
    assert said(root, f"import numba; {SAY}") == ["2", "0"]
    assert said(root) == ["2", "1"]


def test_a_folder_of_the_users_own_is_kept_to(root: Path, tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    assert said(root, NUMBA_CACHE_DIR=own) == ["2", "0"]
    assert said(root, NUMBA_CACHE_DIR=own) == ["2", "1"]
    assert len(folders(tmp_path / "own")) == 1


def test_code_that_may_not_be_written_beside_is_compiled_elsewhere(root: Path, tmp_path: Path) -> None:
    (root / "pipeline" / "__pycache__").write_text("no folder can be made here")
    for name in ("kernels", "home"):
        (tmp_path / "blocked" / name).mkdir(parents=True)
    (root / "pipeline" / "kernels" / "__pycache__").write_text("nor here")
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    assert said(root, **home) == ["2", "0"]
    assert said(root, **home) == ["2", "1"]


def test_the_tests_use_the_folder_of_their_own_sources() -> None:
    assert Path(os.environ["NUMBA_CACHE_DIR"]).name.startswith(pipeline.COMPILED)
