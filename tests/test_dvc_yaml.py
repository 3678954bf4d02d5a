"""dvc.yaml: a stage depends on the code that it imports and the params that it reads; otherwise results could be stale.

`stage_code` defines which code a stage runs, and what is left out.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import stage_code
from builders import REPOSITORY
from dvc.repo import Repo
from ruamel.yaml import YAML
from stage_code import LEFT_OUT, closure, covered

from pipeline.core.config import GroupsCard, MachinesCard, PoolCard
from pipeline.core.storage.jobsets import COMPARED, SECTIONS

FILES = {
    "evaluate heuristics": "heuristics",
    "evaluate agent": "evaluate",
    "evaluate transfer": "transfer",
    "evaluate plan": "plan",
    "evaluate policy": "policy",
    "evaluate passed": "passed",
    "evaluate compare": "compare",
    "evaluate papers": "papers",
}
OF_PAGES = ("pipeline/report", "pipeline/comparing")  # an advice's page is not an output of its stage
AGENT_STAGES = ("pretrain", "finetune", "evaluate")


class Stage(NamedTuple):
    """A stage as DVC resolves it."""

    name: str
    words: list[str]  # of the command, after `python -m pipeline`
    deps: list[str]
    params: list[str]
    outs: list[str]
    uncached: list[str]  # those outputs that DVC's cache does not hold
    shown: list[str]  # those outputs that are metrics or plots

    @property
    def kind(self) -> str:
        return self.name.partition("@")[0]

    @property
    def subject(self) -> str:
        """The scenario, agent or other row of this stage."""
        return self.name.partition("@")[2]

    @property
    def file(self) -> Path:
        """The file in which its code begins."""
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
        words=[stage.name if word == '"$DVC_STAGE"' else word for word in stage.cmd.split()[3:]],
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


class Every(NamedTuple):
    """A repository with rows of every kind."""

    stages: dict[str, Stage]
    rows: dict[str, Any]


def _laid_out(root: Path, rows: dict[str, Any]) -> dict[str, Any]:
    """Lay out a repository with a row of every kind, and the code of many machines; return its rows."""
    plan = {"candidates": 4, "futures": 8, "decisions": 100, "sure": 1}
    plans = {f"plan_{problem}": {"problem": problem, **plan, **row} for problem, row in PLANS.items()}
    policies = {f"own_{problem}": {"problem": problem, **row} for problem, row in POLICIES.items()}
    rows = {**rows, "plans": plans, "policies": policies, "sites": {"mine": {"today": "fcfs"}}}
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(REPOSITORY / name, root)
    with (root / "params.yaml").open("w") as stream:
        YAML().dump(rows, stream)
    shutil.copytree(REPOSITORY / "pipeline/problems/machines", root / "pipeline/problems/machines")
    with Repo.init(str(root), no_scm=True):
        pass
    return rows


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory, rows: dict[str, Any]) -> Every:
    root = tmp_path_factory.mktemp("every")
    found = _laid_out(root, rows)
    return Every(resolved(root), found)


PLANS: dict[str, dict[str, Any]] = {
    "pool": {"scenario": "online", "base": "deeprm3", "ahead": 100, "left_job": 0, "left_work": 0},
    "machines": {"scenario": "machines", "base": "deepk8s_ppo", "jobs": 10},
}
POLICIES = {
    name: {"scenario": scenario}
    for name, scenario in (("pool", "online"), ("machines", "machines"), ("groups", "shares"))
}

# Code


def problems_of(stage: Stage, rows: dict[str, Any]) -> list[str]:
    """The problems whose parts a stage asks for: that of its row, or all that exist."""
    sections = {
        **dict.fromkeys(AGENT_STAGES, "agents"),
        **dict.fromkeys(("generate", "heuristics", "hindsight"), "scenarios"),
        **{"transfer": "transfers", "plan": "plans", "policy": "policies", "passed": "policies"},
    }
    if stage.kind == "advise":
        return ["machines"]
    if stage.kind not in sections:
        return sorted({row["problem"] for row in rows["scenarios"].values()})
    row = rows[sections[stage.kind]][stage.subject]
    return [rows["scenarios"][row["scenario"]]["problem"] if stage.kind == "transfer" else row["problem"]]


def unseen(root: Path, stage: Stage, problems: list[str]) -> list[str]:
    """The code of a stage that could change without DVC noticing it."""
    return sorted(file.as_posix() for file in closure(root, stage.file, problems) if not covered(file, stage.deps))


def test_every_kind_of_row_has_a_stage_below(every: Every) -> None:
    kinds = set(YAML(typ="safe").load(REPOSITORY / "dvc.yaml")["stages"])
    assert {stage.kind for stage in every.stages.values()} == kinds
    plans = {stage.name: problems_of(stage, every.rows) for stage in every.stages.values() if stage.kind == "plan"}
    assert plans == {"plan@plan_pool": ["pool"], "plan@plan_machines": ["machines"]}


def test_every_stage_depends_on_all_the_code_it_imports(every: Every) -> None:
    found = {name: unseen(REPOSITORY, stage, problems_of(stage, every.rows)) for name, stage in every.stages.items()}
    seen = {
        name: [file for file in missing if not (name == "advise@mine" and covered(Path(file), OF_PAGES))]
        for name, missing in found.items()
    }
    assert {name: missing for name, missing in seen.items() if missing} == {}


def test_no_kind_of_stage_depends_on_code_that_none_of_it_runs(every: Every) -> None:
    listed: set[tuple[str, str]] = set()
    used: set[tuple[str, str]] = set()
    for stage in every.stages.values():
        of = problems_of(stage, every.rows)
        run = closure(REPOSITORY, stage.file, of)
        for dep in (dep for dep in stage.deps if dep.startswith("pipeline")):
            place = dep.replace(f"/{of[0]}", "/*") if len(of) == 1 else dep  # one list serves all problems
            listed.add((stage.kind, place))
            used |= {(stage.kind, place)} if any(covered(file, [dep]) for file in run) else set()
    assert sorted(listed - used) == []


def test_every_stage_runs_a_file_of_its_own_kind(stages: dict[str, Stage]) -> None:
    for stage in stages.values():
        assert (REPOSITORY / stage.file).is_file()
        assert stage.file.stem == stage.kind


def test_no_stage_depends_on_what_is_not_there(stages: dict[str, Stage]) -> None:
    code = {dep for stage in stages.values() for dep in stage.deps if dep.startswith("pipeline")}
    assert len(code) > 10
    assert [dep for dep in sorted(code) if not (REPOSITORY / dep).exists()] == []


def test_the_closure_of_a_stage_reaches_what_it_runs_of_its_problem() -> None:
    found = {file.as_posix() for file in closure(REPOSITORY, Path("pipeline/stages/finetune.py"), ["pool"])}
    assert found >= {
        "pipeline/stages/finetune.py",
        "pipeline/learning/resuming.py",
        "pipeline/problems/pool/agents/training/reinforce.py",
        "pipeline/problems/pool/env/simulator/dynamics.py",
        "pipeline/problems/pool/agents/networks/networks.py",
        "pipeline/problems/pool/env/workload/windows.py",
        "pipeline/core/config/params.py",
        "pipeline/core/config/pool/learning.py",
        "pipeline/core/types.py",
    }
    assert not [file for file in found if covered(Path(file), LEFT_OUT)]
    assert not [file for file in found if "/machines/" in file or "/groups/" in file]
    assert "pipeline/problems/pool/env/evaluation/hindsight.py" not in found  # a part that only `hindsight` asks for


def hidden(root: Path, files: Iterable[Path]) -> list[str]:
    """Files that DVC ignores, according to DVC itself."""
    with Repo(str(root)) as repo:
        return sorted(str(file) for file in files if repo.dvcignore.is_ignored_file(str(root / file)))


def test_dvc_ignores_no_code() -> None:
    files = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "pipeline").rglob("*.py")]
    assert len(files) > 200
    assert hidden(REPOSITORY, files) == []


@pytest.mark.parametrize(
    ("name", "file"), [("plan@plan_machines", "lookahead/search.py"), ("advise@mine", "env/workload/windows.py")]
)
def test_an_edit_of_the_planner_makes_a_plan_stale_and_one_of_the_jobs_of_a_log_an_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: dict[str, Any], name: str, file: str
) -> None:
    edited = Path("pipeline/problems/machines", file)
    _laid_out(tmp_path, rows)
    monkeypatch.chdir(tmp_path)
    with Repo(str(tmp_path)) as repo:
        (stage,) = repo.stage.collect(name)
        deps = [dep for dep in stage.deps if covered(edited, [dep.def_path])]
        for dep in deps:
            dep.save()
        assert [dep.status() for dep in deps] == [{}]
    with (tmp_path / edited).open("a") as stream:
        stream.write("# An edit.\n")
    with Repo(str(tmp_path)):
        assert [set(dep.status().values()) for dep in deps] == [{"modified"}]


# What an edit makes stale


LEARNS_OR_SCORES = {"generate", "pretrain", "finetune", "heuristics", "hindsight", "evaluate", "transfer"}


def stale(stages: dict[str, Stage], file: str) -> list[str]:
    """The stages that an edit of a file makes stale."""
    return [name for name, stage in stages.items() if covered(Path(file), stage.deps)]


def sources(*places: str) -> list[str]:
    """The source files in some folders, or those with some names."""
    found = (path for place in places for path in (REPOSITORY / "pipeline").glob(place))
    files = {inside for path in found for inside in ([path] if path.is_file() else path.rglob("*"))}
    return sorted(file.relative_to(REPOSITORY).as_posix() for file in files if file.suffix in (".py", ".css", ".html"))


@pytest.mark.parametrize(("problem", "most"), [("groups", 12), ("machines", 20)])
def test_an_edit_of_one_problem_makes_its_own_stages_stale(
    stages: dict[str, Stage], rows: dict[str, Any], problem: str, most: int
) -> None:
    files = sources(f"problems/{problem}", f"config/{problem}")
    assert len(files) > 30
    found = {file: stale(stages, file) for file in files}
    assert {file: len(names) for file, names in found.items() if len(names) > most} == {}
    others = {name for names in found.values() for name in names if problem not in problems_of(stages[name], rows)}
    assert others == set()


def test_an_edit_of_what_draws_or_words_makes_nothing_stale_that_learns_or_scores(stages: dict[str, Stage]) -> None:
    shown = sources("interactive", "problems/*/comparison.py", "comparing/plots.py", "comparing/words.py")
    shown += sources("report", "papers", "tracking", "cli")
    assert len(shown) > 60
    found = {file: {stages[name].kind for name in stale(stages, file)} & LEARNS_OR_SCORES for file in shown}
    assert {file: kinds for file, kinds in found.items() if kinds} == {}


@pytest.mark.parametrize(("problem", "file"), [("pool", "scores"), ("machines", "rules"), ("groups", "rules")])
def test_a_new_heuristic_makes_stale_what_plays_it_and_no_training(
    stages: dict[str, Stage], rows: dict[str, Any], problem: str, file: str
) -> None:
    names = stale(stages, f"pipeline/problems/{problem}/heuristics/{file}.py")
    plays = {"pool": {"hindsight", "transfer"}}.get(problem, set())
    assert {stages[name].kind for name in names} == {"heuristics", "evaluate", "compare", "gate", "papers"} | plays
    assert {name for name in names if problem not in problems_of(stages[name], rows)} == set()


def test_deps_fit_a_screen() -> None:
    lines = (REPOSITORY / "dvc.yaml").read_text().splitlines()
    assert [
        line for line in lines if line.strip().startswith(("- pipeline", "deps", "params")) and len(line) > 120
    ] == []


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
    monkeypatch.setattr(stage_code, "LEFT_OUT", (*LEFT_OUT, "pipeline/tracking.py"))
    for name, text in SYNTHETIC.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stage = Stage("generate@online", ["generate", "online"], deps, [], [], [], [])
    assert unseen(tmp_path, stage, []) == missing


# Params


def unlisted(stage: Stage, wanted: set[str]) -> set[str]:
    """Those of the wanted rows whose change would not make the stage stale."""
    return {row for row in wanted if not any(row == name or row.startswith(f"{name}.") for name in stage.params)}


def test_every_stage_of_a_scenario_lists_its_rows(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    for name, row in rows["scenarios"].items():
        wanted = {"seed", "workload", "demands", f"scenarios.{name}"}
        assert unlisted(stages[f"generate@{name}"], wanted) == set()
        assert unlisted(stages[f"heuristics@{name}"], {"seed", f"heuristics.{row['problem']}"}) == set()


def test_who_reads_the_rows_of_a_scenario_depends_on_the_jobsets_beside_which_they_stand(
    stages: dict[str, Stage], rows: dict[str, Any]
) -> None:
    for kind, name in (stage.name.split("@") for stage in stages.values() if "@" in stage.name):
        stage = stages[f"{kind}@{name}"]
        section = "transfers" if kind == "transfer" else "agents" if kind in AGENT_STAGES else ""
        scenario = rows[section][name]["scenario"] if section else name
        assert (f"data/jobsets/{scenario}" in stage.deps) != (kind == "generate"), stage.name
        assert kind == "generate" or not [row for row in stage.params if row.startswith(("scenarios", "workload"))]


def test_every_stage_of_an_agent_lists_its_rows(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    for name, row in rows["agents"].items():
        mine = f"agents.{name}"
        machine = {"seed", "threads", "device"}
        learned = machine | {"demands", f"recipes.{row['finetune']['recipe']}"}
        first = {f"{mine}.{part}" for part in ("problem", "scenario", "objective", "network", "pretrain")}
        wanted = {"pretrain": learned | first, "finetune": learned | {f"{mine}.finetune"}, "evaluate": machine}
        for kind in AGENT_STAGES:
            assert set(stages[f"{kind}@{name}"].params) == wanted[kind]
        assert f"models/{name}/pretrained" in stages[f"finetune@{name}"].deps
        assert {f"models/{name}/{which}" for which in ("pretrained", "policy")} <= set(stages[f"evaluate@{name}"].deps)


def test_a_stored_network_says_all_that_later_stages_read_of_its_agent() -> None:
    assert {"objective", "scenario", "network", "masked", "play"} <= set(PoolCard.model_fields)
    assert {"problem", "objective", "scenario", "network", "play"} <= set(MachinesCard.model_fields)
    assert {"problem", "objective", "scenario", "network", "gamma", "against"} <= set(GroupsCard.model_fields)


def test_no_stage_of_an_agent_lists_the_rows_of_another(stages: dict[str, Stage]) -> None:
    for stage in (stage for stage in stages.values() if stage.kind in AGENT_STAGES):
        assert {name.split(".")[1] for name in stage.params if name.startswith("agents.")} <= {stage.subject}
        assert not {"agents", "scenarios", "recipes"} & set(stage.params)


def test_every_transfer_lists_its_rows_those_of_its_agent_and_of_the_other_scenario(
    stages: dict[str, Stage], rows: dict[str, Any]
) -> None:
    assert rows["transfers"]
    for name, row in rows["transfers"].items():
        agent, stage = row["agent"], stages[f"transfer@{name}"]
        assert set(stage.params) == {"seed", "threads", "device", f"transfers.{name}"}
        models = {f"models/{agent}/{which}" for which in ("pretrained", "policy")}
        assert {f"data/jobsets/{row['scenario']}"} | models <= set(stage.deps)
        assert stage.words == ["evaluate", "transfer", f"transfer@{name}"]
        assert stage.outs == [f"reports/tables/transfers/{name}"]


def test_what_compares_waits_for_all_that_is_scored(stages: dict[str, Stage]) -> None:
    scored = {out for stage in stages.values() for out in stage.outs if out.startswith("reports/tables/")}
    assert {Path(out).parent.name for out in scored} == {"heuristics", "agents", "transfers", "hindsight"}
    for name in ("compare", "gate", "papers"):
        assert [out for out in scored if not covered(Path(out), stages[name].deps)] == []


def test_the_gate_waits_for_the_advice_for_every_site(every: Every, stages: dict[str, Stage]) -> None:
    outs = [out for out in every.stages["advise@mine"].outs if covered(Path(out), every.stages["gate"].deps)]
    assert outs == ["reports/tables/advice/mine"]
    assert every.stages["gate"] == stages["gate"]


def test_the_comparison_lists_what_it_compares(stages: dict[str, Stage]) -> None:
    assert set(stages["compare"].params) == {*SECTIONS, "hindsight"}
    assert stages["papers"].params == []
    assert set(stages["gate"].params) == {"threads", "device", "gate"}  # the compared rows come from `compare`
    assert all(COMPARED.as_posix() in stages[name].deps for name in ("gate", "papers"))
    assert COMPARED.as_posix() in stages["compare"].outs


def leaves(values: Any, place: str = "") -> Iterator[str]:
    if not isinstance(values, dict):
        yield place
        return
    for key, value in values.items():
        yield from leaves(value, f"{place}.{key}" if place else str(key))


def test_no_parameter_can_change_unseen(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    listed = {name for stage in stages.values() if stage.kind not in ("compare", "papers") for name in stage.params}
    listed |= {"evaluation"} & set(stages["compare"].params)  # the only rows that no other stage lists
    used = {row["finetune"]["recipe"] for row in rows["agents"].values()}
    spare = tuple(f"recipes.{name}." for name in rows["recipes"] if name not in used)

    def seen(leaf: str) -> bool:
        return leaf.startswith(spare) or any(leaf == name or leaf.startswith(f"{name}.") for name in listed)

    assert [leaf for leaf in leaves(rows) if not seen(leaf)] == []
    assert not seen("agents.deeprm9.objective")


# Names and outputs


def test_agents_and_scenarios_have_names_that_dvc_can_set(rows: dict[str, Any]) -> None:
    names = [
        name
        for section in ("agents", "scenarios", "recipes", "demands", "transfers", "plans")
        for name in rows[section]
    ]
    assert [name for name in names if not re.fullmatch(r"[a-z0-9_]+", name)] == []


def test_every_agent_and_scenario_has_its_stages(stages: dict[str, Stage], rows: dict[str, Any]) -> None:
    wanted = {f"{kind}@{name}" for kind in AGENT_STAGES for name in rows["agents"]}
    wanted |= {f"{kind}@{name}" for kind in ("generate", "heuristics") for name in rows["scenarios"]}
    wanted |= {f"transfer@{name}" for name in rows["transfers"]}
    wanted |= {f"hindsight@{name}" for name in rows["hindsight"]["scenarios"]}
    assert set(stages) == wanted | {"log", "compare", "gate", "papers"}


def test_outputs_lie_in_data_models_and_reports(stages: dict[str, Stage]) -> None:
    assert {out.split("/")[0] for stage in stages.values() for out in stage.outs} == {"data", "models", "reports"}


def test_every_uncached_output_is_a_metric_or_a_plot(stages: dict[str, Stage]) -> None:
    # An uncached output keeps a stage out of DVC's run cache; only logs, which must not be copied, are an exception.
    logs = {"data/log", "data/logs", "data/policies"}  # links
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
    assert found["finetune@mine_2"].words == ["finetune", "finetune@mine_2"]
    assert "agents.mine_2.finetune" in found["finetune@mine_2"].params


def test_the_stage_of_a_site_depends_on_all_the_code_it_runs_and_no_more(every: Every) -> None:
    stage = every.stages["advise@mine"]
    assert {"data/log", "data/logs/mine"} == {dep for dep in stage.deps if not dep.startswith("pipeline")}
    assert set(stage.params) == {"seed", "evaluation", "scenarios.mine", "sites.mine"}
    run = closure(REPOSITORY, Path("pipeline/stages/advise.py"), ["machines"])
    assert sorted(str(file) for file in run if not covered(file, [*stage.deps, *OF_PAGES])) == []
    of_sites = {
        file for part in run if covered(part, ["pipeline/sites"]) for file in closure(REPOSITORY, part, ["machines"])
    }
    assert sorted(str(file) for file in of_sites if not covered(file, stage.deps)) == []
    assert len(of_sites) > 10
    code = [dep for dep in stage.deps if dep.startswith("pipeline")]
    assert [dep for dep in code if not any(covered(file, [dep]) for file in run)] == []


@pytest.mark.parametrize("problem", PLANS)
def test_the_stage_of_a_plan_depends_on_all_the_code_it_runs_and_no_more(every: Every, problem: str) -> None:
    name, scenario = f"plan_{problem}", PLANS[problem]["scenario"]
    stage = every.stages[f"plan@{name}"]
    assert {f"data/jobsets/{scenario}", f"reports/tables/heuristics/{scenario}", "models"} <= set(stage.deps)
    assert set(stage.params) == {"seed", "threads", "device", f"plans.{name}"}
    assert stage.outs == [f"reports/tables/plans/{name}"]
    assert all(covered(Path(stage.outs[0]), every.stages[kind].deps) for kind in ("compare", "gate", "papers"))
    assert unseen(REPOSITORY, stage, [problem]) == []
    run = closure(REPOSITORY, stage.file, [problem])
    # Both problems share one list; the models, which are a dependency as well, contain the results of training code.
    code = [dep for dep in stage.deps if dep.startswith("pipeline") and not dep.endswith("/training")]
    assert [dep for dep in code if not any(covered(file, [dep]) for file in run)] == []


def test_without_a_transfer_there_is_no_stage_of_one(tmp_path: Path, rows: dict[str, Any]) -> None:
    shutil.copy(REPOSITORY / "dvc.yaml", tmp_path)
    with (tmp_path / "params.yaml").open("w") as stream:
        YAML().dump({**rows, "transfers": {}}, stream)
    with Repo.init(str(tmp_path), no_scm=True):
        pass
    kinds = {stage.kind for stage in resolved(tmp_path).values()}
    assert {"evaluate", "compare"} <= kinds
    assert "transfer" not in kinds
