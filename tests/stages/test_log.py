"""Stage `log`: its outputs for DVC are links to a user's log and policies, or notes where there are none."""

from pathlib import Path

import pytest

from pipeline.core.config import External, Params, PoolLog
from pipeline.core.storage import LOG, policy_folder
from pipeline.stages import log


def test_outputs_follow_the_log_and_the_policies_of_params(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("jobs")
    (tmp_path / "mine.py").write_text("rule = None")
    log.run(params)
    assert LOG.read_text() == "The workload is synthetic: there is no log.\n"
    assert not policy_folder("mine").exists()
    mine = External(problem="pool", scenario="online", policy="mine.py:rule", objective="slowdown")
    ours = {"workload": PoolLog(name="log", path="jobs.csv"), "policies": {"mine": mine}}
    log.run(params.model_copy(update=ours))
    assert LOG.resolve() == tmp_path / "jobs.csv"
    assert [file.resolve() for file in policy_folder("mine").iterdir()] == [tmp_path / "mine.py"]
    log.run(params)
    assert (LOG.is_symlink(), policy_folder("mine").exists()) == (False, False)
    assert (tmp_path / "jobs.csv").read_text() == "jobs"
