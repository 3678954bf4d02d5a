"""Slurm finds what is found here; what is not there is one line."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from executed import killed_once, refused, sums, threads, total

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm, why_not
from pipeline.errors import UserError
from pipeline.execution import on_slurm
from pipeline.execution.commands import FOLDER, Setting
from pipeline.execution.executor import executor

TWO = Setting(backend="slurm", workers=2)
needs_slurm = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackSlurm]:
    with slurm(Cluster(nodes=2)) as running:
        monkeypatch.setenv("SLURM_CONF", str(running.folder / "slurm.conf"))
        yield running


def test_without_slurm_it_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(UserError, match=r"^executor: squeue: No such file or directory$"):
        found(TWO)


def found(setting: Setting) -> list[int]:
    with executor(1, setting) as workers:
        return workers.map(abs, [-1, -2])


@pytest.mark.slow
@needs_slurm
def test_jobs_find_what_is_found_here_on_their_threads_also_when_one_is_killed(
    cluster: LoopbackSlurm, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = sums(place, 7)
    torch.set_num_threads(3)
    with executor(3, TWO) as workers:
        assert [one.tobytes() for one in workers.map(total, tasks)] == [total(task).tobytes() for task in tasks]
        assert workers.map(threads, [0, 1]) == [(3, 3, "3")] * 2
        assert workers.map(killed_once, tasks) == [float(task.values.sum()) for task in tasks]
        assert "a worker was lost" in capsys.readouterr().err
        with pytest.raises(UserError, match=r"^task 2: expected another$"):
            workers.map(refused, [0, 1, 2])
    assert [path for path in (place / FOLDER).glob("*") if path.suffix != ".task"] == []
    cluster.until(lambda: cluster.states() == {}, "no job left")


@pytest.mark.slow
@needs_slurm
def test_what_srun_refuses_is_one_line(cluster: LoopbackSlurm) -> None:
    with pytest.raises(UserError, match=r"^executor: srun: error: .*Invalid partition name specified$"):
        found(Setting(backend="slurm", workers=1, partition="nowhere"))
    cluster.until(lambda: cluster.states() == {}, "no job left")


@pytest.mark.slow
@needs_slurm
def test_jobs_that_no_node_takes_are_told_of(
    cluster: LoopbackSlurm, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def fixed(text: str) -> None:
        """Do what the line asks for."""
        told.append(text)
        if "lets none" in text:
            cluster.ask("scontrol", "update", "nodename=n[1-2]", "state=resume")

    cluster.ask("scontrol", "update", "nodename=n[1-2]", "state=drain", "reason=odd")
    monkeypatch.setattr(on_slurm, "PATIENT_S", 1.0)
    monkeypatch.setattr(on_slurm, "say", fixed)
    with executor(1, TWO) as workers:
        assert workers.map(abs, [-1, -2]) == [1, 2]
    (line,) = told
    assert re.match(r"executor: Slurm lets none of its 2 jobs run: .*(DOWN|DRAINED|Nodes|Resources)", line)
