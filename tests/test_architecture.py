"""What documents and comments say of the package's layers and modules is true of the package."""

import re
import tomllib

from builders import REPOSITORY

MENTION = re.compile(r"(?<![\w/.@-])((?:[\w-]+/)+[\w-]+\.py)\b")  # a module with its folder
SAID_IN = ("*.md", "dvc.yaml", "params.yaml", "champions.yaml", "pyproject.toml", "pipeline/**/*.py", "docs/**/*.md")


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
