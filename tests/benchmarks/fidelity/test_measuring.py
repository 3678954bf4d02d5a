"""A smaller measurement on a real Slurm cluster."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.fidelity.jobs import USERS
from benchmarks.fidelity.measuring import cluster_of, run
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.accounting import why_no_accounting
from benchmarks.slurm.clock import why_no_clock
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import why_not
from pipeline.core.storage.files import read_table

REASON = why_not() or why_no_accounting() or why_no_clock()


@pytest.mark.slow
@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_with_fair_share_a_real_slurm_waits_as_long_as_the_replay(tmp_path: Path) -> None:
    """Mean waits lie within 25 % of Slurm's: the kept plays differ by up to 2.2 %, but of 80 jobs and five repeats."""
    cluster = cluster_of(2, 60)
    found, said = run(tmp_path / "plays.csv", 30, 2, 7, cluster)
    plays: pd.DataFrame = read_table(tmp_path / "plays.csv", PLAYS)
    assert (len(plays), plays["user"].nunique()) == (3 * 2 * 30, len(USERS))
    assert plays["run_s"].min() >= 60
    assert (plays["start_s"] - plays["submit_s"]).max() > 300
    rows: Any = found["figures"]
    waits = {row["order"]: row["ours"] / row["mean"] for row in rows if row["measure"] == "mean_wait"}
    assert {row["player"] for row in rows} == {"planned, drawn"}
    assert len(waits) == 3
    assert all(abs(ratio - 1) < 0.25 for ratio in waits.values()), said


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_real_slurm_and_the_simulator_play_the_same_jobs(tmp_path: Path) -> None:
    """Mean waits lie within 40 % of Slurm's: the kept plays differ by up to 28 %, and this is one busy machine."""
    _, said = run(tmp_path / "plays.csv", 30, 2, 7, Cluster())
    plays: pd.DataFrame = read_table(tmp_path / "plays.csv", PLAYS)
    assert len(plays) == 3 * 2 * 30
    assert (plays["end_s"] - plays["start_s"] >= plays["run_s"]).all()
    assert (plays["start_s"] >= plays["submit_s"]).all()
    waits = [
        line.split() for line in said if line.startswith("easy, drawn") and "mean wait" in line and "Slurm" in line
    ]
    assert len(waits) == 3
    for line in waits:
        ours, theirs = float(line[5].rstrip(",")), float(line[7])
        assert abs(ours / theirs - 1) < 0.4, line
