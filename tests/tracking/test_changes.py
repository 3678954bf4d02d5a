"""Changes between two states of the repository, by the md5 of their outputs, and between pipeline runs in MLflow."""

from pathlib import Path

import pandas as pd
import pytest
from mlflow.entities import Dataset, DatasetInput
from tracking_records import Records

from pipeline.core.config import Params
from pipeline.tracking import changes
from pipeline.tracking.changes import AGAINST, FIRST, LOST, compare_runs
from pipeline.tracking.digests import StoredOutputs
from pipeline.tracking.store import open_store

RESULTS, JOBSETS = "reports/tables/agents/deeprm", "data/jobsets/online"


SLOWDOWNS = {"old": (1.0, 1.0, 3.0, 3.0), "new": (2.0, 2.0, 3.0, 3.0)}


class Stored:
    """Results that are somewhere, by md5."""

    def __init__(self, *md5s: str) -> None:
        self._md5s = md5s

    def find(self, path: str, md5: str) -> Path | None:
        return Path(md5) if md5 in self._md5s else None


@pytest.fixture
def only(params: Params, monkeypatch: pytest.MonkeyPatch) -> Params:
    """Parameters of one agent, whose results are known by their md5."""

    def read(_: Params, agent: str, place: Path) -> pd.DataFrame:
        slowdowns = SLOWDOWNS[place.name]
        rows = {"load": [60, 60, 90, 90], "jobset": [0, 1, 0, 1], "mean_slowdown": slowdowns, "unfinished": 0}
        return pd.DataFrame({"policy": agent, **rows})

    monkeypatch.setattr(changes, "results", read)
    return params.model_copy(update={"agents": {"deeprm": params.agents["deeprm"]}})


def found(only: Params, stored: tuple[str, ...], was: dict[str, str]) -> dict[str, changes.Gap | str]:
    """The changes of new results of `deeprm` against earlier ones."""
    now = {RESULTS: "new", JOBSETS: "drawn"}
    return dict(changes.changes(only, was, now, Stored(*stored)))  # type: ignore[arg-type]


def test_a_changed_agent_has_its_change_and_interval(only: Params) -> None:
    gap = found(only, ("old", "new"), {RESULTS: "old", JOBSETS: "drawn"})["deeprm"]
    assert isinstance(gap, changes.Gap)
    assert gap.difference == 0.25
    assert gap.low <= 0.25 <= gap.high


@pytest.mark.parametrize(
    ("stored", "was", "reason"),
    [
        (("old", "new"), {RESULTS: "new", JOBSETS: "drawn"}, None),
        (("old", "new"), {RESULTS: "old", JOBSETS: "others"}, "other jobsets"),
        (("old", "new"), {JOBSETS: "drawn"}, "new"),
        (("old",), {RESULTS: "old", JOBSETS: "drawn"}, "the previous results are in no cache here"),
        (("new",), {RESULTS: "old", JOBSETS: "drawn"}, "the previous results are in no cache here"),
    ],
    ids=["unchanged", "other jobsets", "new agent", "no results", "no previous results"],
)
def test_without_a_pair_of_results_there_is_a_reason(
    only: Params, stored: tuple[str, ...], was: dict[str, str], reason: str | None
) -> None:
    assert found(only, stored, was) == ({} if reason is None else {"deeprm": reason})


def test_an_agent_that_params_no_longer_have_is_named(only: Params) -> None:
    now = {RESULTS: "new", "reports/tables/agents/gone": "new", "data/jobsets/gone": "new"}
    moved = dict(changes.changes(only, {RESULTS: "new"}, now, Stored()))  # type: ignore[arg-type]
    assert moved == {"gone": "not in params.yaml"}


def test_scenarios_are_named_the_most_changed_first_and_names_fit_a_column() -> None:
    moved = {
        one: changes.Gap(size, size - 0.1, size + 0.1, 50) for one, size in (("a_very_long_name", 0.1), ("b", -0.5))
    }
    text, values = changes.answer(moved, {"a_very_long_name": "online", "b": "shares", "c": "shares"})
    assert text == "-20 %, -30 to -10: shares (b), online (a_very_long_name)"
    names = [f"{name}{end}" for name in ("Change", "a_very_l", "b") for end in ("", " lo", " up")]
    assert list(values) == names == sorted(names)  # as MLflow shows them
    assert max(map(len, names)) <= 12


def test_names_with_a_common_beginning_are_longer() -> None:
    agents = ["deeprm3", "deeprm3_off", "deepk8s_ppo", "deepk8s_a3c"]
    _, values = changes.answer(dict.fromkeys(agents, changes.Gap(0.1, 0, 0.2, 9)), dict.fromkeys(agents, "online"))
    heads = [name for name in values if not name.endswith((" lo", " up"))]
    assert heads == ["Change", "deeprm3", "deeprm3_", "deepk8s_p", "deepk8s_a"]


@pytest.fixture
def several(root: Path, only: Params, monkeypatch: pytest.MonkeyPatch) -> Records:
    """A database with an experiment, in which results are found by their md5."""
    monkeypatch.setattr(changes, "StoredOutputs", lambda _: Stored("old", "new"))
    open_store()
    return Records(root)


def compared(seen: Records, at: int, name: str, md5: str, parent: str = "") -> str:
    """Record `compare` of a pipeline run, by default of a new one, and return the id of the pipeline run.

    Without an md5, it has no inputs, like a run of an earlier version.
    """
    experiment, at = seen.experiment.experiment_id, 1000 + at  # 0 would mean now
    if not parent:
        parent = seen.client.create_run(experiment, at, {"stage": "pipeline"}, name).info.run_id
    tags = {"stage": "compare", "mlflow.parentRunId": parent, "pipeline.id": f"{name}-0123"}
    tags |= {} if name == "base" else {"dvc.exp.name": name}
    run = seen.client.create_run(experiment, at, tags)
    paths = ((RESULTS, md5), (JOBSETS, "drawn")) if md5 else ()
    inputs = [DatasetInput(Dataset(path, one, "code", "{}"), []) for path, one in paths]
    seen.client.log_inputs(run.info.run_id, inputs)
    seen.client.set_terminated(run.info.run_id)
    return parent


def said(seen: Records, parent: str) -> tuple[str, dict[str, float]]:
    data = seen.client.get_run(parent).data
    return data.tags.get("mlflow.note.content", ""), data.metrics


def test_each_run_is_compared_with_the_one_before_it(several: Records, only: Params) -> None:
    runs = [
        compared(several, at, name, md5)
        for at, (name, md5) in enumerate([("base", "old"), ("few", "new"), ("more", "old")])
    ]
    compare_runs(open_store(), only)
    (base, none), (few, plus), (more, minus) = (said(several, run) for run in runs)
    assert (base, none) == (FIRST, {})
    assert few == "+25 %, range 0 to 25: online (deeprm); vs base-0123"
    assert plus == {
        f"{name}{end}": of for name in ("Change", "deeprm") for end, of in (("", 25), (" lo", 0), (" up", 25))
    }
    assert more.endswith(": online (deeprm); vs few")
    assert minus["Change"] == -20


def test_a_run_with_the_same_results_has_a_change_of_zero(several: Records, only: Params) -> None:
    _, again = (compared(several, at, name, "old") for at, name in enumerate(["base", "again"]))
    compare_runs(open_store(), only)
    assert said(several, again) == (
        "no result changed; vs base-0123",
        dict.fromkeys(("Change", "Change lo", "Change up"), 0),
    )


def test_a_run_that_has_its_answer_keeps_it(several: Records, only: Params) -> None:
    first, second = compared(several, 0, "base", "old"), compared(several, 2, "few", "new")
    compare_runs(open_store(), only)
    compared(several, 1, "between", "new")
    compared(several, 3, "base", "old", first)  # `compare` again
    later = compared(several, 4, "more", "new")
    compare_runs(open_store(), only)
    assert said(several, first)[0] == FIRST
    assert [said(several, run)[0].rpartition("; ")[2] for run in (second, later)] == ["vs base-0123", "vs base-0123"]
    marks = {run.info.run_name: run.data.tags.get(AGAINST, "") for run in several.parents()}
    assert marks == {"base": "", "few": "base-0123", "between": "base-0123", "more": "base-0123"}


def test_runs_of_earlier_versions_and_of_deleted_pipelines_are_passed_over(several: Records, only: Params) -> None:
    base, without = compared(several, 0, "base", "old"), compared(several, 1, "without", "")
    several.client.delete_run(compared(several, 2, "deleted", "new"))
    few = compared(several, 3, "few", "new")
    compare_runs(open_store(), only)
    assert [said(several, run)[0] for run in (base, without)] == [FIRST, ""]
    assert said(several, few)[0].endswith("; vs base-0123")


def test_a_run_whose_results_are_elsewhere_is_left_to_that_clone(several: Records, only: Params) -> None:
    compared(several, 0, "base", "old")
    theirs, ours = compared(several, 1, "theirs", "elsewhere"), compared(several, 2, "ours", "new")
    compare_runs(open_store(), only)
    assert said(several, theirs) == ("", {})
    assert said(several, ours)[0].endswith("; vs base-0123")


def test_runs_of_other_clones_do_not_hide_an_earlier_one_of_this_clone(several: Records, only: Params) -> None:
    compared(several, 0, "base", "old")
    for at in range(1, 8):
        compared(several, at, f"theirs {at}", "elsewhere")
    ours = compared(several, 9, "ours", "new")
    compare_runs(open_store(), only)
    assert said(several, ours)[0].endswith("; vs base-0123")


def test_without_earlier_results_a_run_says_so_until_there_are_some(several: Records, only: Params) -> None:
    compared(several, 0, "theirs", "elsewhere")
    ours = compared(several, 2, "ours", "new")
    compare_runs(open_store(), only)
    assert said(several, ours) == (LOST, {})
    compared(several, 1, "sent later", "old")
    compare_runs(open_store(), only)
    assert said(several, ours)[0].endswith("; vs sent later")


def test_a_description_of_a_user_stays(several: Records, only: Params) -> None:
    compared(several, 0, "base", "old")
    few = compared(several, 1, "few", "new")
    several.client.set_tag(few, "mlflow.note.content", "for the paper")
    compare_runs(open_store(), only)
    text, values = said(several, few)
    assert (text, values["Change"]) == ("for the paper", 25)


def test_at_most_the_requested_number_of_runs_is_described(several: Records, only: Params) -> None:
    runs = [compared(several, at, f"run {at}", "old" if at % 2 else "new") for at in range(4)]
    compare_runs(open_store(), only, most=2)
    assert [bool(said(several, run)[0]) for run in runs] == [False, False, True, True]


def test_an_output_without_md5_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(StoredOutputs, "_cache", tmp_path / "cache")
    assert StoredOutputs(tmp_path / "scratch").find(RESULTS, "") is None
