"""A copy of the working tree with a recipe of CONTRIBUTING.md applied, and commands that run in it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builders import REPOSITORY
from ruamel.yaml import YAML

RECIPES = REPOSITORY / "docs" / "recipes"
NEEDED = ("pipeline", "params.yaml", "dvc.yaml", ".dvc/config", "pyproject.toml")
SMALL = ("jobsets: {train: 100, validation: 50, test: 200}", "jobsets: {train: 80, validation: 4, test: 4}")


class Copy:
    """A copy of the project with one recipe applied."""

    def __init__(self, root: Path, recipe: str, environment: Mapping[str, str]) -> None:
        self.root = root
        self._environment = {**environment, "PYTHONPATH": f"{root}{os.pathsep}{environment['PYTHONPATH']}"}
        for name in NEEDED:
            source, target = REPOSITORY / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        (root / "champions.yaml").write_text("# Nobody yet.\n")
        if not changes_compiled_code(recipe):
            self._environment["COMPILED_AS"] = Path(os.environ["NUMBA_CACHE_DIR"]).name
        self.run("git", "init", "--quiet")
        self.run("git", "apply", str(RECIPES / f"{recipe}.diff"))

    def run(self, *words: str) -> str:
        """Run a command in the copy and return its output."""
        named = {**os.environ, **self._environment, "PIPELINE_TRACKING": "off"}
        done = subprocess.run(words, check=False, cwd=self.root, env=named, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def edit(self, **changes: tuple[str, str]) -> None:
        """Replace text everywhere in params.yaml."""
        path = self.root / "params.yaml"
        text = path.read_text()
        for old, new in changes.values():
            assert text.count(old) >= 1, old
            text = text.replace(old, new)
        path.write_text(text)

    @contextmanager
    def rows(self) -> Iterator[dict[str, Any]]:
        """Provide params.yaml for changes, and write it back."""
        path = self.root / "params.yaml"
        rows = YAML().load(path)
        yield rows
        YAML().dump(rows, path)

    def agent(self, name: str, **changes: object) -> None:
        """Change an agent's row of params.yaml."""
        with self.rows() as rows:
            rows["agents"][name].update(changes)

    def pipeline(self, *words: str) -> None:
        self.run("python", "-m", "pipeline", *words)

    def stages(self, *commands: str) -> None:
        """Run some commands, one after the other."""
        for words in commands:
            self.pipeline(*words.split())


def changes_compiled_code(recipe: str) -> bool:
    """Does a recipe change a file of compiled code? If not, its copy uses what the repository has compiled."""
    patch = (RECIPES / f"{recipe}.diff").read_text()
    touched = [REPOSITORY / name for name in re.findall(r"(?m)^diff --git a/(\S+)", patch)]
    sources = [path.read_text() for path in touched if path.exists()]
    return any(word in source for source in sources for word in ("njit", "@inlined"))
