"""Draw pages and docstrings for a reader without context: `python tests/support/passages.py SEED`."""

import ast
import random
import sys
from pathlib import Path

PAGES, DOCSTRINGS = 20, 40
KINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def docstrings() -> list[str]:
    """Return `path: name` of everything with a docstring."""
    found = []
    for path in sorted([*Path("pipeline").rglob("*.py"), *Path("deeprm").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, KINDS) and ast.get_docstring(node):
                found.append(f"{path}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', '(module)')}")
    return found


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[1]))
    pages = [str(path) for path in sorted([Path("README.md"), *Path("docs").rglob("*.md")])]
    sys.stdout.write("\n".join([*rng.sample(pages, PAGES), *rng.sample(docstrings(), DOCSTRINGS), ""]))
