"""Agents as registered models: versions, cards and verdicts, added once."""

import contextlib
import hashlib
import json
import shutil
from pathlib import Path

import mlflow
import pytest
from laid_out import LaidOut, snapshot
from mlflow.entities.model_registry import ModelVersion
from tracking_records import Records

from pipeline.core.config import Params, load_params
from pipeline.tracking import stage
from pipeline.tracking.digests import measured
from pipeline.tracking.publish import publish
from pipeline.tracking.registry import Verdict, verdicts

NAME = "scheduler-deeprm"
HEADER = "scenario,load,policy,against,n,difference,difference_low,difference_high\n"
NEEDED = ("finetune@deeprm", "compare")


@pytest.fixture(scope="module")
def few_stages(tmp_path_factory: pytest.TempPathFactory, laid_once: Path) -> Path:
    """A repository with only the stages that matter to a registered model: others take time to restore."""
    place = tmp_path_factory.mktemp("few") / "root"
    shutil.copytree(laid_once, place, symlinks=True)
    with contextlib.chdir(place):
        made = LaidOut(place)
        made.lock(*NEEDED)
        made.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    return place


@pytest.fixture
def laid(root: Path, few_stages: Path) -> LaidOut:
    """A copy of it, and a database that knows nothing of it."""
    shutil.copytree(few_stages, root, symlinks=True, dirs_exist_ok=True)
    return LaidOut(root)


def said(everything: bool = False) -> list[str]:
    return [line for line, _ in publish([], everything) if line.startswith("publish: models: ")]


def versions(laid: LaidOut) -> list[ModelVersion]:
    found = Records(laid.root).client.search_model_versions(f"name = '{NAME}'")
    return sorted(found, key=lambda one: int(one.version))


def registered(laid: LaidOut) -> list[tuple[object, ...]]:
    """What the pages of models show, and when each was changed."""
    models = Records(laid.root).client.search_registered_models()
    held = [(one.version, one.description, one.tags, one.last_updated_timestamp) for one in versions(laid)]
    return [*held, *((one.description, one.tags, one.last_updated_timestamp) for one in models)]


def another_policy(laid: LaidOut) -> None:
    card = laid.root / "models/deeprm/policy/policy.json"
    card.write_text(card.read_text() + " ")


def test_a_published_agent_is_a_model_with_a_card_and_its_verdict(laid: LaidOut) -> None:
    assert said() == [f"publish: models: {NAME} 1 registered"]
    seen = Records(laid.root)
    (model,) = seen.client.search_registered_models()
    short = "better: -2.0 % (-3.0 to -1.0)"
    assert model.tags == {"scenario": "online", "objective": "slowdown", "verdict": short}
    assert "on 6 test jobsets" in model.description
    assert f"**{short}**" in model.description
    assert "Network `mlp`; pretraining `none`; then `reinforce`, recipe `ours`, 2000 updates." in model.description
    (one,) = versions(laid)
    assert (one.tags["verdict.low"], one.tags["verdict.high"], one.tags["verdict.word"]) == ("-0.03", "-0.01", "better")
    assert one.run_id == seen.only("finetune").info.run_id
    data = {path: md5 for path, md5 in one.tags.items() if path.startswith("dvc.in.")}
    assert data == {
        f"dvc.in.{of.dataset.name}": of.dataset.digest for of in seen.only("finetune").inputs.dataset_inputs
    }
    assert len(data) > 0
    learned = json.dumps(seen.only("finetune").data.params, sort_keys=True)
    assert one.tags["params.md5"] == hashlib.md5(learned.encode()).hexdigest()
    assert one.tags["git.commit"] == laid.git("rev-parse", "HEAD").strip()
    assert one.tags["git.dirty"] == "false"
    (logged,) = seen.client.search_logged_models([seen.experiment.experiment_id])
    assert logged.tags["mlflow.modelVersions"] == f'[{{"name": "{NAME}", "version": 1}}]'


def test_a_registered_version_loads_by_its_name(laid: LaidOut, monkeypatch: pytest.MonkeyPatch) -> None:
    list(publish([], everything=False))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{laid.root}/mlflow.db")
    assert mlflow.pyfunc.load_model(f"models:/{NAME}/1").metadata.signature is not None
    assert not list(laid.root.glob("mlartifacts/**/*.pkl"))


def test_publishing_again_adds_and_changes_nothing(laid: LaidOut) -> None:
    said()
    before = snapshot(laid.root)
    assert said() == []
    assert snapshot(laid.root) == before
    assert len(versions(laid)) == 1


def test_a_new_policy_is_the_next_version_and_the_first_keeps_its_verdict(laid: LaidOut) -> None:
    said()
    another_policy(laid)
    laid.compared(0.05, -0.01, 0.11)
    laid.lock(*NEEDED)
    assert said() == [f"publish: models: {NAME} 2 registered"]
    assert [one.tags["verdict.word"] for one in versions(laid)] == ["better", "not clearly apart"]
    (model,) = Records(laid.root).client.search_registered_models()
    assert model.tags["verdict"] == "not clearly apart: +5.0 % (-1.0 to +11.0)"


def test_another_verdict_on_the_same_policy_replaces_the_first(laid: LaidOut) -> None:
    said()
    laid.compared(0.05, 0.01, 0.11)
    laid.lock(*NEEDED)
    assert said() == []
    assert [one.tags["verdict"] for one in versions(laid)] == ["worse: +5.0 % (+1.0 to +11.0)"]
    assert "**worse" in versions(laid)[0].description


def test_of_all_revisions_each_policy_is_registered_once(laid: LaidOut) -> None:
    laid.write(".git/info/exclude", ".dvc/cache\n")
    laid.cache()
    another_policy(laid)
    laid.lock(*NEEDED)
    laid.experiment("bold")
    laid.compared(0.05, 0.01, 0.11)
    laid.lock(*NEEDED)
    assert said(everything=True) == [f"publish: models: {NAME} 1, {NAME} 2 registered"]
    before = registered(laid)
    assert said(everything=True) == []
    assert registered(laid) == before
    assert [one.tags["verdict.word"] for one in versions(laid)] == ["worse", "better"]


def test_a_comparison_that_is_older_than_the_policy_is_no_verdict_on_it(laid: LaidOut) -> None:
    laid.edit(lambda rows: rows["evaluation"].update(resamples=100))
    said()
    (one,) = versions(laid)
    assert not [key for key in one.tags if key.startswith("verdict")]
    assert "Not compared yet." in one.description


def test_the_last_stage_registers_what_the_run_has_sent(laid: LaidOut) -> None:
    params = load_params()
    with stage("finetune", "deeprm", params) as run:
        run.model(Path("models/deeprm/policy"))
    assert Records(laid.root).client.search_registered_models() == []
    with stage("papers", "", params):
        pass
    assert [one.tags["verdict.word"] for one in versions(laid)] == ["better"]


def test_waiting_time_decides_where_agents_are_trained_for_it(params: Params, tmp_path: Path) -> None:
    slowdown, delay = tmp_path / "slowdown.csv", tmp_path / "delay.csv"
    rows = "shares,all,controller,best_heuristic,9,0.5,0.4,0.6\nonline,all,deeprm,best_heuristic,9,0.1,-0.1,0.3\n"
    slowdown.write_text(HEADER + rows + rows.replace("all", "080").replace("0.5", "7"))
    delay.write_text(HEADER + rows.replace("0.5,0.4,0.6", "-0.05,-0.08,-0.02"))
    found = verdicts(params, slowdown, delay)
    assert found["controller"] == Verdict("waiting time", 9, -0.05, -0.08, -0.02, 0.95)
    assert found["deeprm"] == Verdict("slowdown", 9, 0.1, -0.1, 0.3, 0.95)
    assert set(found) == {"controller", "deeprm"}


def champion(laid: LaidOut, digest: str, scenario: str = "online") -> None:
    line = {"policy": "deeprm", "digest": digest, "verdict": "against hold -5.0 %"}
    laid.write("champions.yaml", f"{scenario}: {line}\n")


def crowned(laid: LaidOut) -> dict[str, str]:
    """The aliases of the model, and the tags of champions by version."""
    (model,) = Records(laid.root).client.search_registered_models()
    tags = {
        f"{one.version} {key}": said for one in versions(laid) for key, said in one.tags.items() if "champion" in key
    }
    return {**{name: str(number) for name, number in model.aliases.items()}, **tags}


def test_the_champion_has_an_alias_and_a_tag_which_follow_its_line(laid: LaidOut) -> None:
    first = measured(Path("models/deeprm/policy"))
    champion(laid, first)
    said()
    assert crowned(laid) == {"champion": "1", "1 champion.online": "against hold -5.0 %"}
    another_policy(laid)
    laid.lock(*NEEDED)
    said()
    assert crowned(laid) == {"champion": "1", "1 champion.online": "against hold -5.0 %"}
    champion(laid, measured(Path("models/deeprm/policy")), "streams")
    said()
    assert crowned(laid) == {"champion": "2", "2 champion.streams": "against hold -5.0 %"}
    champion(laid, "of a model that was never registered")
    said()
    assert crowned(laid) == {}


def test_the_alias_is_rebuilt_with_the_database(laid: LaidOut) -> None:
    champion(laid, measured(Path("models/deeprm/policy")))
    said()
    before = crowned(laid)
    (laid.root / "mlflow.db").unlink()
    said()
    assert crowned(laid) == before != {}
