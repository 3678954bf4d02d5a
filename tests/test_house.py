"""Rules of the whole code: shared code knows no problem, class names are unique, tests are where their modules are.

import-linter (`lint-imports`) checks that problems do not import each other, and that imports point down.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin

import pytest
from builders import REPOSITORY
from live import LIVE, WHOLE
from order import LONG

from pipeline.core import config
from pipeline.core.config import Frozen
from pipeline.problems import PROBLEMS

PACKAGE = REPOSITORY / "pipeline"
SHARED = ("cli", "stages", "comparing", "report", "serving")  # they know the seam (pipeline.problems), but no problem
OF_THE_SEAM = ("pipeline.interactive.live.deciding", "pipeline.interactive.live.states", "pipeline.problems.parts")
# Tests of the whole: of processes, repositories and files that belong to no single module.
AT_THE_ROOT = {
    *(
        "bad_input",
        "benchmarks",
        "compiled",
        "containers",
        "documents",
        "dvc_names",
        "dvc_views",
        "dvc_yaml",
        "failures",
        "hooks",
        "house",
        "kills",
        "main",
    ),
    *(
        "large",
        "named_params",
        "operate",
        "packaging",
        "paper_scale",
        "pipeline",
        "progress",
        "recipe_objective",
        "recipes",
        "release",
        "remotes",
        "result_params",
        "signals",
        "tables",
        "words",
        "tutorials",
        "workflows",
    ),
}


@cache  # several rules read each file
def tree_of(file: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(file.read_text())


def trees(*packages: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield each source file of some packages, with its syntax tree."""
    for package in packages:
        for file in sorted((PACKAGE / package).rglob("*.py")):
            yield file.relative_to(REPOSITORY).as_posix(), tree_of(file)


def docstrings(tree: ast.Module) -> set[ast.AST]:
    """Return the constants that are docstrings."""
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def names_in(node: ast.expr) -> set[str]:
    """Return all names in an expression."""
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} | {
        name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)
    }


# Roll-outs


def loops_over_episodes(tree: ast.Module) -> list[int]:
    """Return the lines of loops that run as long as some rows await a decision."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While)]
    return [loop.lineno for loop in loops if re.search(r"len\(+rows", ast.unparse(loop.test))]


def test_one_module_plays_episodes_to_their_end() -> None:
    assert {file for file, tree in trees("") if loops_over_episodes(tree)} == {"pipeline/simulation/rollout.py"}


# Problems


def named(tree: ast.Module) -> Iterator[str]:
    """Yield everything in a file that refers to one problem or to a kind of config, or that uses the type Any."""
    said = docstrings(tree)
    for node in ast.walk(tree):
        if node not in said and (fault := fault_of(node)):
            yield fault


def fault_of(node: ast.AST) -> str:
    """Return what is wrong with a piece of code, or an empty string."""
    own = tuple(f"{word}_" for word in PROBLEMS)
    match node:
        case ast.ImportFrom(module=str(module)) if (
            module.startswith("pipeline.problems.") and module not in OF_THE_SEAM
        ):
            return f"line {node.lineno}: imports {module}"
        case ast.Constant(value=str(text)) if text in PROBLEMS or any(f"problems.{word}" in text for word in PROBLEMS):
            return f"line {node.lineno}: says '{text}'"
        case ast.Attribute(attr=name) if name.startswith(own):
            return f"line {node.lineno}: asks for {name}"
        case ast.Name(id="Any"):
            return f"line {node.lineno}: Any"
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]) if found := names_in(asked) & ROWS:
            return f"line {node.lineno}: asks whether something is {', '.join(sorted(found))}"
    return ""


def is_row(what: object) -> bool:
    """Is it a class of rows, or a union of such classes?"""
    if get_origin(what) in (Union, UnionType):
        return any(is_row(one) for one in get_args(what))
    return isinstance(what, type) and issubclass(what, Frozen)


MODULES = [module for name, module in sys.modules.items() if name.startswith(config.__name__)]
ROWS = {name for module in MODULES for name, value in vars(module).items() if is_row(value)}


@pytest.mark.parametrize("package", SHARED)
def test_what_all_problems_share_knows_none_of_them(package: str) -> None:
    found = {file: list(named(tree)) for file, tree in trees(package)}
    assert len(found) > 2
    assert {file: faults for file, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from pipeline.problems.pool.env.nouns import JobSet",
        "word = 'machines'",
        "module = 'pipeline.problems.groups.problem'",
        "from typing import Any\nrows: dict[str, Any] = {}",
        "found = isinstance(row, PoolScenario)",
        "rows = params.pool_scenarios",
        "found = isinstance(row, Reinforce | config.Dqn)",
    ],
)
def test_a_word_of_one_problem_is_found(line: str) -> None:
    assert list(named(ast.parse(f'"""Of pool."""\n{line}\n')))


def test_what_is_said_in_docstrings_is_free() -> None:
    text = '"""pool"""\nfrom pipeline.problems import problem\nfound = isinstance(row, dict)\n'
    assert list(named(ast.parse(text))) == []


# Names


def packages() -> list[str]:
    """Return the packages in which class names must be unique; each problem is one package."""
    nested = ("problems", "core", "interactive")
    tops = [*PACKAGE.iterdir(), *(path for name in nested for path in (PACKAGE / name).iterdir())]
    found = [path.relative_to(PACKAGE).as_posix() for path in tops if (path / "__init__.py").exists()]
    return sorted(name for name in found if name not in nested)


def classes_twice(*found: ast.Module) -> list[str]:
    """Return the names that several classes have."""
    names = Counter(node.name for tree in found for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in names.items() if count > 1)


@pytest.mark.parametrize("package", packages())
def test_no_two_classes_of_a_package_have_one_name(package: str) -> None:
    assert classes_twice(*(tree for _, tree in trees(package))) == []


def test_two_classes_of_one_name_are_found() -> None:
    assert classes_twice(ast.parse("class A: pass\nclass B: pass"), ast.parse("class A: pass")) == ["A"]


# Tests


def is_of_a_module(test: Path, root: Path) -> bool:
    """Does a test file have the name of a module or package at the mirrored place, possibly followed by a topic?"""
    words = test.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:k]) for k in range(1, len(words) + 1)]
    at = root / test.parent
    own = [test.parent.name] if test.parent != Path() else []  # a package's tests may be inside its folder
    return (
        any((at / f"{name}.py").exists() or (at / name / "__init__.py").exists() for name in names) or names[0] in own
    )


def test_tests_mirror_the_package() -> None:
    files = [path.relative_to(REPOSITORY / "tests") for path in (REPOSITORY / "tests").rglob("test_*.py")]
    assert len(files) > 100
    # the reference simulators, which only tests and benchmarks use; and the packages next to `pipeline`
    roots = {"oracles": REPOSITORY / "tests", "deeprm": REPOSITORY, "benchmarks": REPOSITORY}
    orphans = [file for file in files if len(file.parts) > 1]
    orphans = [file for file in orphans if not is_of_a_module(file, roots.get(file.parts[0], PACKAGE))]
    assert sorted(map(str, orphans)) == []


def test_files_that_begin_first_are_there() -> None:
    assert set(LONG) <= {path.stem for path in (REPOSITORY / "tests").rglob("test_*.py")}


def test_files_that_are_left_out_of_make_test_are_there() -> None:
    assert {path.stem for path in (REPOSITORY / "tests").rglob("test_*.py")} >= LIVE | WHOLE
    assert not LIVE & WHOLE


def test_at_the_root_are_tests_of_the_whole_only() -> None:
    found = {path.stem.removeprefix("test_") for path in (REPOSITORY / "tests").glob("test_*.py")}
    assert found == AT_THE_ROOT


def test_an_orphan_is_found(tmp_path: Path) -> None:
    (tmp_path / "learning" / "deep").mkdir(parents=True)
    (tmp_path / "learning" / "memory.py").touch()
    (tmp_path / "learning" / "deep" / "__init__.py").touch()
    mirrored = ["test_memory.py", "test_memory_kills.py", "test_deep.py"]
    assert all(is_of_a_module(Path("learning") / name, tmp_path) for name in mirrored)
    assert not is_of_a_module(Path("learning/test_memories.py"), tmp_path)
    assert not is_of_a_module(Path("storage/test_memory.py"), tmp_path)


def has_test(module: Path, tests: set[str]) -> bool:
    """Has a test file a module's name, or, for a package, that of its folder, among the words of its own?"""
    name = (module.parent.name if module.name == "__init__.py" else module.stem).strip("_")
    return any(f"_{name}_" in f"_{test}_" for test in tests)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a file imports, and the names from them, which may be modules too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{one.name}" for one in node.names))


def untested(package: Path, tests: set[str]) -> list[str]:
    """Return the modules for which neither they nor a module that imports them has a test file."""
    paths = {".".join(path.relative_to(package.parent).with_suffix("").parts): path for path in package.rglob("*.py")}
    tested = {name for name, path in paths.items() if has_test(path, tests)}
    covered = {one for name in tested for one in imported(tree_of(paths[name]))}
    modules = {name for name, path in paths.items() if path.name != "__init__.py"}
    return sorted(modules - tested - covered)


def test_every_module_or_one_that_imports_it_has_a_test_file() -> None:
    tests = {path.stem.removeprefix("test_") for path in (REPOSITORY / "tests").rglob("test_*.py")}
    assert [untested(REPOSITORY / package, tests) for package in ("pipeline", "deeprm")] == [[], []]


def test_a_module_without_a_test_file_is_found(tmp_path: Path) -> None:
    package = tmp_path / "pipeline"
    package.mkdir()
    for name, text in {"left": "", "inner": "", "outer": "from pipeline import inner"}.items():
        (package / f"{name}.py").write_text(text)
    assert untested(package, {"outer_rest"}) == ["pipeline.left"]
    assert untested(package, {"left", "inner"}) == ["pipeline.outer"]


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return all functions of a file by name, including methods."""
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def asserts(test: ast.FunctionDef, known: dict[str, ast.FunctionDef], seen: frozenset[str] = frozenset()) -> bool:
    """Can a test fail because of a result: by an assertion (its own or a helper's), or by an error that it expects?"""
    for node in ast.walk(test):
        match node:
            case ast.Assert():
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in (
                "raises",
                "fail",
            ) or name.startswith("assert_"):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in known and name not in seen:
                if asserts(known[name], known, seen | {name}):
                    return True
    return False


def without_assertion(text: str, helpers: dict[str, ast.FunctionDef]) -> list[str]:
    """Return the tests of a file that can only fail if something raises."""
    own = functions(ast.parse(text))
    return [name for name, one in own.items() if name.startswith("test_") and not asserts(one, helpers | own)]


def test_every_test_asserts_something() -> None:
    place = REPOSITORY / "tests"
    support = [functions(ast.parse(path.read_text())) for path in (place / "support").glob("*.py")]
    helpers = {name: one for found in support for name, one in found.items()}
    found = {
        str(path.relative_to(place)): without_assertion(path.read_text(), helpers) for path in place.rglob("test_*.py")
    }
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("check(1)", ["test_it"]),
        ("folder.run(1)", ["test_it"]),
        ("helped(1)", []),
        ("assert check(1)", []),
        ("np.testing.assert_allclose(1, 1)", []),
    ],
)
def test_a_test_without_an_assertion_is_found(body: str, found: list[str]) -> None:
    helpers = functions(ast.parse("def helped(one):\n    assert one"))
    assert without_assertion(f"def check(one):\n    return one\n\ndef test_it():\n    {body}\n", helpers) == found
