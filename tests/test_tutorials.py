"""The tutorials are notebooks: each runs in a fresh copy, and its output is the stored output."""

import importlib.util
import os
import re
from math import isclose
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from builders import REPOSITORY
from published import OWN, has_own_results

FOLDER = REPOSITORY / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
READS_RESULTS = "first-run"  # results of the repository
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TRAINED = "trained"  # tag of cells with numbers that differ slightly on other processors


def loaded() -> ModuleType:
    """The program that executes notebooks."""
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXECUTE = loaded()


def same(stored: str, printed: str, trained: bool) -> bool:
    """Compare texts; numbers of trained agents may differ by a tenth, or by 1."""
    if not trained:
        return stored == printed
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (stored, printed)]
    words = [NUMBER.sub("", text).split() for text in (stored, printed)]
    return (words[0], len(numbers[0])) == (words[1], len(numbers[1])) and all(
        isclose(*pair, rel_tol=0.1, abs_tol=1) for pair in zip(*numbers, strict=True)
    )


@pytest.mark.parametrize(
    ("stored", "printed", "as_trained", "exactly"),
    [
        ("net: 6.49 -> 11.40", "net: 6.49 -> 11.40", True, True),
        ("net:  6.49 -> 11.40", "net: 6.49 -> 11.52", True, False),
        ("net: 6.49 -> 11.40", "net: 6.49 -> 13.90", False, False),
        ("net: 6.49 -> 11.40", "old: 6.49 -> 11.40", False, False),
        ("few  20  12", "few  20", False, False),
    ],
)
def test_only_numbers_of_trained_agents_may_differ_and_only_slightly(
    stored: str, printed: str, as_trained: bool, exactly: bool
) -> None:
    assert (same(stored, printed, True), same(stored, printed, False)) == (as_trained, exactly)


@pytest.fixture
def elsewhere(warm_environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of notebooks: commands are forked from the warm process, including `dvc`."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dvc").write_text('#!/bin/sh\nexec python -m dvc "$@"\n')
    (programs / "dvc").chmod(0o755)
    for name, value in warm_environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{warm_environment['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_stores(path: Path) -> None:
    if path.stem == READS_RESULTS and has_own_results():
        pytest.skip(OWN)
    stored = nbformat.read(path, as_version=4)
    printed = EXECUTE.texts(EXECUTE.execute(path))
    cells = [cell for cell in stored.cells if cell.cell_type == "code"]
    tags = [TRAINED in cell.metadata.get("tags", []) for cell in cells]
    differ = [
        f"{cell.source}\n--- stored:\n{old}\n--- printed:\n{new}"
        for cell, old, new, tag in zip(cells, EXECUTE.texts(stored), printed, tags, strict=True)
        if not same(old, new, tag)
    ]
    again = f"If this is intended: python docs/tutorials/execute.py {path.stem}"
    assert not differ, "\n\n".join([*differ, again])


def test_outputs_have_no_place_time_or_run() -> None:
    for path in NOTEBOOKS:
        for text in EXECUTE.texts(nbformat.read(path, as_version=4)):
            assert not re.search(r"/tmp/|/home/|/work/|\b20\d\d-\d\d-\d\d\b|\b[0-9a-f]{10,}\b|done in", text), path


def test_every_tutorial_is_stored_with_outputs() -> None:
    assert len(NOTEBOOKS) == 5
    assert [path.stem for path in NOTEBOOKS if not any(EXECUTE.texts(nbformat.read(path, as_version=4)))] == []
