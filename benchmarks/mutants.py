"""Fault detection of the tests: seeded mutants of the package and the tests that notice them.

    python -m benchmarks.mutants draw > mutants.csv
    python -m benchmarks.mutants run mutants.csv > results.csv

`draw` lists 60 mutants (a comparison, a constant, an arithmetic operator or a removed call each). `run` applies them to
this working copy one at a time and runs the tests of the mutated module and of its importers. Use a separate copy.
"""

import argparse
import ast
import csv
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

SEED = 41
SHARES = {"problems": 18} | dict.fromkeys(("comparing", "champions", "storage", "logs", "steering", "tracking"), 7)
LIMIT_S = 1200
PAIRS = (("<", "<="), (">", ">="), ("==", "!="), ("in", "not in"), ("is", "is not"))
COMPARISONS = dict(PAIRS) | {other: one for one, other in PAIRS}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "*", "**": "*"}


@dataclass(frozen=True)
class Mutant:
    """One change of one line."""

    kind: str
    path: str
    line: int
    before: str
    after: str
    result: str = ""
    noticed_by: str = ""


def draw() -> list[Mutant]:
    """The seeded sample, the same for the same sources."""
    rng = random.Random(SEED)
    drawn = []
    for package, count in SHARES.items():
        found: dict[str, list[Mutant]] = {}
        for path in sorted(Path("pipeline", package).rglob("*.py")):
            for mutant in _candidates(path):
                found.setdefault(mutant.kind, []).append(mutant)
        kinds = sorted(found)
        drawn += [found[kind].pop(rng.randrange(len(found[kind]))) for kind in (kinds * count)[:count]]
    return drawn


def _candidates(path: Path) -> Iterator[Mutant]:
    source = path.read_text()
    lines = source.splitlines()
    docstrings = {id(node.value) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)}
    for node in ast.walk(ast.parse(source)):
        for kind, start, end, text in _changes(node, source):
            if start[0] == end[0] and id(node) not in docstrings:
                line = lines[start[0] - 1].encode()
                after = line[: start[1]] + text.encode() + line[end[1] :]
                yield Mutant(kind, str(path), start[0], line.decode(), after.decode())


Change = tuple[str, tuple[int, int], tuple[int, int], str]


def _changes(node: ast.AST, source: str) -> Iterator[Change]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _operator("comparison", node.left, node.comparators[0], source, COMPARISONS)
    elif isinstance(node, ast.BinOp):
        yield from _operator("arithmetic", node.left, node.right, source, ARITHMETIC)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        other = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 2 or 1.0
        yield "constant", (node.lineno, node.col_offset), _end(node), repr(other)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call", (node.lineno, node.col_offset), _end(node), "pass"


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _operator(kind: str, left: ast.expr, right: ast.expr, source: str, table: dict[str, str]) -> Iterator[Change]:
    start, end = _end(left), (right.lineno, right.col_offset)
    if start[0] != end[0]:
        return
    between = source.splitlines()[start[0] - 1].encode()[start[1] : end[1]].decode()
    found = re.fullmatch(r"(\)*\s*)(.+?)(\s*\(*)", between)
    if found and found[2] in table:
        yield kind, start, end, f"{found[1]}{table[found[2]]}{found[3]}"


def tests_of(path: str) -> list[str]:
    """Test files named after the module or importing it, and those of the modules that import it."""
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    importers = [str(p) for p in sorted(Path("pipeline").rglob("*.py")) if _imports(p, module)]
    chosen: dict[str, None] = {}
    for each in (path, *importers):
        name = each.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        mirrored = Path("tests", *Path(each).parts[1:-1], f"test_{Path(each).name}")
        if mirrored.exists():
            chosen[str(mirrored)] = None
        chosen |= dict.fromkeys(str(p) for p in sorted(Path("tests").rglob("test_*.py")) if _imports(p, name))
    if re.search(r"^\s*>>> ", Path(path).read_text(), re.MULTILINE):
        chosen[path] = None
    return list(chosen)


def _imports(path: Path, module: str) -> bool:
    package, _, name = module.rpartition(".")
    whole, package = re.escape(module), re.escape(package)
    pattern = rf"^\s*(?:from {whole} import|import {whole}\b|from {package} import .*\b{name}\b)"
    return bool(re.search(pattern, path.read_text(), re.MULTILINE))


def run(mutant: Mutant, tests: list[str], *options: str) -> Mutant:
    """Whether the tests notice the mutant: killed, survived or stale (its line is no longer there)."""
    path = Path(mutant.path)
    original = path.read_text()
    lines = original.splitlines()
    if mutant.line > len(lines) or lines[mutant.line - 1] != mutant.before:
        return replace(mutant, result="stale")
    lines[mutant.line - 1] = mutant.after
    path.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:randomly", *options, *tests]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, output = 1, "FAILED (no end)"
    finally:
        path.write_text(original)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return replace(mutant, result="survived" if status in (0, 5) else "killed", noticed_by=" ".join(failed[:1]))


def main() -> None:
    """Draw or run, as the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("draw", "run"))
    parser.add_argument("table", nargs="?", help="the mutants to run, as `draw` printed them")
    parser.add_argument("--whole", action="store_true", help="run the whole suite (for survivors)")
    given = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, list(Mutant.__dataclass_fields__))
    writer.writeheader()
    if given.action == "draw":
        writer.writerows(asdict(mutant) for mutant in draw())
        return
    for row in csv.DictReader(Path(given.table).read_text().splitlines()):
        mutant = Mutant(**(row | {"line": int(row["line"])}))  # type: ignore[arg-type]
        if mutant.result != "killed":
            mutant = run(mutant, [] if given.whole else tests_of(mutant.path))
        writer.writerow(asdict(mutant))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
