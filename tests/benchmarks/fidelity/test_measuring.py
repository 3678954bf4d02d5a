"""A smaller measurement on a real Slurm."""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.fidelity.measuring import run
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import why_not
from pipeline.core.storage.files import read_table


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
