"""`repro`: stale stages, MLflow's view and the report in one command; the second run does next to nothing."""

import pytest
from repositories import AGENTS, NOTHING, Folder

REPRO = ("python", "-m", "pipeline", "repro")
WRITTEN = "opens in any browser"  # output of writing the report


def test_all_is_brought_up_to_date_and_the_second_time_nothing_is_done(folder: Folder) -> None:
    folder.edit(agents={"plain": AGENTS["plain"]})
    said = folder.run(*REPRO)
    assert "of rows that params.yaml does not have (cloned)" in said
    assert not (folder.root / "models" / "cloned").exists()
    assert "farm: 3 of" in said
    assert WRITTEN in said
    assert folder.dvc("status").strip() == NOTHING
    page = (folder.root / "reports" / "index.html").read_bytes()

    again = folder.run(*REPRO)
    assert "farm: no stage is stale" in again
    assert WRITTEN not in again
    assert again.rstrip().endswith("the report: reports/index.html; runs: make ui")
    assert (folder.root / "reports" / "index.html").read_bytes() == page

    folder.git("commit", "--quiet", "--all", "-m", "one agent")
    assert WRITTEN in folder.run(*REPRO), "the report speaks of the last commit"


def test_where_mlflow_cannot_be_reached_the_report_is_written_all_the_same(folder: Folder) -> None:
    (folder.root / "not").write_text("a file, where a folder should be")
    nowhere = {"PIPELINE_TRACKING": "on", "MLFLOW_TRACKING_URI": f"sqlite:///{folder.root}/not/there/mlflow.db"}
    said = folder.run(*REPRO, **nowhere)
    assert "MLflow's view is not complete; the results are" in said
    assert WRITTEN in said
    assert not (folder.root / ".cache" / "repro").exists(), "it is tried again"


@pytest.mark.slow
def test_a_view_of_mlflow_that_is_gone_is_made_again(folder: Folder) -> None:
    tracked = {"PIPELINE_TRACKING": "on"}
    assert "publish: " in folder.run(*REPRO, **tracked)
    assert "publish: " not in folder.run(*REPRO, **tracked)
    (folder.root / "mlflow.db").unlink()
    assert "publish: " in folder.run(*REPRO, **tracked)
    assert (folder.root / "mlflow.db").exists()
    (folder.root / "reports" / "index.html").unlink()
    assert WRITTEN in folder.run(*REPRO, **tracked)
