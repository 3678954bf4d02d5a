"""What `publish` adds to MLflow, and that it adds it once."""

import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
NOWHERE = "http://127.0.0.1:9"  # the port of `discard`: nobody listens
TWO = ("generate@online", "finetune@deeprm")
# Where MLflow's tables name the folder of a repository.
PLACES = (("experiments", "artifact_location"), ("runs", "artifact_uri"), ("logged_models", "artifact_location"))


@pytest.fixture
def small(laid: LaidOut) -> Params:
    return load_params()


def published(*revs: str, everything: bool = False) -> list[str]:
    """The lines on records and revisions; what is registered has tests of its own."""
    return [line for line, _ in publish(revs, everything) if not line.startswith("publish: models: ")]


def told(*revs: str) -> tuple[list[str], str]:
    """The lines of a `publish` that fails, and its error."""
    lines: list[str] = []
    try:
        for line, _ in publish(revs, everything=False):
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


class Published(NamedTuple):
    """A repository that was published once, not to be changed; what `publish` said, and what MLflow says."""

    root: Path
    lines: list[str]
    whole: dict[str, Any]


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory, laid_once: Path, database: Path) -> Published:
    root = tmp_path_factory.mktemp("whole")
    shutil.copytree(laid_once, root, symlinks=True, dirs_exist_ok=True)
    shutil.copy(database, root / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        for name in FOREIGN:
            patch.delenv(name, raising=False)
        patch.setenv("PIPELINE_TRACKING", "live")
        patch.chdir(root)
        lines = published()
        return Published(root, lines, snapshot(root, exact=False))


@pytest.fixture
def known(bare: Path, published_once: Published) -> LaidOut:
    """A repository of which MLflow has every stage."""
    shutil.copytree(published_once.root, bare, symlinks=True, dirs_exist_ok=True)
    with sqlite3.connect(bare / "mlflow.db") as database:
        for table, column in PLACES:
            moved = (str(published_once.root), str(bare))
            database.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", moved)
    return LaidOut(bare)


@pytest.fixture
def narrow(laid: LaidOut) -> LaidOut:
    """A repository of two stages, which are restored in a third of the time of all."""
    laid.lock(*TWO)
    laid.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    return laid


# What is restored


def test_stages_without_a_run_get_one_and_a_second_time_adds_nothing(known: LaidOut, published_once: Published) -> None:
    assert published_once.lines == [f"publish: {pipeline_id(published_once.root)}: 6 stages, 6 restored"]
    before = snapshot(known.root)
    (line,) = published()
    assert line.endswith(": 6 stages, 6 recorded")
    assert snapshot(known.root) == before


def test_a_restored_run_says_what_the_outputs_tell(published_once: Published) -> None:
    seen = Records(published_once.root)
    assert sorted(run.info.run_name for run in seen.runs()) == STAGES
    assert {run.data.tags["source"] for run in seen.runs()} == {"restored"}
    (parent,) = seen.parents()
    assert seen.points(parent, "online/sjf") == [(10, 1.25), (190, 4.5)]
    assert set(parent.data.metrics) == {"online/sjf", "online/fcfs", "online/deeprm"}
    assert parent.data.params["agents.deeprm.finetune.updates"] == "2000"  # of all rows, on the pipeline's own run
    assert len(parent.data.params) > LARGEST_BATCH
    assert parent.data.tags["mlflow.note.content"] == "first run: no run before it"
    compared = {item.dataset.name for item in seen.only("compare").inputs.dataset_inputs}
    assert {"reports/tables/agents/deeprm", "data/jobsets/online"} < compared
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


def test_a_deleted_database_is_rebuilt_the_same(known: LaidOut, database: Path, published_once: Published) -> None:
    shutil.rmtree(known.root / "mlartifacts")
    shutil.copy(database, known.root / "mlflow.db")
    published()
    assert snapshot(known.root, exact=False) == published_once.whole


def test_deleted_outputs_come_from_the_cache(laid: LaidOut, published_once: Published) -> None:
    laid.cache()
    for name in ("data/jobsets", "models", "reports"):
        shutil.rmtree(laid.root / name)
    published()
    assert snapshot(laid.root, exact=False) == published_once.whole


def test_outputs_that_are_kept_nowhere_are_named(laid: LaidOut) -> None:
    shutil.rmtree(laid.root / "models" / "deeprm" / "policy")
    laid.write("reports/curves/deeprm_finetune.csv", "not,the,one\n")
    published()
    run = Records(laid.root).only("finetune")
    assert run.data.tags["record.without"] == "models/deeprm/policy, reports/curves/deeprm_finetune.csv"
    assert (run.data.metrics, run.outputs.model_outputs) == ({}, [])


@pytest.mark.parametrize("after", [1, 6, 11, 14])
def test_a_publish_that_is_cut_short_is_finished_by_the_next(
    laid: LaidOut, published_once: Published, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(Delivery, "send", gone_after(after))
        with pytest.raises(UserError, match="publish: gone; no result is lost"):
            published()
    published()
    assert snapshot(laid.root, exact=False) == published_once.whole


# Which revisions


def test_a_commit_is_the_pipeline_run_of_the_tree_it_was_made_of(narrow: LaidOut) -> None:
    narrow.edit(lambda rows: rows["evaluation"].update(resamples=100))
    published()
    assert Records(narrow.root).parents()[0].data.tags["git.dirty"] == "true"
    commit = narrow.commit("two")
    narrow.git("tag", "v1")
    expected = f"publish: {pipeline_id(narrow.root)}: 2 stages, 2 recorded"
    assert published("HEAD", "v1", commit) == [expected] * 3
    tags = Records(narrow.root).parents()[0].data.tags
    assert (tags["git.commit"], tags["git.dirty"]) == (commit, "false")


def test_an_experiment_is_published_by_name_and_reuses_what_it_shares(known: LaidOut) -> None:
    known.cache()
    known.edit(lambda rows: rows["evaluation"].update(resamples=100))
    known.write("reports/comparison.md", "another one")
    known.lock()
    rev = known.experiment("bold")
    ((line, data),) = publish(["bold"], everything=False)
    assert line == f"publish: {data['pipeline']}: 6 stages, 5 reused, 1 restored"
    assert str(data.pop("pipeline")).startswith("bold-")
    assert data == {"revision": "bold", "recorded": 0, "reused": 5, "restored": 1, "stale": []}
    seen = Records(known.root)
    (bold,) = [run for run in seen.parents() if run.data.tags.get("dvc.exp.name") == "bold"]
    assert (bold.data.tags["git.rev"], bold.data.tags["git.commit"]) == (rev, known.git("rev-parse", "HEAD"))
    assert seen.points(bold, "online/deeprm") == [(10, 1.25), (190, 4.5)]
    first, second = seen.runs("finetune")
    assert {first.data.tags.get("reused.from"), second.data.tags.get("reused.from")} & {
        first.info.run_id,
        second.info.run_id,
    }
    assert first.outputs.model_outputs[0].model_id == second.outputs.model_outputs[0].model_id
    assert len(seen.client.search_logged_models([seen.experiment.experiment_id])) == 1


def test_a_workspace_with_an_experiments_content_is_that_experiment(narrow: LaidOut) -> None:
    narrow.edit(lambda rows: rows.update(seed=2))
    narrow.lock(*TWO)
    rev = narrow.experiment("same")
    published("same")
    narrow.git("checkout", "--quiet", rev, "--", "params.yaml", "dvc.lock")
    (line,) = published()
    assert line == f"publish: {pipeline_id(narrow.root)}: 2 stages, 2 recorded"
    assert line.startswith("publish: same-")


def test_all_is_every_experiment_commit_and_the_workspace(narrow: LaidOut) -> None:
    narrow.edit(lambda rows: rows.update(seed=2))
    narrow.lock(*TWO)
    narrow.experiment("bold")
    narrow.edit(lambda rows: rows.update(seed=3))
    narrow.lock(*TWO)
    lines = published(everything=True)
    assert [line.split()[1].split("-")[0] for line in lines] == ["bold", "repro", "repro"]
    assert len(Records(narrow.root).parents()) == 3
    before = snapshot(narrow.root)
    published(everything=True)
    assert snapshot(narrow.root) == before


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


def test_a_revision_of_older_code_is_one_line_and_the_others_are_published(narrow: LaidOut) -> None:
    narrow.edit(lambda rows: rows.update(momentum=0.9))
    narrow.commit("older")
    narrow.git("tag", "old")
    narrow.git("reset", "--quiet", "--hard", "HEAD~")
    lines, error = told("old", "HEAD")
    assert error == "publish: 1 of 2 skipped: old"
    assert lines[0] == "publish: skipped: old: params.yaml: momentum: unknown key"
    assert lines[1].endswith("2 stages, 2 restored")


def test_of_everything_a_commit_of_older_code_is_left_out_with_a_line(narrow: LaidOut) -> None:
    narrow.edit(lambda rows: rows.update(momentum=0.9, seed=7))
    narrow.lock(*TWO)
    narrow.commit("older")
    narrow.edit(lambda rows: rows.update(seed=8) or rows.pop("momentum"))
    narrow.lock(*TWO)
    narrow.commit("newer")
    *rows, (line, data) = (row for row in publish([], everything=True) if "models" not in row[1])
    (skipped,) = (row["skipped"] for _, row in rows if "skipped" in row)
    assert str(skipped).endswith("momentum: unknown key")
    assert [text for text, _ in rows if "skipped" in text] == [f"publish: skipped: {skipped}"]
    assert line.endswith("2 stages, 2 recorded")
    assert (data["revision"], data["recorded"]) == ("workspace", 2)


def test_without_stages_in_dvc_lock_there_is_one_line(laid: LaidOut) -> None:
    (laid.root / "dvc.lock").unlink()
    lines, error = told()
    assert lines == ["publish: skipped: dvc.lock: expected stages, found none: run 'dvc repro' first"]
    assert error == "publish: 1 of 1 skipped: workspace"
    laid.write("dvc.lock", "stages: [")
    assert told()[0][0].startswith("publish: skipped: dvc.lock:2: not YAML: ")


def test_off_publishes_nothing(laid: LaidOut, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    data = {"skipped": "PIPELINE_TRACKING is off"}
    assert list(publish([], everything=False)) == [("publish: skipped, because PIPELINE_TRACKING is off", data)]


# The spool


def spool(laid: LaidOut) -> list[Path]:
    return sorted((laid.root / ".dvc" / "tmp" / "mlflow-spool").iterdir())


def test_a_deleted_experiment_is_named_with_a_command_that_restores_it(
    known: LaidOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = MlflowClient(f"sqlite:///{known.root / 'mlflow.db'}")
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
    narrow: LaidOut, small: Params, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as away:
        away.setenv("MLFLOW_TRACKING_URI", NOWHERE)
        away.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        finetune(small)
        (kept,) = spool(narrow)
        with pytest.raises(
            UserError, match=r"^publish: API request to .* failed; no result is lost; once that is fixed, run it again$"
        ):
            published()
    assert len(capfd.readouterr().err.splitlines()) == 1
    assert spool(narrow) == [kept]
    spooled, line = published()
    assert spooled.startswith("publish: spooled: finetune@deeprm of repro-")
    assert spooled.endswith(", finished")
    assert line.endswith(": 2 stages, 1 recorded, 1 restored")
    assert spool(narrow) == []
    seen = Records(narrow.root)
    run = seen.only("finetune")
    assert "source" not in run.data.tags
    assert seen.points(run, "validation") == [(1, 2.5), (2, 2.25)]
    assert len(run.outputs.model_outputs) == 1
    before = snapshot(narrow.root)
    published()
    assert snapshot(narrow.root) == before


@pytest.mark.parametrize("after", [1, 3, 4, 5])
def test_a_spooled_record_that_is_sent_twice_is_there_once(
    narrow: LaidOut, small: Params, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(Delivery, "send", gone_after(after))
        finetune(small)
    assert len(spool(narrow)) == 1
    published()
    seen = Records(narrow.root)
    run = seen.only("finetune")
    assert run.info.status == "FINISHED"
    assert seen.points(run, "validation") == [(1, 2.5), (2, 2.25)]
    assert len(run.outputs.model_outputs) == 1
    assert len(seen.client.search_logged_models([seen.experiment.experiment_id])) == 1


def test_a_killed_stage_is_published_as_killed(narrow: LaidOut) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], env=environment(), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    seen = Records(narrow.root)
    assert seen.only("finetune").info.status == "RUNNING"
    spooled, line = published()
    assert spooled.endswith(", killed")
    assert line.endswith(": 2 stages, 2 restored")
    (killed,) = [run for run in seen.runs("finetune") if run.info.status == "KILLED"]
    assert seen.points(killed, "return") == [(7, 1.5)]
    assert len(killed.inputs.dataset_inputs) == 1


def test_a_stage_that_still_runs_is_left_alone(narrow: LaidOut, small: Params) -> None:
    with stage("finetune", "deeprm", small):
        (running, _) = published()
        assert running.endswith("its stage is still running")
        assert len(spool(narrow)) == 1
    assert spool(narrow) == []


def test_junk_in_the_spool_is_named_and_kept(narrow: LaidOut) -> None:
    for name, text in (("a.jsonl", "junk\nmore\n"), ("b.jsonl", '{"kind": "end", "at": 1, "status": "FINISHED"}\n')):
        narrow.write(f".dvc/tmp/mlflow-spool/{name}", text)
    first, second, _ = published()
    assert "a.jsonl: not the record of a stage" in first
    assert "b.jsonl: not the record of a stage (it does not begin with a stage)" in second
    assert len(spool(narrow)) == 2


def test_an_empty_record_goes(narrow: LaidOut) -> None:
    narrow.write(".dvc/tmp/mlflow-spool/a.jsonl", "")
    published()
    assert spool(narrow) == []
