import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tracking_records import Records, environment

from pipeline.cli.ending import Stopped
from pipeline.core.config import Params, PoolLog
from pipeline.tracking import delivery, stage
from pipeline.tracking.identity import every_param

COMPLAINT = "the results are safe, what MLflow misses is sent by 'python -m pipeline publish'"
LOST = "the results are safe, only MLflow misses this"
SCRIPT = """
import sys
from pathlib import Path
from pipeline.core.config import load_params
from pipeline.tracking import stage
with stage("generate", "online", load_params()) as run:
    run.metrics({"jobs": float(sys.argv[1])}, step=0)
"""


def git(*words: str) -> str:
    named = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words]
    return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()


def in_order(seen: Records) -> list[dict[str, str]]:
    """The tags of the stages' runs, the first first."""
    return [run.data.tags for run in sorted(seen.runs(), key=lambda run: run.info.start_time)]


def execute(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, "1"]
    return subprocess.run(command, env=environment(**more), capture_output=True, text=True, check=True)


def one_complaint(capsys: pytest.CaptureFixture[str], ending: str = COMPLAINT) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tracking: ")
    assert line.endswith(ending)
    return line


# Runs and what is said of them


def test_stages_of_one_repro_are_children_of_one_parent(root: Path, params: Params) -> None:
    with stage("generate", "online", params):
        pass
    with stage("finetune", "deeprm", params):
        pass
    seen = Records(root)
    (parent,) = seen.parents()
    children = seen.runs()
    assert {child.info.run_name for child in children} == {"generate@online", "finetune@deeprm"}
    assert {child.data.tags["mlflow.parentRunId"] for child in children} == {parent.info.run_id}
    assert {run.info.status for run in [parent, *children]} == {"FINISHED"}
    assert parent.info.run_name == parent.data.tags["pipeline.id"] == children[0].data.tags["pipeline.id"]


def test_the_experiment_has_its_artifacts_at_the_root_and_explains_itself(root: Path, params: Params) -> None:
    with stage("compare", "", params) as run:
        run.figure(root / "params.yaml")
    experiment = Records(root).experiment
    assert experiment.artifact_location == f"file://{root}/mlartifacts"
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    assert "dvc repro" in experiment.tags["mlflow.note.content"]
    run_id = Records(root).only("compare").info.run_id
    assert (root / "mlartifacts" / run_id / "artifacts" / "params.yaml").is_file()


def test_a_run_says_its_stage_its_subject_and_what_dvc_and_git_say(
    root: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "-q")
    git("add", "params.yaml")
    git("commit", "-qm", "one")
    monkeypatch.setenv("DVC_STAGE", "finetune@deeprm")
    monkeypatch.setenv("DVC_EXP_NAME", "tall-mule")
    with stage("finetune", "deeprm", params):
        pass
    tags = Records(root).only("finetune").data.tags
    assert tags["pipeline.id"].startswith("tall-mule-")
    assert tags["pipeline.kind"] == "experiment"
    assert (tags["stage"], tags["subject"]) == ("finetune", "deeprm")
    assert (tags["dvc.stage"], tags["dvc.exp.name"]) == ("finetune@deeprm", "tall-mule")
    assert (tags["git.commit"], tags["git.dirty"]) == (git("rev-parse", "HEAD"), "false")


def test_an_edit_begins_a_new_pipeline_run_and_neither_a_commit_nor_a_new_dvc_lock_does(
    root: Path, params: Params
) -> None:
    git("init", "-q")
    (root / "pipeline" / "__pycache__").mkdir(parents=True)
    (root / ".gitignore").write_text("__pycache__/\n")
    code, lock = root / "pipeline" / "code.py", root / "dvc.lock"
    git("add", ".gitignore", "params.yaml")
    git("commit", "-qm", "one")

    def run() -> None:
        with stage("compare", "", params):
            pass

    code.write_text("a = 1\n")
    run()
    git("add", "pipeline")
    git("commit", "-qm", "two")
    (root / "pipeline" / "__pycache__" / "code.pyc").write_text("compiled")
    lock.write_text("stages: {a: {}}\n")
    run()
    code.write_text("a = 2\n")
    run()
    first, second, third = (tags for tags in in_order(Records(root)))
    assert first["pipeline.id"] == second["pipeline.id"] != third["pipeline.id"]
    assert [tags["git.dirty"] for tags in (first, second, third)] == ["true", "false", "true"]


def test_another_log_begins_a_new_pipeline_run(root: Path, params: Params) -> None:
    lock = "stages:\n  log:\n    outs:\n    - path: data/log\n      md5: {}\n"
    for md5 in ("a", "b", "b"):
        (root / "dvc.lock").write_text(lock.format(md5 * 32))
        with stage("compare", "", params):
            pass
    first, second, third = (tags["pipeline.id"] for tags in in_order(Records(root)))
    assert first != second == third


def test_an_experiment_is_known_by_its_baseline_not_by_a_temporary_commit(
    root: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "-q")
    git("add", "params.yaml")
    git("commit", "-qm", "one")
    baseline = git("rev-parse", "HEAD")
    git("commit", "-qm", "temporary", "--allow-empty")
    monkeypatch.setenv("DVC_EXP_BASELINE_REV", baseline)
    with stage("compare", "", params):
        pass
    assert Records(root).only().data.tags["git.commit"] == baseline


def test_without_git_runs_are_tracked_as_nogit(root: Path, params: Params) -> None:
    with stage("compare", "", params):
        pass
    tags = Records(root).only().data.tags
    assert (tags["git.commit"], tags["git.dirty"], tags["pipeline.kind"]) == ("nogit", "unknown", "repro")


def test_a_run_without_its_commit_says_why_git_refuses(
    root: Path, params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git("init", "-q")
    git("commit", "-qm", "one", "--allow-empty")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    with stage("compare", "", params):
        pass
    assert Records(root).only().data.tags["git.commit"] == "nogit"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tracking: the run is recorded without its commit, because git refuses: fatal: detected dub")


def test_params_of_a_run_are_the_rows_about_its_subject(root: Path, params: Params) -> None:
    with stage("finetune", "deeprm", params):
        pass
    with stage("generate", "online", params):
        pass
    seen = Records(root)
    agent, scenario = seen.only("finetune").data.params, seen.only("generate").data.params
    shared = {"seed", "threads", "device", "workload.name", "workload.short", "workload.long", "workload.short_share"}
    assert set(seen.parents()[0].data.params) == set(every_param(params))
    assert shared <= set(agent) & set(scenario)
    assert agent["agents.deeprm.finetune.loads"] == "[10, 30, 50, 70, 90, 110, 130, 150, 170, 190]"
    assert agent["recipes.ours.masked"] == "true"
    assert scenario["scenarios.online.arrivals.name"] == "poisson"
    assert {key.split(".")[0] for key in agent} == {"seed", "threads", "device", "workload", "agents", "recipes"}
    assert {key.split(".")[0] for key in scenario} == {"seed", "threads", "device", "workload", "scenarios"}


def test_a_value_too_long_for_mlflow_is_cut(root: Path, params: Params) -> None:
    log = PoolLog(name="swf", path="9" * 7000)
    with stage("compare", "", params.model_copy(update={"workload": log})):
        pass
    assert Records(root).only().data.params["workload.path"] == "9" * 6000


# Metrics, curves and inputs


def test_metrics_arrive_at_their_steps(root: Path, params: Params) -> None:
    with stage("finetune", "deeprm", params) as run:
        for step in range(1500):
            run.metrics({"return": -step / 2, "loss": 1.0}, step=step)
    seen = Records(root)
    points = seen.points(seen.only(), "return")
    assert points == [(step, -step / 2) for step in range(1500)]


def test_metrics_are_written_in_the_middle_of_a_long_stage(
    root: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage("finetune", "deeprm", params) as run:
        run.metrics({"return": 1.0}, step=0)
        assert Records(root).only().data.metrics == {}
        monkeypatch.setattr(delivery, "FLUSH_S", 0.0)
        run.metrics({"return": 2.0}, step=1)
        seen = Records(root)
        assert seen.points(seen.only(), "return") == [(0, 1.0), (1, 2.0)]


def test_a_curve_is_drawn_on_the_parent_over_loads_once(root: Path, params: Params) -> None:
    for _ in range(2):
        with stage("evaluate", "deeprm", params) as run:
            run.parent_curve("slowdown/deeprm", {10: 1.25, 190: 4.5})
    seen = Records(root)
    (parent,) = seen.parents()
    assert seen.points(parent, "online/deeprm") == [(10, 1.25), (190, 4.5)]
    assert seen.runs()[0].data.metrics == {}


def test_scenarios_with_the_same_policy_have_curves_of_their_own(root: Path, params: Params) -> None:
    for scenario, values in (("online", {10: 1.25, 190: 4.5}), ("offline", {100: 6.0})):
        with stage("heuristics", scenario, params) as run:
            run.parent_curve("slowdown/sjf", values)
    seen = Records(root)
    (parent,) = seen.parents()
    assert seen.points(parent, "online/sjf") == [(10, 1.25), (190, 4.5)]
    assert seen.points(parent, "sjf offline") == [(100, 6.0)]


@pytest.fixture
def jobsets(root: Path) -> Path:
    folder = Path("data") / "x"
    (root / folder / "a").mkdir(parents=True)
    (root / folder / "a" / "b").write_text("one")
    (root / folder / "a.txt").write_text("two")
    (root / folder / "é").write_text("3")
    return folder


def test_inputs_carry_the_md5_that_dvc_computes(root: Path, params: Params, jobsets: Path) -> None:
    with stage("pretrain", "deeprm2", params) as run:
        run.inputs(jobsets, jobsets / "a.txt")
    found = {item.dataset.name: item.dataset.digest for item in Records(root).only().inputs.dataset_inputs}
    assert found == {
        "data/x": "8a097c1a817100858d3f6806519b2962.dir",  # what `dvc add` writes for this folder
        "data/x/a.txt": "b8a9f715dbb64fd5c56e7783c6820a61",  # printf two | md5sum
    }


def test_under_dvc_inputs_carry_the_md5_of_dvc_lock(
    root: Path, params: Params, jobsets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    md5 = "0123456789abcdef0123456789abcdef.dir"
    lock = f"stages:\n  generate@x:\n    cmd: c\n    outs:\n    - path: data/x\n      md5: {md5}\n"
    (root / "dvc.lock").write_text(lock)
    for by_dvc in (False, True):
        if by_dvc:
            monkeypatch.setenv("DVC_STAGE", "pretrain@deeprm")
        with stage("pretrain", "deeprm", params) as run:
            run.inputs(jobsets)
    runs = sorted(Records(root).runs(), key=lambda run: run.info.start_time)
    digests = [run.inputs.dataset_inputs[0].dataset.digest for run in runs]
    assert digests == ["8a097c1a817100858d3f6806519b2962.dir", md5]


# Failures


def test_a_failing_stage_is_recorded_as_failed_and_its_exception_passes_on(root: Path, params: Params) -> None:
    def body() -> None:
        with stage("finetune", "deeprm", params) as run:
            run.metrics({"return": 1.0}, step=7)
            raise ValueError("job 3 wants 12 slots\nthe cluster has 10")

    with pytest.raises(ValueError, match="job 3 wants 12 slots"):
        body()
    seen = Records(root)
    failed = seen.only()
    assert failed.info.status == "FAILED"
    assert failed.data.tags["error"] == "the cluster has 10"
    assert seen.points(failed, "return") == [(7, 1.0)]
    assert seen.parents()[0].info.status == "FAILED"

    with stage("finetune", "deeprm", params):
        pass
    (parent,) = Records(root).parents()  # it is run again: the same pipeline run, which is well now
    assert parent.info.status == "FINISHED"


@pytest.mark.parametrize("stopped", [KeyboardInterrupt(), Stopped(signal.SIGTERM)])
def test_a_stage_that_a_signal_ends_is_recorded_as_killed(root: Path, params: Params, stopped: BaseException) -> None:
    with pytest.raises(type(stopped)), stage("compare", "", params):
        raise stopped
    assert Records(root).only().info.status == "KILLED"


def spoil_with_text(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)


def spoil_with_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def spoil_with_old_tables(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")


@pytest.mark.parametrize("spoil", [spoil_with_text, spoil_with_folder, spoil_with_old_tables])
def test_a_spoilt_database_costs_one_line(
    root: Path, params: Params, capfd: pytest.CaptureFixture[str], spoil: Callable[[Path], None]
) -> None:
    spoil(root / "mlflow.db")
    begun = time.monotonic()
    results = []
    with stage("finetune", "deeprm", params) as run:
        run.inputs(root / "params.yaml")
        run.metrics({"return": 1.0}, step=0)
        run.parent_curve("slowdown/deeprm", {10: 1.0})
        results.append("done")
    assert results == ["done"]
    assert time.monotonic() - begun < 10
    one_complaint(capfd)


def test_a_database_spoilt_in_the_middle_costs_one_line(
    root: Path, params: Params, capfd: pytest.CaptureFixture[str]
) -> None:
    results = []
    with stage("generate", "online", params) as run:
        run.metrics({"jobs": 1.0}, step=0)
        with sqlite3.connect("mlflow.db") as database:
            database.execute("DROP TABLE metrics")
        run.parent_curve("slowdown/sjf", {10: 1.0})
        run.metrics({"jobs": 2.0}, step=1)
        results.append("done")
    assert results == ["done"]
    one_complaint(capfd)


def test_a_mistake_in_a_call_costs_one_line_and_not_the_stage(
    root: Path, params: Params, capfd: pytest.CaptureFixture[str]
) -> None:
    with stage("compare", "", params) as run:
        run.figure(root / "missing.png")
        run.figure(root / "also missing.png")
        run.figure(root / "params.yaml")
    assert "missing.png" in one_complaint(capfd, LOST)
    seen = Records(root)
    assert [file.path for file in seen.client.list_artifacts(seen.only().info.run_id)] == ["params.yaml"]


def test_of_a_missing_input_only_the_stage_itself_tells(
    root: Path, params: Params, capfd: pytest.CaptureFixture[str]
) -> None:
    with stage("pretrain", "deeprm", params) as run:
        run.inputs(root / "missing.parquet")
    assert capfd.readouterr().err == ""
    assert Records(root).only().inputs.dataset_inputs == []


def test_the_bodys_exception_passes_on_where_nothing_is_recorded(
    root: Path, params: Params, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil_with_text(root / "mlflow.db")
    with pytest.raises(ValueError, match="mine"), stage("compare", "", params):
        raise ValueError("mine")
    one_complaint(capfd)


# Where the database is


def test_two_processes_set_up_one_new_database(bare: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(k)], env=environment(), stderr=subprocess.PIPE, text=True)
        for k in range(2)
    ]
    said = [process.communicate()[1] for process in started]
    assert said == ["", ""]
    seen = Records(bare)
    assert len(seen.parents()) == 1
    assert sorted(run.data.metrics["jobs"] for run in seen.runs()) == [0, 1]
    assert {run.info.status for run in seen.runs()} == {"FINISHED"}


def test_dvc_root_decides_where_the_database_is(root: Path, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = root / ".dvc" / "tmp" / "exps" / "clone"
    clone.mkdir(parents=True)
    (clone / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    monkeypatch.setenv("DVC_ROOT", str(root))
    monkeypatch.chdir(clone)
    with stage("compare", "", params) as run:
        run.figure(Path("params.yaml"))
    assert Records(root).only().info.artifact_uri.startswith(f"file://{root}/mlartifacts/")
    assert sorted(file.name for file in clone.iterdir()) == ["params.yaml"]
    assert (root / ".dvc" / "tmp" / "mlflow.lock").exists()
    assert not (root / "mlflow.db.lock").exists()


def test_a_tracking_uri_of_the_users_is_kept(
    bare: Path, params: Params, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = bare / "other place"
    elsewhere.mkdir()
    (elsewhere / "mlflow.db").write_bytes(database.read_bytes())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{elsewhere / 'mlflow.db'}")
    with stage("compare", "", params):
        pass
    assert len(Records(elsewhere).runs()) == 1
    assert not (bare / "mlflow.db").exists()


# Off, and cheap


def test_off_records_nothing_and_imports_nothing(bare: Path) -> None:
    script = SCRIPT + "print('mlflow' in sys.modules)\n"
    done = execute(script, PIPELINE_TRACKING="off")
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert sorted(file.name for file in bare.iterdir()) == ["params.yaml"]


def test_importing_tracking_is_cheap() -> None:
    script = (
        "import sys, pipeline.tracking; print(*{'mlflow', 'pandas', 'torch', 'matplotlib', 'numba'} & set(sys.modules))"
    )
    done = execute(script)
    assert done.stdout == "\n"
