"""Documents that people are told to read: short, and with links that lead somewhere."""

import re
from pathlib import Path

import pytest
from builders import REPOSITORY

DOCUMENTS = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MODULE = re.compile(r"`([a-z0-9_/]+\.py)`")
ROOMS = ("pipeline", "tests", "benchmarks", "docs", ".ci")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_leads_to_a_file_of_the_project(path: Path) -> None:
    links = [link for link in LINK.findall(path.read_text()) if not link.startswith(("http:", "https:"))]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_architecture_is_read_in_a_sitting() -> None:
    assert len((REPOSITORY / "ARCHITECTURE.md").read_text().splitlines()) <= 80


def test_a_decision_is_short_and_has_its_number() -> None:
    for path in (REPOSITORY / "docs" / "decisions").iterdir():
        lines = path.read_text().splitlines()
        assert len(lines) <= 25, path
        assert lines[0].startswith(f"# {int(path.name[:4])}. "), path


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_module_that_is_named_is_one_of_the_project(path: Path) -> None:
    modules = {found.name for room in ROOMS for found in (REPOSITORY / room).rglob("*.py")}
    named = {name.rpartition("/")[2] for name in MODULE.findall(path.read_text())}
    assert sorted(named - modules) == []
