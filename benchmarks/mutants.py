"""Fault detection of the tests: seeded mutants of the package and the tests that notice them.

    python -m benchmarks.mutants draw > mutants.csv
    python -m benchmarks.mutants run mutants.csv > results.csv

`draw` lists 60 mutants (a comparison, a constant, an arithmetic operator or a removed call each). `run` applies each to
this working copy and runs tests in up to three rounds until one fails: those of the module, those that import it, and
those of the modules that import it. Use a separate copy, in which these tests pass. Rows with `killed` are not run.
"""

import argparse
import ast
import csv
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

SEED = 41
SHARES = {"problems": 18} | dict.fromkeys(
    ("comparing", "champions", "core/storage", "core/logs", "steering", "tracking"), 7
)
LIMIT_S = 600
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
    note: str = ""  # written by hand: why it is equivalent, or that its test was added


def draw() -> list[Mutant]:
    """Return the seeded sample, the same for the same sources."""
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


def tests_of(path: str) -> list[list[str]]:
    """Return three rounds of test files: of the module, of those that import it, and of the modules that import it."""
    own = [str(_mirrored(path))] if _mirrored(path).exists() else []
    if re.search(r"^\s*>>> ", Path(path).read_text(), re.MULTILINE):
        own.append(path)
    importers = [str(p) for p in sorted(Path("pipeline").rglob("*.py")) if _imports(p, _module(path))]
    mirrored = [str(_mirrored(each)) for each in importers if _mirrored(each).exists()]
    others = [name for each in importers for name in _tests_importing(each)]
    rounds, chosen = [], set[str]()
    for names in (own, _tests_importing(path), [*mirrored, *others]):
        rounds.append([name for name in dict.fromkeys(names) if name not in chosen])
        chosen.update(names)
    return [names for names in rounds if names]


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _mirrored(path: str) -> Path:
    return Path("tests", *Path(path).parts[1:-1], f"test_{Path(path).name}")


def _tests_importing(path: str) -> list[str]:
    return [str(p) for p in sorted(Path("tests").rglob("test_*.py")) if _imports(p, _module(path))]


def _imports(path: Path, module: str) -> bool:
    package, _, name = module.rpartition(".")
    whole, package = re.escape(module), re.escape(package)
    pattern = rf"^\s*(?:from {whole} import|import {whole}\b|from {package} import .*\b{name}\b)"
    return bool(re.search(pattern, path.read_text(), re.MULTILINE))


def run(mutant: Mutant, rounds: list[list[str]], marked: str) -> Mutant:
    """Return the mutant with its result: killed, survived, unfinished or stale (its line is no longer there)."""
    path = Path(mutant.path)
    original, kept = path.read_bytes(), path.stat()
    lines = original.decode().splitlines()
    if mutant.line > len(lines) or lines[mutant.line - 1] != mutant.before:
        return replace(mutant, result="stale")
    lines[mutant.line - 1] = mutant.after
    plain, result, noticed_by = _compiled_code(), "survived", ""
    path.write_text("\n".join(lines) + "\n")
    compiled = _compiled_code()
    if compiled != plain and plain.exists() and not _in_compiled_function(original.decode(), mutant.line):
        shutil.copytree(plain, compiled, dirs_exist_ok=True)
    try:
        for tests in rounds:
            result, noticed_by = _tested(tests, marked)
            if result != "survived":
                break
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # by this time numba and Python recognise compiled code
        if compiled != plain:
            shutil.rmtree(compiled, ignore_errors=True)
    return replace(mutant, result=result, noticed_by=noticed_by)


def _tested(tests: list[str], marked: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-m", marked, "-p", "no:randomly", *tests]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return "unfinished", ""
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return "survived" if done.returncode in (0, 5) else "killed", " ".join(failed[:1])


def _compiled_code() -> Path:
    """Return the folder of numba's compiled code, which pipeline/__init__.py names after the current sources."""
    command = [sys.executable, "-c", "import os, pipeline; print(os.environ['NUMBA_CACHE_DIR'])"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def _in_compiled_function(source: str, line: int) -> bool:
    """Return whether other compiled functions may contain a copy of this line."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    written = " ".join(ast.unparse(decorator) for node in around for decorator in node.decorator_list)
    return not around or "njit" in written or "inlined" in written


def main() -> None:
    """Draw or run, depending on the first argument."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("draw", "run"))
    parser.add_argument("table", nargs="?", help="the mutants to run, as `draw` printed them")
    parser.add_argument("--rounds", type=int, default=3, help="1: the module's tests, 2: and tests that import it")
    parser.add_argument("--marked", default="not (slow or live or whole)", help="which tests, as of pytest's -m")
    given = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, list(Mutant.__dataclass_fields__))
    writer.writeheader()
    if given.action == "draw":
        writer.writerows(asdict(mutant) for mutant in draw())
        return
    for row in csv.DictReader(Path(given.table).read_text().splitlines()):
        mutant = Mutant(**(row | {"line": int(row["line"])}))  # type: ignore[arg-type]
        if mutant.result != "killed":
            mutant = run(mutant, tests_of(mutant.path)[: given.rounds], given.marked)
        writer.writerow(asdict(mutant))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
