"""Documents that people are told to read: short, and with links that lead somewhere; and the site that they make."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from builders import REPOSITORY

DOCUMENTS = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MODULE = re.compile(r"`([a-z0-9_/]+\.py)`")
MENTION = re.compile(r"(?<![\w/.@-])((?:[\w-]+/)+[\w-]+\.py)\b")  # a module with its folder
SAID_IN = ("*.md", "dvc.yaml", "params.yaml", "champions.yaml", "pyproject.toml", "pipeline/**/*.py", "docs/**/*.md")
MADE = {REPOSITORY / "docs" / "reference" / name for name in ("commands.md", "params.md")}  # pages of the site alone
ROOMS = ("pipeline", "tests", "benchmarks", "docs", ".ci")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_leads_to_a_file_of_the_project(path: Path) -> None:
    links = [link for link in LINK.findall(path.read_text()) if not link.startswith(("http:", "https:"))]
    targets = [Path(os.path.normpath(path.parent / link)) for link in links]
    assert [target for target in targets if not target.exists() and target not in MADE] == []


def test_the_architecture_is_read_in_a_sitting() -> None:
    assert len((REPOSITORY / "ARCHITECTURE.md").read_text().splitlines()) <= 80


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 150


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built as `make docs` does: strict, so that a broken link or reference fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_has_every_document_and_every_made_page(site: Path) -> None:
    documents = (
        path.relative_to(REPOSITORY / "docs").with_suffix(".html") for path in (REPOSITORY / "docs").rglob("*.md")
    )
    assert [path for path in documents if not (site / path).exists()] == []
    commands, params = ((site / "reference" / f"{name}.html").read_text() for name in ("commands", "params"))
    assert "python -m pipeline schedule jobs.csv --scenario online" in commands
    assert "<code>--policy</code>" in commands
    assert "Of a job's score once trained, per log(1 + waited / duration)" in params
    assert "whole number above 0, at most 1,000" in params


def test_pages_of_the_site_lead_only_to_what_is_in_it(site: Path) -> None:
    broken = []
    for page in site.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            inside = not target.startswith(("http:", "https:", "data:", "javascript:", "mailto:"))
            assert inside or f'src="{target}' not in page.read_text(), "nothing is fetched from elsewhere"
            if inside and page.name != "404.html" and not (page.parent / target).exists():
                broken.append((page.name, target))
    assert broken == []


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


def test_the_layers_of_the_document_are_those_that_are_checked() -> None:
    config = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contract = next(one for one in config["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    block = re.search(r"\n\n((?: {4}.*\n)+)", text[text.index("## Layers") :])
    assert block is not None
    assert [layer.strip() for layer in " ".join(block[1].split()).split(">")] == contract["layers"]
    packages = {path.parent.name for path in (REPOSITORY / "pipeline").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"\w+", block[1]))


def test_every_module_that_is_mentioned_is_there() -> None:
    """A module may be named from any folder above it."""
    folders = ("pipeline", "docs", "tests", "benchmarks")
    there = {f"/{path.relative_to(REPOSITORY)}" for folder in folders for path in (REPOSITORY / folder).rglob("*.py")}
    files = {path for pattern in SAID_IN for path in REPOSITORY.glob(pattern) if path.name != "CHANGELOG.md"}
    said = {
        (str(path.relative_to(REPOSITORY)), name.removeprefix("REPOSITORY/"))
        for path in files
        for name in MENTION.findall(path.read_text())
    }
    assert len(said) > 30
    assert sorted(one for one in said if not any(place.endswith(f"/{one[1]}") for place in there)) == []
