"""A Slurm cluster on loopback starts, plays a job, and leaves nothing, however it is left."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.slurm import loopback
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import EPHEMERAL, own_ports, slurm, why_not
from pipeline.errors import UserError

ASKED = "with found.own_ports(4) as ports: print(*ports)"
needs_slurm = pytest.mark.skipif(bool(why_not()), reason=why_not())


def test_without_slurm_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = r"no munged, .*squeue \(Debian: apt-get install munge slurmctld slurmd slurm-client\)"
    with pytest.raises(UserError, match=said), slurm():
        pass


def test_ports_are_several_that_no_connection_gets() -> None:
    with own_ports(5) as found:
        assert len(set(found)) == 5
    if EPHEMERAL.exists():
        low, high = map(int, EPHEMERAL.read_text().split())
        assert not [port for port in found if low <= port <= high]


def test_a_port_is_given_once_until_its_cluster_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that start at once must not meet: their servers listen only a moment later."""
    monkeypatch.setattr(loopback, "PORTS", 6)
    asking = [sys.executable, "-c", "from benchmarks.slurm import loopback as found; found.PORTS = 6\n" + ASKED]
    with own_ports(4) as mine:
        other = subprocess.run(asking, capture_output=True, text=True, check=True).stdout.split()
        assert len(other) <= 2
        assert not {int(port) for port in other} & set(mine)
        with own_ports(4) as more:
            assert not set(more) & set(mine)
    with own_ports(4) as again:
        assert len(again) == 4


@needs_slurm
def test_a_port_that_somebody_takes_in_between_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = loopback.configuration
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = int(taken.getsockname()[1])

        def written(folder: Path, host: str, ports: list[int], cluster: Cluster) -> str:
            return real(folder, host, [*ports[:-1], port], cluster)

        monkeypatch.setattr(loopback, "configuration", written)
        with pytest.raises(UserError, match=rf"slurmd has ended; .*\({port}\): Address already in use$"), slurm():
            pass


@needs_slurm
def test_a_command_that_fails_says_why_and_all_is_ended() -> None:
    with slurm(Cluster(nodes=1)) as cluster:
        assert len(cluster.processes()) >= 3
        cluster.submit("sleep 60")
        with pytest.raises(UserError, match=r"scontrol: .*nowhere"):
            cluster.ask("scontrol", "show", "node", "nowhere")
    assert cluster.processes() == []
    assert not cluster.folder.exists()


@needs_slurm
def test_a_setting_that_slurm_refuses_is_one_line() -> None:
    with (
        pytest.raises(UserError, match=r"expected 4 idle nodes within 30 s; slurm.*error.* b"),
        slurm(Cluster(parameters="a b")),
    ):
        pass


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_goes_on_until_it_has_ended_whoever_waits_for_it() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert loopback._goes_on(child.pid)
        child.kill()
        end = time.monotonic() + 60
        while loopback._goes_on(child.pid) and time.monotonic() < end:
            time.sleep(0.01)
        assert Path(f"/proc/{child.pid}/stat").exists()  # its parent has not asked yet how it ended
        assert not loopback._goes_on(child.pid)
    finally:
        child.kill()
        child.wait()
    assert not loopback._goes_on(child.pid)


@needs_slurm
def test_an_interrupt_ends_all(tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("out") / "plays.csv"
    words = [sys.executable, "-m", "benchmarks.fidelity", "--jobs", "10", "--out", str(out)]
    command = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    mine = started_by(command.pid)
    end = time.monotonic() + 60
    while len(mine) < 9 and time.monotonic() < end:
        time.sleep(0.2)
        mine = started_by(command.pid)
    command.send_signal(signal.SIGINT)
    said = command.communicate(timeout=60)[1]
    assert len(mine) >= 9
    assert [one for one in mine if is_alive(one)] == []
    assert command.returncode == 130
    assert said.endswith("interrupted; run again to resume\n")
    assert not out.exists()


def started_by(parent: int) -> list[int]:
    """The servers that a process started itself."""
    asked = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(word) for word in asked.stdout.split()]


def is_alive(process: int) -> bool:
    asked = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return asked.stdout.strip() not in ("", "Z")
