"""Changes between two states of the repository, by the md5 in their dvc.lock."""

from pathlib import Path

import pandas as pd
import pytest

from pipeline.core.config import Params
from pipeline.tracking import changes
from pipeline.tracking.digests import StoredOutputs
from pipeline.tracking.source_tree import SourceTree

RESULTS, JOBSETS = "reports/tables/agents/deeprm", "data/jobsets/online"


class Tree(SourceTree):
    """A tree with outputs, and the parameters of one agent."""

    def __init__(self, outs: dict[str, str], params: Params) -> None:
        super().__init__({}, "")
        self.lock = {"one": {"outs": [{"path": path, "md5": md5} for path, md5 in outs.items()]}}
        self.params = params


class Stored:
    """Results that are somewhere, by md5."""

    def __init__(self, *md5s: str) -> None:
        self._md5s = md5s

    def find(self, path: str, md5: str) -> Path | None:
        return Path(md5) if md5 in self._md5s else None


def found(
    params: Params, monkeypatch: pytest.MonkeyPatch, stored: tuple[str, ...], was: dict[str, str]
) -> dict[str, float]:
    """The metrics of a tree with new results of `deeprm` against an earlier one."""
    only = params.model_copy(update={"agents": {"deeprm": params.agents["deeprm"]}})
    frames = {"old": (1.0, 1.0, 3.0, 3.0), "new": (2.0, 2.0, 3.0, 3.0)}

    def read(_: Params, agent: str, place: Path) -> pd.DataFrame:
        rows = {"load": [60, 60, 90, 90], "jobset": [0, 1, 0, 1], "mean_slowdown": frames[place.name], "unfinished": 0}
        return pd.DataFrame({"policy": agent, **rows})

    monkeypatch.setattr(changes, "results", read)
    now = Tree({RESULTS: "new", JOBSETS: "drawn"}, only)
    return changes.between(Tree(was, only), now, Stored(*stored))  # type: ignore[arg-type]


def test_a_changed_agent_has_its_percent_and_interval(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    values = found(params, monkeypatch, ("old", "new"), {RESULTS: "old", JOBSETS: "drawn"})
    assert (values["change"], values["deeprm change"]) == (25, 25)
    assert values["change from"] <= 25 <= values["change to"] == values["deeprm change to"]


@pytest.mark.parametrize(
    ("stored", "was"),
    [
        (("old", "new"), {RESULTS: "new", JOBSETS: "drawn"}),
        (("old", "new"), {RESULTS: "old", JOBSETS: "others"}),
        (("old", "new"), {JOBSETS: "drawn"}),
        (("old",), {RESULTS: "old", JOBSETS: "drawn"}),
        (("new",), {RESULTS: "old", JOBSETS: "drawn"}),
    ],
    ids=["unchanged", "other jobsets", "new agent", "no results", "no previous results"],
)
def test_without_a_pair_of_results_there_are_no_numbers(
    params: Params, monkeypatch: pytest.MonkeyPatch, stored: tuple[str, ...], was: dict[str, str]
) -> None:
    assert found(params, monkeypatch, stored, was) == {}


def test_an_output_without_md5_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(StoredOutputs, "_cache", tmp_path / "cache")
    assert StoredOutputs(tmp_path / "scratch").find(RESULTS, "") is None
