"""The code that a stage of the pipeline runs: its file and all that it imports, through the seam to a problem's parts.

The seam is `pipeline/problems/__init__.py`, which all problems share. Left out, because they change no result: the
command line, tracking, progress, where tasks run, and error messages.
The shared part of config is left out as well, except `params.py`: it refuses rows, defines their types, or lists the
problems. What a row contains is a parameter of its stage. For the same reason a stage needs only the rows of its own
problems: it checks those of others, but reads nothing from them.
"""

import ast
import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

LEFT_OUT = (
    "pipeline/__init__.py",
    "pipeline/cli",
    "pipeline/tracking",
    "pipeline/execution",
    "pipeline/progress.py",
    "pipeline/errors.py",
)
OF_CONFIG = (
    "__init__",
    "evaluation",
    "learning",
    "parsing",
    "problems",
    "records",
)
PASSED_THROUGH = tuple(f"pipeline/core/config/{name}.py" for name in OF_CONFIG)  # left out, but not their imports
SEAM = Path("pipeline/problems/__init__.py")
WORDS = Path("pipeline/problems/parts.py")  # of the seam: types, and stand-ins that refuse or do nothing
PARTS = ("tables", "draw", "scoring", "planning", "learning", "algorithms", "hindsight", "comparison")
Using = ("problem", "problem_of")  # of the seam: a module that imports one of these asks problems for parts


def covered(file: Path, by: Iterable[str]) -> bool:
    """Is a file one of these, or in one of these folders?"""
    return any(Path(place) == file or Path(place) in file.parents for place in by)


def module_file(root: Path, module: str) -> Path | None:
    """The file of a module of this repository."""
    path = Path(*module.split("."))
    found = (file for file in (path.with_suffix(".py"), path / "__init__.py") if (root / file).is_file())
    return next(found, None)


def run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes that may run; not what is there only for the type checker."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        yield node
        yield from run_nodes(node)


@functools.cache
def parsed(root: Path, file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse((root / file).read_text())


def _files(root: Path, file: Path, nodes: Iterable[ast.AST]) -> set[Path]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    parents = {".".join(name.split(".")[:k]) for name in names for k in range(1, name.count(".") + 2)}
    return {found for name in parents if (found := module_file(root, name)) is not None}


@functools.cache  # stages share most of their code
def imported(root: Path, file: Path) -> set[Path]:
    """The files of this repository that are imported by importing a file and running its functions."""
    return _files(root, file, run_nodes(parsed(root, file)))


def has_code(root: Path, file: Path) -> bool:
    """Is there more than a docstring?"""
    return any(not isinstance(node, ast.Expr) for node in parsed(root, file).body)


def parts_used(root: Path, file: Path) -> set[str]:
    """The parts of problems that a stage file, or a stage file that it imports, asks for."""
    found: set[str] = set()
    for at in {file, *(other for other in imported(root, file) if other.parent == file.parent)}:
        nodes = list(ast.walk(parsed(root, at)))
        asks = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "pipeline.problems"
            and any(alias.name in Using for alias in node.names)
            for node in nodes
        )
        found |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in PARTS and asks}
    return found


def opened(root: Path, file: Path) -> set[Path]:
    """The modules that the seam's functions, if a stage file imports them, load by name."""
    seam = parsed(root, SEAM).body if (root / SEAM).is_file() else []
    names = {
        one.id: node.value.value
        for node in seam
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for one in node.targets
        if isinstance(one, ast.Name)
    }
    wanted = {
        alias.name
        for node in ast.walk(parsed(root, file))
        if isinstance(node, ast.ImportFrom) and node.module == "pipeline.problems"
        for alias in node.names
    }
    used = (node for node in seam if isinstance(node, ast.FunctionDef) and node.name in wanted)
    words = {one.id for node in used for one in ast.walk(node) if isinstance(one, ast.Name)}
    return {found for word in words & set(names) if (found := module_file(root, names[word])) is not None}


def reached(root: Path, problem: str, parts: Collection[str]) -> set[Path]:
    """The files that contain some parts of a problem, according to the table in the seam."""
    (table,) = (
        ast.literal_eval(node.value)
        for node in parsed(root, SEAM).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PROBLEMS" and node.value is not None
    )
    found = {part: module_file(root, table[problem][part].rpartition(".")[0]) for part in parts}
    assert None not in found.values(), f"{problem}: no file of {found}"
    return {file for file in found.values() if file is not None}


def closure(root: Path, file: Path, problems: Sequence[str] = (), left_out: Sequence[str] | None = None) -> set[Path]:
    """All code of this repository that a stage file runs for some problems, except what is left out."""
    return set(_closure(root, file, tuple(problems), tuple(LEFT_OUT if left_out is None else left_out)))


@functools.cache  # stages of a kind run the same code
def _closure(root: Path, file: Path, problems: tuple[str, ...], left_out: tuple[str, ...]) -> frozenset[Path]:
    found, to_read = set[Path](), [file, *opened(root, file)]
    parts = parts_used(root, file)
    if parts:
        to_read += [at for problem in problems for at in reached(root, problem, parts)]
    others = tuple(
        folder.relative_to(root).as_posix()
        for folder in (root / "pipeline" / "core" / "config").glob("*/")
        if folder.is_dir() and folder.name not in problems
    )
    while to_read:
        at = to_read.pop()
        if at not in found and at not in (SEAM, WORDS) and not covered(at, (*left_out, *others)):
            found.add(at)
            to_read += imported(root, at)
    return frozenset(at for at in found if has_code(root, at) and not covered(at, PASSED_THROUGH))
