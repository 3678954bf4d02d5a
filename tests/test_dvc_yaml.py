"""dvc.yaml: a stage depends on the code it imports and the params it reads, or its result could be stale unseen.

Left out: the command line, tracking, progress and where compiled code is kept, which change no result, and the drawing
of figures and tables.
"""

import ast
import functools
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders import REPOSITORY
from dvc.repo import Repo
from ruamel.yaml import YAML

LEFT_OUT = (
    "pipeline/__init__.py",
    "pipeline/cli",
    "pipeline/tracking",
    "pipeline/progress.py",
    "pipeline/comparing/plots.py",
    "pipeline/comparing/words.py",
)
FILES = {
    "evaluate heuristics": "heuristics",
    "evaluate agent": "evaluate",
    "evaluate transfer": "transfer",
    "evaluate compare": "compare",
    "evaluate papers": "papers",
}
AGENT_STAGES = ("pretrain", "finetune", "evaluate")


class Stage(NamedTuple):
    """A stage as DVC resolves it."""

    name: str
    words: list[str]  # of the command, behind `python -m pipeline`
    deps: list[str]
    params: list[str]
    outs: list[str]
    uncached: list[str]  # of them, those that DVC's cache does not hold
    shown: list[str]  # of them, metrics and plots

    @property
    def kind(self) -> str:
        return self.name.partition("@")[0]

    @property
    def subject(self) -> str:
        """The scenario or agent it is about."""
        return self.name.partition("@")[2]

    @property
    def file(self) -> Path:
        """Where its code begins."""
        words = " ".join(self.words)
        name = next((name for start, name in FILES.items() if words.startswith(start)), self.words[0])
        return Path("pipeline/stages") / f"{name}.py"


def resolved(root: Path) -> dict[str, Stage]:
    """The stages of a repository, as DVC sees them."""
    with Repo(str(root)) as repo:
        return {stage.name: _stage(stage, root) for stage in repo.index.stages}


def _stage(stage: Any, root: Path) -> Stage:
    assert stage.cmd.startswith("python -m pipeline ")
    listed = [dep for dep in stage.deps if hasattr(dep, "params")]
    return Stage(
        name=stage.name,
        words=stage.cmd.split()[3:],
        deps=[_inside(dep, root) for dep in stage.deps if dep not in listed],
        params=[name for dep in listed for name in dep.params],
        outs=[_inside(out, root) for out in stage.outs],
        uncached=[_inside(out, root) for out in stage.outs if not out.use_cache],
        shown=[_inside(out, root) for out in stage.outs if out.metric or out.plot],
    )


def _inside(item: Any, root: Path) -> str:
    return Path(item.fs_path).relative_to(root).as_posix()


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    return resolved(REPOSITORY)


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    return loaded


# Code


def covered(file: Path, by: Sequence[str]) -> bool:
    return any(Path(place) == file or Path(place) in file.parents for place in by)


def module_file(root: Path, module: str) -> Path | None:
    """The file of a module of this repository."""
    path = Path(*module.split("."))
    found = (file for file in (path.with_suffix(".py"), path / "__init__.py") if (root / file).is_file())
    return next(found, None)


def run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All that may run; not what stands there for the type checker only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        yield node
        yield from run_nodes(node)


@functools.cache  # stages share most of their code
def imported(root: Path, file: Path) -> set[Path]:
    """The files of this repository that importing a file, and running its functions, imports."""
    names: set[str] = set()
    for node in run_nodes(ast.parse((root / file).read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    parents = {".".join(name.split(".")[:k]) for name in names for k in range(1, name.count(".") + 2)}
    return {found for name in parents if (found := module_file(root, name)) is not None}


def has_code(root: Path, file: Path) -> bool:
    """Is there more than a docstring?"""
    return any(not isinstance(node, ast.Expr) for node in ast.parse((root / file).read_text()).body)


def closure(root: Path, file: Path) -> set[Path]:
    """All the code of this repository that a stage file runs, without what is left out."""
    found, to_read = set[Path](), [file]
    while to_read:
        at = to_read.pop()
        if at not in found and not covered(at, LEFT_OUT):
            found.add(at)
            to_read += imported(root, at)
    return {at for at in found if has_code(root, at)}


def unseen(root: Path, stage: Stage) -> list[str]:
    """The code of a stage that could change without DVC noticing."""
    return sorted(file.as_posix() for file in closure(root, stage.file) if not covered(file, stage.deps))


def test_every_stage_depends_on_all_the_code_it_imports(stages: dict[str, Stage]) -> None:
    assert {name: missing for name, stage in stages.items() if (missing := unseen(REPOSITORY, stage))} == {}


def test_every_stage_runs_a_file_of_its_own_kind(stages: dict[str, Stage]) -> None:
    for stage in stages.values():
        assert (REPOSITORY / stage.file).is_file()
        assert stage.file.stem == stage.kind


def test_no_stage_depends_on_what_is_not_there(stages: dict[str, Stage]) -> None:
    code = {dep for stage in stages.values() for dep in stage.deps if dep.startswith("pipeline")}
    assert len(code) > 10
    assert [dep for dep in sorted(code) if not (REPOSITORY / dep).exists()] == []


def test_the_closure_of_a_stage_reaches_what_it_runs() -> None:
    found = {file.as_posix() for file in closure(REPOSITORY, Path("pipeline/stages/finetune.py"))}
    assert found >= {
        "pipeline/stages/finetune.py",
        "pipeline/stages/reading.py",
        "pipeline/problems/pool/training/reinforce.py",
        "pipeline/problems/pool/simulator/compiled/dynamics.py",
        "pipeline/problems/pool/networks/networks.py",
        "pipeline/logs/registry.py",
        "pipeline/config/params.py",
        "pipeline/errors.py",
    }
    assert not [file for file in found if covered(Path(file), LEFT_OUT)]


def test_code_that_dvc_ignores_is_run_by_no_stage(stages: dict[str, Stage]) -> None:
    lines = (REPOSITORY / ".dvcignore").read_text().splitlines()
    ignored = [line.lstrip("/") for line in lines if line.startswith("/")]
    assert [name for name in ignored if not (REPOSITORY / name).exists()] == []
    run = set().union(*(closure(REPOSITORY, stage.file) for stage in stages.values()))
    assert sorted(file.as_posix() for file in run if covered(file, ignored)) == []


SYNTHETIC = {
    "pipeline/__init__.py": '"""Nothing to run."""\n',
    "pipeline/stages/__init__.py": "",
    "pipeline/stages/generate.py": "from pipeline import storage\n\ndef run():\n    from pipeline.late import deep\n",
    "pipeline/storage.py": "import pipeline.schemas\nfrom pipeline.tracking import stage\n",
    "pipeline/schemas.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pipeline.typed\n",
    "pipeline/late/__init__.py": "import numpy\n",
    "pipeline/late/deep.py": "x = 1\n",
    "pipeline/tracking.py": "from pipeline import left_out\n",
    "pipeline/left_out.py": "x = 1\n",
    "pipeline/typed.py": "x = 1\n",
}


@pytest.mark.parametrize(
    ("deps", "missing"),
    [
        (["pipeline/stages/generate.py", "pipeline/storage.py", "pipeline/schemas.py", "pipeline/late"], []),
        (["pipeline"], []),
        (["pipeline/stages", "pipeline/storage.py", "pipeline/late"], ["pipeline/schemas.py"]),
        (
            ["pipeline/stages/generate.py", "pipeline/storage.py", "pipeline/schemas.py"],
            ["pipeline/late/__init__.py", "pipeline/late/deep.py"],
        ),
        (["pipeline/storage", "pipeline/schemas.py", "pipeline/late", "pipeline/stages"], ["pipeline/storage.py"]),
    ],
)
def test_code_that_no_dependency_covers_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deps: list[str], missing: list[str]
) -> None:
    monkeypatch.setitem(globals(), "LEFT_OUT", (*LEFT_OUT, "pipeline/tracking.py"))
    for name, text in SYNTHETIC.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stage = Stage("generate@online", ["generate", "online"], deps, [], [], [], [])
    assert unseen(tmp_path, stage) == missing


# Params


def test_every_stage_of_a_scenario_lists_its_rows(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    for name in rows["scenarios"]:
        wanted = {"seed", "workload", f"scenarios.{name}"}
        assert set(stages[f"generate@{name}"].params) >= wanted | {"demands"}
        assert set(stages[f"heuristics@{name}"].params) >= wanted | {"heuristics"}


def test_every_stage_of_an_agent_lists_its_rows(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    for name, row in rows["agents"].items():
        mine = f"agents.{name}"
        learned = {"seed", "threads", "device", "workload", f"scenarios.{row['scenario']}", f"{mine}.scenario"}
        learned |= {f"recipes.{row['finetune']['recipe']}"}
        parts = {part: {"demands", f"{mine}.objective", f"{mine}.{part}"} for part in ("pretrain", "finetune")}
        parts["pretrain"] |= {f"{mine}.network"}
        parts["finetune"] |= {f"{mine}.network", f"{mine}.pretrain"}  # a controller's replay memory is filled again
        parts["evaluate"] = (parts["finetune"] | parts["pretrain"]) - {"demands"}
        for kind in AGENT_STAGES:
            assert set(stages[f"{kind}@{name}"].params) >= learned | parts.get(kind, set())


def test_no_stage_of_an_agent_lists_the_rows_of_another(stages: dict[str, Stage]) -> None:
    for stage in (stage for stage in stages.values() if stage.kind in AGENT_STAGES):
        assert {name.split(".")[1] for name in stage.params if name.startswith("agents.")} == {stage.subject}
        assert not {"agents", "scenarios", "recipes"} & set(stage.params)


def test_every_transfer_lists_its_rows_those_of_its_agent_and_of_the_other_scenario(
    stages: dict[str, Stage], rows: dict[str, Any]
) -> None:
    assert rows["transfers"]
    for name, row in rows["transfers"].items():
        agent, stage = row["agent"], stages[f"transfer@{name}"]
        shared = {"seed", "threads", "device", "workload", "recipes"}
        parts = {f"agents.{agent}.{part}" for part in ("scenario", "objective", "network", "pretrain", "finetune")}
        assert set(stage.params) == shared | parts | {f"transfers.{name}", f"scenarios.{row['scenario']}"}
        models = {f"models/{agent}/{which}" for which in ("pretrained", "policy")}
        assert {f"data/jobsets/{row['scenario']}"} | models <= set(stage.deps)
        assert stage.words == ["evaluate", "transfer", name]
        assert stage.outs == [f"reports/tables/transfers/{name}"]


def test_what_compares_waits_for_all_that_is_scored(stages: dict[str, Stage]) -> None:
    scored = {out for stage in stages.values() for out in stage.outs if out.startswith("reports/tables/")}
    assert {Path(out).parent.name for out in scored} == {"heuristics", "agents", "transfers", "hindsight"}
    for name in ("compare", "papers"):
        assert [out for out in scored if not covered(Path(out), stages[name].deps)] == []


def test_the_comparison_lists_what_it_compares(stages: dict[str, Stage]) -> None:
    compared = {"seed", "evaluation", "scenarios", "agents", "transfers"}
    assert set(stages["compare"].params) >= compared
    assert set(stages["papers"].params) >= compared | {"workload"}


def leaves(values: Any, place: str = "") -> Iterator[str]:
    if not isinstance(values, dict):
        yield place
        return
    for key, value in values.items():
        yield from leaves(value, f"{place}.{key}" if place else str(key))


def test_no_parameter_can_change_unseen(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    listed = {name for stage in stages.values() if stage.kind not in ("compare", "papers") for name in stage.params}
    listed |= {"evaluation"} & set(stages["compare"].params)  # the only rows that are its own
    used = {row["finetune"]["recipe"] for row in rows["agents"].values()}
    spare = tuple(f"recipes.{name}." for name in rows["recipes"] if name not in used)

    def seen(leaf: str) -> bool:
        return leaf.startswith(spare) or any(leaf == name or leaf.startswith(f"{name}.") for name in listed)

    assert [leaf for leaf in leaves(rows) if not seen(leaf)] == []
    assert not seen("agents.deeprm9.objective")


# Names and outputs


def test_agents_and_scenarios_have_names_that_dvc_can_set(rows: dict[str, Any]) -> None:
    names = [name for section in ("agents", "scenarios", "recipes", "demands", "transfers") for name in rows[section]]
    assert [name for name in names if not re.fullmatch(r"[a-z0-9_]+", name)] == []


def test_every_agent_and_scenario_has_its_stages(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    wanted = {f"{kind}@{name}" for kind in AGENT_STAGES for name in rows["agents"]}
    wanted |= {f"{kind}@{name}" for kind in ("generate", "heuristics") for name in rows["scenarios"]}
    wanted |= {f"transfer@{name}" for name in rows["transfers"]}
    wanted |= {f"hindsight@{name}" for name in rows["hindsight"]["scenarios"]}
    assert set(stages) == wanted | {"log", "compare", "papers"}


def test_outputs_lie_in_data_models_and_reports(stages: dict[str, Stage]) -> None:
    assert {out.split("/")[0] for stage in stages.values() for out in stage.outs} == {"data", "models", "reports"}


def test_every_uncached_output_is_a_metric_or_a_plot(stages: dict[str, Stage]) -> None:
    # DVC's run cache keeps no stage with any other one; logs, which must not be copied, are the exception.
    logs = {"data/log", "data/logs"}
    assert {out for stage in stages.values() for out in stage.uncached if out not in stage.shown} == logs


def test_a_new_row_has_its_stages_without_an_edit_of_dvc_yaml(tmp_path: Path, rows: dict[str, Any]) -> None:
    shutil.copy(REPOSITORY / "dvc.yaml", tmp_path)
    agents = {**rows["agents"], "mine_2": rows["agents"]["deeprm"]}
    with (tmp_path / "params.yaml").open("w") as stream:
        YAML().dump({**rows, "agents": agents}, stream)
    with Repo.init(str(tmp_path), no_scm=True):
        pass
    found = resolved(tmp_path)
    assert {name for name, stage in found.items() if stage.subject == "mine_2"} == {
        "pretrain@mine_2",
        "finetune@mine_2",
        "evaluate@mine_2",
    }
    assert found["finetune@mine_2"].words == ["finetune", "mine_2"]
    assert "agents.mine_2.finetune" in found["finetune@mine_2"].params


def test_without_a_transfer_there_is_no_stage_of_one(tmp_path: Path, rows: dict[str, Any]) -> None:
    shutil.copy(REPOSITORY / "dvc.yaml", tmp_path)
    with (tmp_path / "params.yaml").open("w") as stream:
        YAML().dump({**rows, "transfers": {}}, stream)
    with Repo.init(str(tmp_path), no_scm=True):
        pass
    kinds = {stage.kind for stage in resolved(tmp_path).values()}
    assert {"evaluate", "compare"} <= kinds
    assert "transfer" not in kinds
