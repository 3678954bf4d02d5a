"""The package from outside: dependencies, script, set-up, notebook, and its wheel in fresh environments."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import metadata, packages_distributions
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from builders import REPOSITORY
from packaging.specifiers import SpecifierSet

from pipeline.errors import EXTRAS, UserError, missing_packages_named

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
TRIAL = REPOSITORY / "pipeline" / "stages" / "trial"


def bare(requirement: str) -> str:
    """Return the name in a requirement, spelled as in metadata."""
    return re.split(r"[\[=<>~;]", requirement)[0].lower().replace("_", "-")


@cache
def brought() -> Mapping[str, list[str]]:
    return packages_distributions()  # reads every file of the environment, which takes a second


def distributions(package: str) -> set[str]:
    """Return the distributions that provide a package; mlflow is split into several."""
    return {bare(name) for name in brought()[package]} - {"mlflow-skinny", "mlflow-tracing"}


def run(*words: object, cwd: Path, **given: str) -> "subprocess.CompletedProcess[str]":
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    told = [str(word) for word in words]
    return subprocess.run(told, check=False, cwd=cwd, env=own | given, capture_output=True, text=True)


# Dependencies


def test_what_the_code_imports_is_a_dependency_or_of_the_extra_that_is_named() -> None:
    imported = {
        name.partition(".")[0]
        for folder in ("pipeline", "deeprm")
        for file in (REPOSITORY / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        for name in (
            [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    } - {"pipeline", "deeprm", "pydantic_core", *sys.stdlib_module_names}  # pydantic pins its core itself
    of_extras = {package for packages in EXTRAS.values() for package in packages}
    core = {bare(one) for one in PROJECT["dependencies"]}
    assert {package for package in imported - of_extras if not distributions(package) & core} == set()
    for extra, packages in EXTRAS.items():
        listed = {bare(one) for one in PROJECT["optional-dependencies"][extra]}
        assert {name for package in packages for name in distributions(package)} == listed, extra


def test_the_lock_pins_whatever_is_needed_and_names_no_place() -> None:
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()[1:]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!]+", line)] == []  # no source, no local version
    wanted = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    assert {bare(one) for one in wanted} - {bare(line) for line in lines} == {bare(PROJECT["name"])}
    assert "torch==2.13.0" in lines
    assert not (REPOSITORY / "uv.lock").exists()


def test_every_pinned_package_takes_the_oldest_python_that_is_supported() -> None:
    """Some distributions keep an early patch release: Debian 12 has Python 3.11.2."""
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    pins = re.findall(r"^([\w.-]+)==", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    needed = {name: metadata(name).get("Requires-Python") for name in pins}
    assert len(needed) > 100
    assert {name: pythons for name, pythons in needed.items() if pythons and oldest not in SpecifierSet(pythons)} == {}


def test_a_missing_package_is_one_line_that_names_its_extra() -> None:
    for name, wanted in (("torch.nn", "torch.nn: pip install 'deeprm-pipeline[learn]'"),
                         ("numpy", "numpy: pip install deeprm-pipeline")):  # fmt: skip
        with pytest.raises(UserError, match=re.escape(f"needs {wanted}; in a clone")), missing_packages_named():
            raise ModuleNotFoundError(name=name)
    with pytest.raises(ModuleNotFoundError), missing_packages_named():  # an error in our own code remains one
        raise ModuleNotFoundError(name="pipeline.gone")


# The console script

AS_INSTALLED = """
import sys
from importlib.metadata import EntryPoint
sys.argv[0] = "deeprm"
sys.exit(EntryPoint("deeprm", sys.argv.pop(1), "console_scripts").load()())
"""


def script(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run the console script's entry point from this repository."""
    found = (sys.executable, "-c", AS_INSTALLED, PROJECT["scripts"]["deeprm"], *words)
    return run(*found, cwd=cwd, PYTHONPATH=str(REPOSITORY))


def module(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return run(sys.executable, "-m", "pipeline", *words, cwd=cwd, PYTHONPATH=str(REPOSITORY))


@pytest.mark.parametrize(("words", "code"), [("--help", 0), ("nothing", 2)])
def test_the_console_script_is_the_module(tmp_path: Path, words: str, code: int) -> None:
    one, other = (ask(*words.split(), cwd=tmp_path) for ask in (script, module))
    assert (one.returncode, other.returncode) == (code, code)
    assert one.stderr == other.stderr
    # Shells complete only names of one word, and the help says so; its line breaks depend on the remaining width.
    texts = [
        re.sub(r"│ --(install|show)-completion .*?(?=│ -)", "", ask.stdout, flags=re.DOTALL) for ask in (one, other)
    ]
    texts = [" ".join(re.sub(r"[─│╭╮╰╯]", " ", text).split()) for text in texts]
    assert texts[0].replace("Usage: deeprm", "Usage: python -m pipeline") == texts[1]


def test_outside_of_a_repository_one_line_says_what_is_missing(tmp_path: Path) -> None:
    done = script("check", cwd=tmp_path)
    assert done.stderr.startswith("error: params.yaml: cannot be read (No such file or directory); run this at the ")
    assert (done.returncode, done.stderr.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])


# Set-up


def loaded() -> ModuleType:
    """The script that `make setup` runs."""
    spec = importlib.util.spec_from_file_location("install", REPOSITORY / ".ci" / "install.py")
    assert spec
    assert spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.chdir(REPOSITORY)
    return loaded()


CONF = """
[global]
find-links = /wheels /more
extra-index-url = file:///one/simple
    file:///two/simple
cert = /ca.crt
constraint = /caps.txt
timeout = 7
[install]
index-url = file:///three/simple
timeout = 8
"""


def test_uv_is_given_what_pip_is_configured_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: ModuleType
) -> None:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(CONF)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_TIMEOUT", "9")  # in pip, the environment takes precedence
    monkeypatch.setenv("UV_CONSTRAINT", "/own.txt")  # here, settings for uv itself take precedence
    (tmp_path / "uv").write_text(f'#!/bin/sh\nenv > {tmp_path}/given\necho "$@" > {tmp_path}/words\n')
    (tmp_path / "uv").chmod(0o755)
    assert install.by_uv(str(tmp_path / "uv"))
    given = dict(
        line.split("=", 1) for line in (tmp_path / "given").read_text().splitlines() if line[:2] in ("UV", "SS")
    )
    assert given == {
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX": "file:///one/simple file:///two/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "file:///three/simple",
        "SSL_CERT_FILE": "/ca.crt",
        "UV_CONSTRAINT": "/own.txt",
        "UV_HTTP_TIMEOUT": "9",
    }
    words = (tmp_path / "words").read_text().strip()
    pins = "--no-deps --requirement requirements.lock --editable ."
    assert words == f"pip install --quiet --python {sys.executable} {pins}"


def test_where_pip_names_no_place_uv_takes_pytorch_for_processors(install: ModuleType) -> None:
    assert install.for_uv({"timeout": "5"}) == ({"UV_HTTP_TIMEOUT": "5"}, ["--torch-backend", "cpu"])
    assert install.for_uv({"no-index": "True", "find-links": "/a"}) == ({"UV_FIND_LINKS": "/a"}, ["--no-index"])


@pytest.mark.parametrize("fails", ["nothing", "uv's installation", "uv", "INSTALLER=pip", "all"])
def test_without_uv_pip_installs_pytorch_first_and_then_the_same_pins(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    said: list[str] = []

    def stand_in(words: list[str], check: bool, **_: object) -> SimpleNamespace:
        line = " ".join(words).replace(sys.executable, "python")
        said.append(line)
        wrong = {"uv": "uv pip install", "uv's installation": "uv==", "all": "install"}.get(fails, "never")
        code = int(wrong in line)
        if check and code:
            raise subprocess.CalledProcessError(code, words)
        return SimpleNamespace(returncode=code, stdout="")

    monkeypatch.setattr(install.subprocess, "run", stand_in)
    monkeypatch.setattr(install.shutil, "which", lambda *_, **__: None)
    monkeypatch.setenv("INSTALLER", "pip" if fails == "INSTALLER=pip" else "")
    assert install.main() == int(fails == "all")
    by_pip = [line.partition("--quiet ")[2] for line in said if line.startswith("python")][-3:]
    pins = ["torch==2.13.0", "--no-deps --requirement requirements.lock", "--no-deps --editable ."]
    assert (by_pip == pins) == (fails not in ("nothing", "all"))
    assert any("uv pip install" in line for line in said) == (fails in ("nothing", "uv"))


def test_no_file_of_set_up_names_a_place_of_packages() -> None:
    files = [
        "Makefile",
        "requirements.lock",
        "pyproject.toml",
        ".ci/run",
        *(f".ci/{name}.py" for name in ("install", "fresh", "pictures")),
    ]
    files += [str(file.relative_to(REPOSITORY)) for file in (REPOSITORY / ".github").rglob("*.yml")]
    assert len(files) == 16
    for file in files:
        text = (REPOSITORY / file).read_text()
        found = re.findall(r"pypi|pythonhosted|pytorch\.org|/simple\b|-index-url[= ]|\bUV_\w+=", text)
        assert found == [], file


# Its wheel, in fresh environments


def interpreter(version: str) -> str | None:
    """Return a Python of some version that runs."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in filter(None, (shutil.which(f"python{version}"), *map(str, pyenv))):
        if run(found, "-c", "", cwd=REPOSITORY).returncode == 0:
            return found
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pipeline", "deeprm"):
        shutil.copytree(REPOSITORY / name, folder / "source" / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder / "source")
    done = uv("build", "--wheel", "--out-dir", folder, folder / "source")
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@cache
def places() -> tuple[dict[str, str], list[str]]:
    """Return where pip looks for packages, as uv's variables and options."""
    found: tuple[dict[str, str], list[str]] = loaded().places()
    return found


def uv(*words: object) -> "subprocess.CompletedProcess[str]":
    return run(Path(sys.executable).with_name("uv"), *words, cwd=REPOSITORY, **places()[0])


def fresh(version: str, folder: Path, *wanted: object) -> Path:
    """Make an environment, and return its console script."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    install = ("pip", "install", "--python", folder / "bin" / "python", *wanted)
    for done in (uv("venv", "--python", found, folder), uv(*install)):
        assert done.returncode == 0, done.stderr
    return folder / "bin" / "deeprm"


def lowest() -> list[str]:
    """Return each dependency that has a lower bound, pinned to it."""
    return [re.sub(r">=(.*)", r"==\1.*", one) for one in PROJECT["dependencies"] if ">=" in one]


EPISODE = """
import sys
import deeprm
env = deeprm.make("deeprm/Pool-v0")
loaded = {"torch", "mlflow", "dvc"} & set(sys.modules)
_, info = env.reset(seed=1)
total, ended = 0.0, False
while not ended:
    _, reward, ended, truncated, info = env.step(int(info["action_mask"].argmax()))
    total += reward
    ended |= truncated
print(loaded or "light", round(total, 3))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "also"), [("3.11", lowest()), ("3.11", []), ("3.12", []), ("3.13", [])],
    ids=["3.11 at the lowest bounds", "3.11", "3.12", "3.13"],
)  # fmt: skip
def test_the_wheel_plays_an_episode_in_a_fresh_environment(
    tmp_path: Path, wheel: Path, version: str, also: list[str]
) -> None:
    deeprm, here = fresh(version, tmp_path / "fresh", wheel, *also), tmp_path / "here"
    here.mkdir()
    assert run(deeprm, "--help", cwd=here).returncode == 0
    played = run(deeprm.with_name("python"), "-W", "error::UserWarning", "-c", EPISODE, cwd=here)
    assert played.returncode == 0, played.stderr
    assert played.stdout == "light -7.667\n"  # the same with every Python
    shutil.copy(TRIAL / "params.yaml", here)
    words = ["schedule", TRIAL / "jobs.csv", "--scenario", "trial", "--policy", "sjf", "--out", "plan.csv"]
    played = run(deeprm, *words, cwd=here, NUMBA_DISABLE_JIT="1")
    assert (played.returncode, played.stderr) == (0, "plan.csv: 60 jobs, mean slowdown 6.394 under sjf\n")
    assert len((here / "plan.csv").read_text().splitlines()) == 61


@pytest.mark.slow
def test_what_a_missing_extra_tells_to_do_is_enough(tmp_path: Path, wheel: Path) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    deeprm = fresh(version, tmp_path / "fresh", wheel)
    tried = run(deeprm, "try", cwd=tmp_path)
    assert (tried.returncode, tried.stderr.count("\n"), (tmp_path / "try.png").exists()) == (2, 1, False)
    told = re.match(r"error: needs (\w+): pip install '(\S+)'; in a clone 'make setup', then ", tried.stderr)
    assert told
    assert told.groups() == ("torch", "deeprm-pipeline[learn]")
    backend = places()[1]
    done = uv("pip", "install", "--python", tmp_path / "fresh" / "bin" / "python", *backend, told[2])
    assert done.returncode == 0, done.stderr
    tried = run(deeprm, "try", cwd=tmp_path)
    assert (tried.returncode, tried.stderr) == (0, "")
    page = (REPOSITORY / "docs/tutorials/first-run.ipynb").read_text()
    assert tried.stdout.splitlines()[0] in page
    assert (tmp_path / "try.png").stat().st_size > 10_000
