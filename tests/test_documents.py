"""Documents that people are pointed to: they are short, their links work, and the site is built from them."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from inspect import isclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import loaded, needs_chromium
from builders import REPOSITORY
from published import OWN, is_published
from ruamel.yaml import YAML
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

import deeprm
from deeprm.env import Settings
from pipeline.cli import app, main
from pipeline.core.config import Counts, PoolScenario, load_params
from pipeline.core.types import Observation
from pipeline.problems import problem_of
from pipeline.stages import confirm
from pipeline.tracking import changes

Run = Callable[[str], str]
README = (REPOSITORY / "README.md").read_text()
PAGES = [*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "docs").rglob("*.ipynb")]
DOCUMENTS = [*REPOSITORY.glob("*.md"), *PAGES]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MODULE = re.compile(r"`([a-z0-9_/]+\.py)`")
MENTION = re.compile(r"(?<![\w/.@-])((?:[\w-]+/)+[\w-]+\.py)\b")  # a module with its folder
SAID_IN = ("*.md", "dvc.yaml", "params.yaml", "champions.yaml", "pyproject.toml", "pipeline/**/*.py", "docs/**/*.md")
MADE = {REPOSITORY / "docs" / "reference" / name for name in ("commands.md", "params.md")}  # pages only of the site
ROOMS = ("pipeline", "tests", "benchmarks", "docs", ".ci")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_leads_to_a_file_of_the_project(path: Path) -> None:
    links = [link for link in LINK.findall(path.read_text()) if not link.startswith(("http:", "https:"))]
    targets = [Path(os.path.normpath(path.parent / link)) for link in links]
    assert [target for target in targets if not target.exists() and target not in MADE] == []


def test_the_architecture_is_read_in_a_sitting() -> None:
    assert len((REPOSITORY / "ARCHITECTURE.md").read_text().splitlines()) <= 80


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120
    prose = re.sub(r"```.*?```|<!-- table.*?end of table -->", "", README, flags=re.DOTALL)
    assert len(prose.split()) <= 600


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built as by `make docs`: strictly, so that a broken link or reference fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_has_every_document_and_every_made_page(site: Path) -> None:
    documents = (path.relative_to(REPOSITORY / "docs").with_suffix(".html") for path in PAGES)
    assert [path for path in documents if not (site / path).exists()] == []
    commands, params = ((site / "reference" / f"{name}.html").read_text() for name in ("commands", "params"))
    assert "python -m pipeline schedule jobs.csv --scenario online" in commands
    assert "<code>--policy</code>" in commands
    assert "Standard deviation of the first candidates' weights" in params
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


def test_every_public_name_of_the_library_is_in_the_api(site: Path) -> None:
    pages = "".join(path.read_text() for path in (site / "reference").glob("*.html"))
    modules = [import_module(f"deeprm.{name}") for name in ("env", "vector", "wrappers", "sb3")]
    defined = {
        f"{module.__name__}.{name}" for module in modules for name, member in vars(module).items()
        if isclass(member) and member.__module__ == module.__name__
    }  # fmt: skip
    named = defined | {f"deeprm.{name}" for name in deeprm.__all__} | {"deeprm.env.settings"}
    fields = {f"pipeline.core.types.Observation.{name}" for name in Observation._fields}
    fields |= {f"deeprm.env.Settings.{name}" for name in Settings.__annotations__}
    assert {"deeprm.make", "deeprm.env.SchedulingEnv", "deeprm.sb3.VecEnv"} <= named
    headings = " ".join(re.findall(r"<h2 [^>]*doc-heading[^>]*>", pages))
    assert sorted(name for name in named if f'id="{name}"' not in headings) == []
    assert sorted(name for name in fields if f'title="{name}"' not in pages) == []


def test_search_finds_every_page(site: Path) -> None:
    text = (site / "search" / "search_index.js").read_text()
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    found = {entry["location"].partition("#")[0] for entry in index["docs"] if entry["text"]}
    pages = {str(path.relative_to(REPOSITORY / "docs").with_suffix(".html")) for path in PAGES}
    assert sorted(pages - found) == []
    assert any(entry["title"] == "schedule" for entry in index["docs"])  # a command


FRAME = '<iframe src="{}" style="width:{}px;height:900px"></iframe>'
WIDER = """<script>onload = () => {
  const wide = [...document.querySelectorAll("iframe")].filter(frame =>
    frame.contentDocument.documentElement.scrollWidth > frame.contentDocument.documentElement.clientWidth);
  const found = {pages: frames.length, wide: wide.map(frame => frame.getAttribute("src"))};
  document.body.textContent = JSON.stringify(found);
}</script>"""


@pytest.mark.live
@needs_chromium
@pytest.mark.parametrize("width", [400, 1300])
def test_no_page_of_the_site_scrolls_sideways(site: Path, tmp_path: Path, width: int) -> None:
    pages = [path.as_uri() for path in site.rglob("*.html")]
    (tmp_path / "phone.html").write_text("".join(FRAME.format(page, width) for page in pages) + WIDER)
    found = re.search(r"<body>(.*?)</body>", loaded(tmp_path / "phone.html", tmp_path / "profile"))
    assert found is not None
    assert json.loads(found[1]) == {"pages": len(pages), "wide": []}


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs" / "results").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_results_begins_with_its_findings_in_three_sentences(page: Path) -> None:
    findings = page.read_text().split("\n\n")[1]
    assert 2 <= len(re.split(r"[.!?]\**\s+(?=[A-Z*`])", findings)) <= 3


def test_a_decision_is_short_and_has_its_number() -> None:
    for path in (REPOSITORY / "docs" / "decisions").iterdir():
        lines = path.read_text().splitlines()
        assert len(lines) <= 25, path
        assert lines[0].startswith(f"# {int(path.name[:4])}. "), path


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_module_that_is_named_is_one_of_the_project(path: Path) -> None:
    modules = {found.name for room in ROOMS for found in (REPOSITORY / room).rglob("*.py")}
    modules |= {"mine.py", "shortest.py"}  # files of readers
    named = {name.rpartition("/")[2] for name in MODULE.findall(path.read_text())}
    assert sorted(named - modules) == []


# Numbers.
# If a document lists a command with a number, the command prints that number.
#
# Learned policies need the results of `make repro`; without these, the tests are skipped. Results of hours of
# computing (docs/results/*.md except default.md) are not computed here: their pages name the command and the data, and
# tests/test_tables.py compares each page with its data.

DOCS = REPOSITORY / "docs"
ROW = re.compile(r"\| `(--scenario (\w+) .*?)` \| [^|]* \| [^|]* \| slowdown, (\d+) %: (.*?) \|")
ROWS = [
    (int(load), listed, name, words)
    for words, name, load, listed in ROW.findall((DOCS / "results" / "situations.md").read_text())
]
TABLED = re.compile(r"mean slowdown [\d.]+ \(([\d.]+) as tables of results have it, over jobsets\)")


@cache  # of each row, for its own policy and for SJF
def confirming(scenario: str, load: int) -> str:
    """Return a job table with the jobsets that `confirm` draws for one load."""
    params = load_params(REPOSITORY / "params.yaml")
    row = params.pool_scenario(scenario)
    few = row.model_copy(update={"loads": (load,), "jobsets": Counts(train=1, validation=1, test=row.jobsets.test)})
    params = params.model_copy(update={"seed": confirm.SEED, "scenarios": {scenario: few}})
    drawn = problem_of(params, scenario).draw(params, scenario, lambda done, note="": None).splits["test"][load]
    frames = [
        pd.DataFrame({"arrival": one.arrival, "duration": one.duration})
        .join(pd.DataFrame(one.demand, columns=list(row.resources)))
        .assign(jobset=k, job=np.arange(len(one.arrival)))
        for k, one in enumerate(drawn)
    ]  # fmt: skip
    return str(pd.concat(frames).to_csv(index=False))


def run(words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository."""
    command = [sys.executable, "-m", "pipeline", *words.split()]
    return subprocess.run(command, check=False, cwd=REPOSITORY, env=os.environ | more, capture_output=True, text=True)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command of the repository within this process; return its standard error."""
    monkeypatch.chdir(REPOSITORY)

    def run_here(words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["pipeline", *words.split()])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr().err
        assert code == 0, said
        return said

    return run_here


def scheduled(load: int, scenario: str, words: str, tmp_path: Path, here: Run) -> str:
    """Return the mean over jobsets that a listed command for users' jobs prints for the jobsets of `confirm`."""
    (tmp_path / "jobs.csv").write_text(confirming(scenario, load))
    said = here(f"schedule {tmp_path / 'jobs.csv'} --out {tmp_path / 'plan.csv'} {words}")
    found = TABLED.search(said)
    assert found, said
    return found[1]


def test_a_command_is_listed_with_every_number_of_confirming_jobsets() -> None:
    params = load_params(REPOSITORY / "params.yaml")
    assert {name for _, _, name, _ in ROWS} == {
        name
        for name, row in params.scenarios_of(PoolScenario).items()
        if len(row.loads) > 3 and row.known_load(row.loads[0]) is not None
    }
    for load, listed, scenario, words in ROWS:
        ends = params.pool_scenario(scenario).arrivals_end
        assert load in params.pool_scenario(scenario).loads
        assert f"--scenario {scenario} --policy " in words
        assert words.endswith(f" --arrivals-end {ends}") == (ends is not None)
        assert re.search(r"--policy (?:models/)?(\w+)", words)[1] == listed.split()[0]  # type: ignore[index]


@cache
def kept_costs() -> pd.Series:
    """Return the costs of the default run's policies on the jobsets of `confirm`."""
    return pd.read_csv(DOCS / "results/default/jobsets.csv.gz").set_index(["policy", "scenario", "load"])["cost"]


@pytest.mark.parametrize(("load", "scenario"), [row[:1] + row[2:3] for row in ROWS])
def test_the_listed_command_gives_the_kept_mean_of_a_rule_that_nothing_tunes(
    load: int, scenario: str, tmp_path: Path, here: Run
) -> None:
    mean = kept_costs().loc["sjf", scenario, load].mean()
    words = next(row[3] for row in ROWS if row[:1] + row[2:3] == (load, scenario))
    words = re.sub(r"--policy \S+", "--policy sjf", words)
    assert scheduled(load, scenario, words, tmp_path, here) == f"{mean:.4g}"


@pytest.mark.parametrize(("load", "listed", "scenario", "words"), ROWS, ids=lambda value: str(value)[:20])
def test_the_listed_command_gives_the_number_in_its_row(
    load: int, listed: str, scenario: str, words: str, tmp_path: Path, here: Run
) -> None:
    tuned, models = REPOSITORY / "reports/tables/heuristics" / scenario, REPOSITORY / "models"
    policy = re.search(r"--policy (\S+)", words)[1]  # type: ignore[index]
    if not (models / Path(policy).name if policy.startswith("models/") else tuned).exists():
        pytest.skip("needs the results of 'make repro'")
    place = f"{policy}/policy" if policy.startswith("models/") else f"reports/tables/heuristics/{scenario}"
    if not is_published(place, json.loads((DOCS / "results/default/models.json").read_text())[place]):
        pytest.skip(OWN)
    number = listed.split(",", maxsplit=1)[0].split()[1]
    digits = len(number.partition(".")[2])
    printed = float(scheduled(load, scenario, words, tmp_path, here))  # with four digits; the page's number has fewer
    assert printed == pytest.approx(float(number), abs=0.5 * 10**-digits + 0.5 * 10**-3)


def test_how_to_schedule_prints_its_table(tmp_path: Path) -> None:
    page = (DOCS / "how-to/schedule-jobs.md").read_text()
    table = [line.strip() for line in page.splitlines() if re.fullmatch(r"    (policy +mean|\S+ +)[\w. ]+", line)]
    command = re.search(
        r"python -m pipeline (schedule pipeline/\S+ --scenario online) --out plan\.csv \\\n *(.*)", page
    )
    assert command
    done = run(f"{command[1]} {command[2]} --out {tmp_path / 'plan.csv'}", NUMBA_DISABLE_JIT="1")
    printed = [line.strip() for line in done.stdout.splitlines()]
    assert len(printed) == 4
    assert [line for line in table if line in printed] == printed


def test_the_readme_s_program_prints_the_rows_that_follow_it(tmp_path: Path) -> None:
    program, rows = re.findall(r"```(?:python|text)\n(.*?)```", README, flags=re.DOTALL)[:2]
    (tmp_path / "shortest.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "shortest.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line in rows.splitlines()] == rows.splitlines()


def test_the_readme_s_gain_of_a_site_is_that_in_the_printed_line() -> None:
    """A test of the advice page derives that line."""
    printed = re.search(
        r"mean wait -([\d.]+) % \(-([\d.]+) to -([\d.]+)\).*?longest wait \+([\d.]+) %", README, re.DOTALL
    )
    assert printed
    wait, most, least, longest = (round(float(number)) for number in printed.groups())
    said = " ".join(README.split())
    assert f"falls by {wait} % ({least} to {most}); the longest wait grows by {longest} %" in said


def test_the_readmes_experiment_changes_an_existing_parameter_and_prints_its_line() -> None:
    """The data are results of `deeprm` after this command, and those after `make repro`."""
    key, value = re.search(r"exp run -S (\S+)=(\d+)", README).groups()  # type: ignore[union-attr]
    row = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    for name in key.split("."):
        row = row[name]
    assert isinstance(row, int)
    assert row != int(value)
    was = pd.read_csv(DOCS / "results/default/tested/online.csv.gz").query("policy == 'deeprm'")
    now = pd.read_csv(DOCS / "results/default/fifty_updates.csv.gz")
    params = load_params(REPOSITORY / "params.yaml")
    means = (float(one.groupby("load")["mean_slowdown"].mean().mean()) for one in (was, now))
    printed = changes.line("deeprm", *means, changes.gap("deeprm", was, now, params.evaluation, params.seed))
    assert f"\n{printed}\n" in README


def parsed(words: str) -> None:
    """Parse a command of ours, and read no file.

    Raises:
        TyperException: there is no such command or option.
    """
    command, context, rest = get_command(app), Context(get_command(app), info_name="pipeline"), words.split()
    while isinstance(command, TyperGroup):
        command = command.commands[rest[0]]
        context, rest = Context(command, parent=context), rest[1:]
    command.parse_args(context, rest)


def test_every_command_of_the_readme_exists() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    lines = re.findall(r"^    (.*?)(?: +#.*)?$", prose, re.MULTILINE)
    spans = [words for words in re.findall(r"`([^`]+)`", prose) if words.startswith(("make ", "pip ", "python -m "))]
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    seen = set()
    for words in [*lines, *spans]:
        program, *rest = words.split()
        seen.add(program)
        match program:
            case "make":
                assert rest[0] in targets
            case "python":
                parsed(words.removeprefix("python -m pipeline "))
            case "dvc":
                assert rest[0] in ("repro", "exp")  # tests of the advice and of the changed parameter
            case _:
                assert words == "pip install ."  # its wheel is tested
    assert seen == {"make", "python", "dvc", "pip"}


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
    """A module may be named relative to any folder above it."""
    folders = ("pipeline", "docs", "tests", "benchmarks", "examples")
    there = {f"/{path.relative_to(REPOSITORY)}" for folder in folders for path in (REPOSITORY / folder).rglob("*.py")}
    files = {path for pattern in SAID_IN for path in REPOSITORY.glob(pattern) if path.name != "CHANGELOG.md"}
    said = {
        (str(path.relative_to(REPOSITORY)), name.removeprefix("REPOSITORY/"))
        for path in files
        for name in MENTION.findall(path.read_text())
    }
    assert len(said) > 30
    said = {one for one in said if one[1] not in ("path/to/file.py", "a/b.py")}  # modules of users
    assert sorted(one for one in said if not any(place.endswith(f"/{one[1]}") for place in there)) == []
