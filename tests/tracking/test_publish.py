"""What `publish` adds to MLflow, and that it adds it once."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow.cli
import pytest
from click.testing import CliRunner
from laid_out import LaidOut, snapshot
from mlflow import MlflowClient
from tracking_records import FOREIGN, Records, environment

from pipeline.core.config import Params, load_params
from pipeline.errors import UserError
from pipeline.tracking import stage
from pipeline.tracking.delivery import Delivery
from pipeline.tracking.publish import publish
from pipeline.tracking.record import Event
from pipeline.tracking.store import LARGEST_BATCH

STAGES = ["compare", "evaluate@deeprm", "finetune@deeprm", "generate@online", "heuristics@online", "pretrain@deeprm"]
NOWHERE = "http://127.0.0.1:9"  # the port of `discard`: nobody listens

KILLED = """
import os, signal
from pathlib import Path
from pipeline.core.config import load_params
from pipeline.tracking import stage
with stage("finetune", "deeprm", load_params()) as run:
    run.inputs(Path("data/jobsets/online"))
    run.metrics({"return": 1.5}, step=7)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def small(laid: LaidOut) -> Params:
    return load_params()


def published(*revs: str, everything: bool = False) -> list[str]:
    """The lines on records and revisions; what is registered has tests of its own."""
    return [line for line in publish(revs, everything) if not line.startswith("publish: models: ")]


def told(*revs: str) -> tuple[list[str], str]:
    """The lines of a `publish` that fails, and its error."""
    lines: list[str] = []
    try:
        for line in publish(revs, everything=False):
            lines.append(line)
    except UserError as error:
        return lines, str(error)
    raise AssertionError("it did not fail")


def finetune(params: Params) -> None:
    """The stage as it records itself."""
    with stage("finetune", "deeprm", params) as run:
        run.inputs(Path("data/jobsets/online"), Path("models/deeprm/pretrained"))
        run.metrics({"validation": 2.5}, step=1)
        run.metrics({"validation": 2.25, "loss": 0.5}, step=2)
        run.model(Path("models/deeprm/policy"))


def pipeline_id(root: Path) -> str:
    (parent,) = Records(root).parents()
    return str(parent.data.tags["pipeline.id"])


def gone_after(events: int) -> Callable[[Delivery, Event], None]:
    """A way of sending that ends behind some event."""
    send, sent = Delivery.__dict__["send"], []

    def sending(self: Delivery, event: Event) -> None:
        send.__get__(self, Delivery)(event)
        sent.append(event)
        if len(sent) == events:
            raise ConnectionError("gone")

    return sending


# What is restored


def test_stages_without_a_run_get_one_and_a_second_time_adds_nothing(laid: LaidOut) -> None:
    (line,) = published()
    assert line == f"publish: {pipeline_id(laid.root)}: 6 stages, 6 restored"
    before = snapshot(laid.root)
    (line,) = published()
    assert line.endswith(": 6 stages, 6 recorded")
    assert snapshot(laid.root) == before


def test_a_restored_run_says_what_the_outputs_tell(laid: LaidOut) -> None:
    published()
    seen = Records(laid.root)
    assert sorted(run.info.run_name for run in seen.runs()) == STAGES
    assert {run.data.tags["source"] for run in seen.runs()} == {"restored"}
    (parent,) = seen.parents()
    assert seen.points(parent, "online/sjf") == [(10, 1.25), (190, 4.5)]
    assert set(parent.data.metrics) == {"online/sjf", "online/fcfs", "online/deeprm"}
    assert parent.data.params["agents.deeprm.finetune.updates"] == "2000"  # of all rows, on the pipeline's own run
    assert len(parent.data.params) > LARGEST_BATCH
    learned = seen.only("finetune")
    assert seen.points(learned, "validation") == [(1, 2.5), (2, 2.25)]
    assert learned.data.params["agents.deeprm.finetune.updates"] == "2000"
    assert {item.dataset.name for item in learned.inputs.dataset_inputs} == {
        "data/jobsets/online",
        "models/deeprm/pretrained",
    }
    (output,) = learned.outputs.model_outputs
    assert seen.client.get_logged_model(output.model_id).status == "READY"
    assert seen.only("generate").data.metrics == {"jobsets/train": 3, "jobsets/test": 1}
    assert seen.only("heuristics").data.metrics == {"knob/tetris": 0.5}
    files = seen.client.list_artifacts(seen.only("compare").info.run_id)
    assert [file.path for file in files] == ["comparison.md", "slowdown_online.png"]


def test_what_ran_is_recorded_and_left_alone(laid: LaidOut, small: Params) -> None:
    finetune(small)
    own = Records(laid.root).only("finetune")
    assert own.data.tags["dvc.out.models/deeprm/policy"].endswith(".dir")
    (line,) = published()
    assert line.endswith(": 6 stages, 1 recorded, 5 restored")
    again = Records(laid.root).only("finetune")
    assert (again.info.run_id, again.data.tags) == (own.info.run_id, own.data.tags)


def test_a_deleted_database_is_rebuilt_the_same(laid: LaidOut, database: Path) -> None:
    published()
    before = snapshot(laid.root, exact=False)
    shutil.rmtree(laid.root / "mlartifacts")
    shutil.copy(database, laid.root / "mlflow.db")
    published()
    assert snapshot(laid.root, exact=False) == before


def test_deleted_outputs_come_from_the_cache(laid: LaidOut, whole: dict[str, Any]) -> None:
    laid.cache()
    for name in ("data/jobsets", "models", "reports"):
        shutil.rmtree(laid.root / name)
    published()
    assert snapshot(laid.root, exact=False) == whole


def test_outputs_that_are_kept_nowhere_are_named(laid: LaidOut) -> None:
    shutil.rmtree(laid.root / "models" / "deeprm" / "policy")
    laid.write("reports/curves/deeprm_finetune.csv", "not,the,one\n")
    published()
    run = Records(laid.root).only("finetune")
    assert run.data.tags["record.without"] == "models/deeprm/policy, reports/curves/deeprm_finetune.csv"
    assert (run.data.metrics, run.outputs.model_outputs) == ({}, [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, laid_once: Path, database: Path) -> dict[str, Any]:
    """What MLflow says after one publish of all that is laid out."""
    root = tmp_path_factory.mktemp("whole")
    shutil.copytree(laid_once, root, symlinks=True, dirs_exist_ok=True)
    shutil.copy(database, root / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        for name in FOREIGN:
            patch.delenv(name, raising=False)
        patch.setenv("PIPELINE_TRACKING", "live")
        patch.chdir(root)
        published()
        return snapshot(root, exact=False)


@pytest.mark.parametrize("after", [1, 6, 11, 14])
def test_a_publish_that_is_cut_short_is_finished_by_the_next(
    laid: LaidOut, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(Delivery, "send", gone_after(after))
        with pytest.raises(UserError, match="publish: gone; no result is lost"):
            published()
    published()
    assert snapshot(laid.root, exact=False) == whole


# Which revisions


def test_a_commit_is_the_pipeline_run_of_the_tree_it_was_made_of(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows["evaluation"].update(resamples=100))
    laid.lock()
    published()
    assert Records(laid.root).parents()[0].data.tags["git.dirty"] == "true"
    commit = laid.commit("two")
    laid.git("tag", "v1")
    for rev in ("HEAD", "v1", commit):
        (line,) = published(rev)
        assert line == f"publish: {pipeline_id(laid.root)}: 6 stages, 6 recorded"
    tags = Records(laid.root).parents()[0].data.tags
    assert (tags["git.commit"], tags["git.dirty"]) == (commit, "false")


def test_an_experiment_is_published_by_name_and_reuses_what_it_shares(laid: LaidOut) -> None:
    published()
    laid.cache()
    laid.edit(lambda rows: rows["evaluation"].update(resamples=100))
    laid.write("reports/comparison.md", "another one")
    laid.lock()
    rev = laid.experiment("bold")
    (line,) = published("bold")
    assert line.startswith("publish: bold-")
    assert line.endswith(": 6 stages, 5 reused, 1 restored")
    seen = Records(laid.root)
    (bold,) = [run for run in seen.parents() if run.data.tags.get("dvc.exp.name") == "bold"]
    assert (bold.data.tags["git.rev"], bold.data.tags["git.commit"]) == (rev, laid.git("rev-parse", "HEAD"))
    assert seen.points(bold, "online/deeprm") == [(10, 1.25), (190, 4.5)]
    first, second = seen.runs("finetune")
    assert {first.data.tags.get("reused.from"), second.data.tags.get("reused.from")} & {
        first.info.run_id,
        second.info.run_id,
    }
    assert first.outputs.model_outputs[0].model_id == second.outputs.model_outputs[0].model_id
    assert len(seen.client.search_logged_models([seen.experiment.experiment_id])) == 1


def test_a_workspace_with_an_experiments_content_is_that_experiment(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows.update(seed=2))
    laid.lock()
    rev = laid.experiment("same")
    published("same")
    laid.git("checkout", "--quiet", rev, "--", "params.yaml", "dvc.lock")
    (line,) = published()
    assert line == f"publish: {pipeline_id(laid.root)}: 6 stages, 6 recorded"
    assert line.startswith("publish: same-")


def test_all_is_every_experiment_commit_and_the_workspace(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows.update(seed=2))
    laid.lock()
    laid.experiment("bold")
    laid.edit(lambda rows: rows.update(seed=3))
    laid.lock()
    lines = published(everything=True)
    assert [line.split()[1].split("-")[0] for line in lines] == ["bold", "repro", "repro"]
    assert len(Records(laid.root).parents()) == 3
    before = snapshot(laid.root)
    published(everything=True)
    assert snapshot(laid.root) == before


def test_stages_of_other_code_or_params_are_not_taken_for_this_ones(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows["agents"]["deeprm"]["finetune"].update(updates=3))
    (line,) = published()
    assert line.endswith("6 stages, 3 restored, 3 stale (finetune@deeprm, evaluate@deeprm, compare)")
    laid.write("pipeline/code.py", "a = 2\n")
    (line,) = published()
    assert (
        line
        == "publish: workspace: all 6 stages of dvc.lock were made by other code or parameters: run 'dvc repro' first"
    )
    assert len(Records(laid.root).parents()) == 1


def test_a_stage_whose_input_was_made_anew_is_stale(laid: LaidOut) -> None:
    text = (laid.root / "dvc.lock").read_text()
    laid.write("models/deeprm/pretrained/policy.json", "{}")
    laid.lock()
    made_anew = (laid.root / "dvc.lock").read_text()
    start, end = "  finetune@deeprm:", "  evaluate@deeprm:"
    old = text[text.index(start) : text.index(end)]
    laid.write("dvc.lock", made_anew[: made_anew.index(start)] + old + made_anew[made_anew.index(end) :])
    (line,) = published()
    assert line.endswith("3 stale (finetune@deeprm, evaluate@deeprm, compare)")


def test_an_unknown_revision_is_one_line(laid: LaidOut) -> None:
    with pytest.raises(UserError, match=r"^unknown revision 'v9': expected a commit, tag, branch or experiment; exp"):
        published("v9")


def test_a_revision_of_older_code_is_one_line_and_the_others_are_published(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows.update(momentum=0.9))
    laid.commit("older")
    laid.git("tag", "old")
    laid.git("reset", "--quiet", "--hard", "HEAD~")
    lines, error = told("old", "HEAD")
    assert error == "publish: 1 of 2 skipped: old"
    assert lines[0] == "publish: skipped: old: params.yaml: momentum: unknown key"
    assert lines[1].endswith("6 stages, 6 restored")


def test_of_everything_a_commit_of_older_code_is_left_out_with_a_line(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows.update(momentum=0.9, seed=7))
    laid.lock()
    laid.commit("older")
    laid.edit(lambda rows: rows.update(seed=8) or rows.pop("momentum"))
    laid.lock()
    laid.commit("newer")
    lines = published(everything=True)
    assert [line for line in lines if "skipped" in line] == [line for line in lines if "momentum" in line]
    assert len([line for line in lines if "momentum: unknown key" in line]) == 1
    assert lines[-1].endswith("6 stages, 6 recorded")


def test_without_stages_in_dvc_lock_there_is_one_line(laid: LaidOut) -> None:
    (laid.root / "dvc.lock").unlink()
    lines, error = told()
    assert lines == ["publish: skipped: dvc.lock: expected stages, found none: run 'dvc repro' first"]
    assert error == "publish: 1 of 1 skipped: workspace"
    laid.write("dvc.lock", "stages: [")
    assert told()[0][0].startswith("publish: skipped: dvc.lock:2: not YAML: ")


def test_off_publishes_nothing(laid: LaidOut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    assert published() == ["publish: skipped, because PIPELINE_TRACKING is off"]


# The spool


def spool(laid: LaidOut) -> list[Path]:
    return sorted((laid.root / ".dvc" / "tmp" / "mlflow-spool").iterdir())


def test_a_deleted_experiment_is_named_with_a_command_that_restores_it(
    laid: LaidOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    published()
    client = MlflowClient(f"sqlite:///{laid.root / 'mlflow.db'}")
    number = client.get_experiment_by_name("scheduler-pipeline").experiment_id
    client.delete_experiment(number)
    with pytest.raises(UserError, match=r"^publish: experiment 'scheduler-pipeline' was deleted in MLflow: ") as found:
        published()
    where, *command = shlex.split(str(found.value).split("'")[3])
    monkeypatch.setenv(*where.split("=", 1))
    assert CliRunner().invoke(mlflow.cli.cli, command[1:]).exit_code == 0
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert published()[-1].endswith(": 6 stages, 6 recorded")


def test_what_a_dead_server_missed_is_sent_later_and_once(
    laid: LaidOut, small: Params, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as away:
        away.setenv("MLFLOW_TRACKING_URI", NOWHERE)
        finetune(small)
        (kept,) = spool(laid)
        with pytest.raises(
            UserError, match=r"^publish: API request to .* failed; no result is lost; once that is fixed, run it again$"
        ):
            published()
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert spool(laid) == [kept]
    spooled, line = published()
    assert spooled.startswith("publish: spooled: finetune@deeprm of repro-")
    assert spooled.endswith(", finished")
    assert line.endswith(": 6 stages, 1 recorded, 5 restored")
    assert spool(laid) == []
    seen = Records(laid.root)
    run = seen.only("finetune")
    assert "source" not in run.data.tags
    assert seen.points(run, "validation") == [(1, 2.5), (2, 2.25)]
    assert len(run.outputs.model_outputs) == 1
    before = snapshot(laid.root)
    published()
    assert snapshot(laid.root) == before


@pytest.mark.parametrize("after", [1, 3, 4, 5])
def test_a_spooled_record_that_is_sent_twice_is_there_once(
    laid: LaidOut, small: Params, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(Delivery, "send", gone_after(after))
        finetune(small)
    assert len(spool(laid)) == 1
    published()
    seen = Records(laid.root)
    run = seen.only("finetune")
    assert run.info.status == "FINISHED"
    assert seen.points(run, "validation") == [(1, 2.5), (2, 2.25)]
    assert len(run.outputs.model_outputs) == 1
    assert len(seen.client.search_logged_models([seen.experiment.experiment_id])) == 1


def test_a_killed_stage_is_published_as_killed(laid: LaidOut) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment(), capture_output=True, check=False)
    assert done.returncode < 0
    seen = Records(laid.root)
    assert seen.only("finetune").info.status == "RUNNING"
    spooled, line = published()
    assert spooled.endswith(", killed")
    assert line.endswith("6 restored")
    (killed,) = [run for run in seen.runs("finetune") if run.info.status == "KILLED"]
    assert seen.points(killed, "return") == [(7, 1.5)]
    assert len(killed.inputs.dataset_inputs) == 1


def test_a_stage_that_still_runs_is_left_alone(laid: LaidOut, small: Params) -> None:
    with stage("finetune", "deeprm", small):
        (running, _) = published()
        assert running.endswith("its stage is still running")
        assert len(spool(laid)) == 1
    assert spool(laid) == []


def test_junk_in_the_spool_is_named_and_kept(laid: LaidOut) -> None:
    for name, text in (("a.jsonl", "junk\nmore\n"), ("b.jsonl", '{"kind": "end", "at": 1, "status": "FINISHED"}\n')):
        laid.write(f".dvc/tmp/mlflow-spool/{name}", text)
    first, second, _ = published()
    assert "a.jsonl: not the record of a stage" in first
    assert "b.jsonl: not the record of a stage (it does not begin with a stage)" in second
    assert len(spool(laid)) == 2


def test_an_empty_record_goes(laid: LaidOut) -> None:
    laid.write(".dvc/tmp/mlflow-spool/a.jsonl", "")
    published()
    assert spool(laid) == []
