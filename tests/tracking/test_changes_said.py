"""What `compare` says first, by what git and DVC's cache hold of an agent."""

from pathlib import Path

import pandas as pd
import pytest

from pipeline.core.config import Params
from pipeline.core.storage.evidence import Commit, Lock, Out
from pipeline.tracking import changes

RESULTS, JOBSETS = "reports/tables/agents/deeprm", "data/jobsets/online"
LOCK = Lock([Out(RESULTS, "old.dir", 1), Out(JOBSETS, "drawn.dir", 1)], [])


class Stored:
    """Outputs of the last commit: those that the workspace still has, and those that DVC's cache holds."""

    def __init__(self, here: dict[str, str], cached: bool) -> None:
        self._here, self._cached = here, cached

    def find(self, path: str, md5: str) -> Path | None:
        return Path(path) if md5 in ("new.dir", self._here.get(path)) else Path("cached") if self._cached else None


def results(*slowdowns: float) -> pd.DataFrame:
    rows = {"load": [60, 60, 90, 90], "jobset": [0, 1, 0, 1], "mean_slowdown": slowdowns, "unfinished": 0}
    return pd.DataFrame({"policy": "deeprm", **rows})


def said(
    params: Params,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    here: dict[str, str],
    cached: bool = True,
    lock: Lock = LOCK,
    mean: float = 2.0,
    committed: str = "deeprm",
) -> list[str]:
    """What is said where `deeprm` is the only agent."""
    only = params.model_copy(update={"agents": {"deeprm": params.agents["deeprm"]}})
    before = pd.DataFrame({"policy": [committed] * 2, "load": ["060", "all"], "mean": [9.0, mean]})
    frames = {Path("cached"): results(1, 1, 3, 3), Path(RESULTS): results(2, 2, 3, 3)}
    monkeypatch.setattr(changes, "results", lambda params, agent, place: frames[place])

    def measured(path: Path) -> str:
        if not (md5 := here.get(path.as_posix(), "new.dir")):
            raise FileNotFoundError(path)
        return md5

    monkeypatch.setattr(changes, "measured", measured)
    monkeypatch.setattr(changes, "StoredOutputs", lambda scratch: Stored(here, cached))
    monkeypatch.setattr(changes.evidence, "head", lambda: Commit("0123456789abcdef", "one", []))
    monkeypatch.setattr(changes.evidence, "committed_lock", lambda: lock)
    monkeypatch.setattr(changes.evidence, "committed_table", lambda path, columns: before if lock.outs else None)
    changes.report_changes(only)
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("here", "cached", "line"),
    [
        ({JOBSETS: "drawn.dir"}, True, "deeprm: 2.00 -> 2.50 (+25 %, range 0 to 25)"),
        (
            {JOBSETS: "drawn.dir"},
            False,
            "deeprm: 2.00 -> 2.50 (+25 %; no interval: the previous results are in no cache here)",
        ),
        ({}, True, "deeprm: 2.00 -> 2.50 (+25 %; no interval: other jobsets)"),
    ],
    ids=["paired", "not cached", "other jobsets"],
)
def test_an_agent_that_moved_comes_first(
    params: Params,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    here: dict[str, str],
    cached: bool,
    line: str,
) -> None:
    first, last = said(params, monkeypatch, capsys, here, cached)
    assert first == line
    assert last == (
        "compare: against 0123456789, each by its objective over all loads; 0 agents unchanged; "
        "all of them: reports/comparison.md"
    )


def test_an_agent_that_did_not_is_counted(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = said(params, monkeypatch, capsys, {RESULTS: "old.dir"})
    assert line == "compare: against 0123456789: 1 agent unchanged; all of them: reports/comparison.md"


def test_an_agent_that_the_commit_does_not_have_is_new(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = Lock([Out(JOBSETS, "drawn.dir", 1)], [])
    assert said(params, monkeypatch, capsys, {}, lock=lock, committed="deeprm2")[0] == "deeprm: new, 2.50"


def test_without_results_in_the_commit_nothing_is_said(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(params, monkeypatch, capsys, {}, lock=Lock([], [])) == []


def test_missing_jobsets_are_other_jobsets(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(params, monkeypatch, capsys, {JOBSETS: ""})[0].endswith("no interval: other jobsets)")


def test_missing_results_are_left_to_compare(
    params: Params, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(params, monkeypatch, capsys, {RESULTS: ""})
    assert lines == ["compare: against 0123456789: 1 agent unchanged; all of them: reports/comparison.md"]
