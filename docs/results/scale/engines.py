"""Local engines with parts to kill: processes, a Slurm cluster of two nodes, a Ray cluster of a head and a node."""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from benchmarks.slurm.configuration import Cluster  # noqa: E402  of this tree, whatever is installed
from benchmarks.slurm.loopback import LoopbackSlurm, own_ports, slurm  # noqa: E402

AGAIN_S = 3.0  # seconds until slurmctld is restarted
NODE_S = 25.0  # and a node of Slurm: by default Slurm misses no job in its first 20 s, and does not check soon again
RAY = (sys.executable, "-m", "ray.scripts.scripts")
NO_TOKEN = {"RAY_AUTH_MODE": "disabled"}  # otherwise the head creates a token, which the node lacks
TRIED = 3  # attempts to start a server of Ray
Kill = Callable[[random.Random, psutil.Process], bool]  # takes the stage; returns whether there was anything to kill


def nothing() -> None:
    """Restart no process."""


class Engine(NamedTuple):
    """Running engine: environment variables of stages, parts to kill, and functions that restart these."""

    variables: dict[str, str]
    kills: Mapping[str, Kill]
    soon: Callable[[], None] = nothing  # while the stage still runs
    later: Callable[[], None] = nothing  # before the stage runs again


def family(pid: int) -> list[psutil.Process]:
    """Return all descendants of a process."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def ended(found: list[psutil.Process], rng: random.Random) -> bool:
    """Kill one of several processes; return whether there was one."""
    for one in rng.sample(found, len(found)):
        with suppress(psutil.NoSuchProcess):
            one.kill()
            return True
    return False


def said(one: psutil.Process) -> str:
    """Return the start of a process's command line."""
    with suppress(psutil.Error):
        return " ".join(one.cmdline())[:300]
    return ""


def works(one: psutil.Process) -> bool:
    """Return whether a process runs tasks or a whole command, and is not a shell around it."""
    line = said(one)
    words = ("ray::_work", "-m pipeline")
    return not line.startswith("/bin/sh") and any(word in line for word in words)


def stage_itself(rng: random.Random, stage: psutil.Process) -> bool:
    """Kill the stage."""
    return ended([stage], rng)


def child(word: str) -> Kill:
    """Return a function that kills a child of the stage, found by a word of its command line."""
    return lambda rng, stage: ended([one for one in family(stage.pid) if word in said(one)], rng)


@contextmanager
def processes() -> Iterator[Engine]:
    """Processes of the stage."""
    yield Engine({"PIPELINE_EXECUTOR": "processes:2"}, {"worker": child("execution.worker"), "driver": stage_itself})


@contextmanager
def own_ray() -> Iterator[Engine]:
    """Ray as a stage starts it for itself."""
    words = {"worker": "ray::_work", "node": "/raylet", "head": "gcs_server"}
    kills = {what: child(word) for what, word in words.items()}
    yield Engine({"PIPELINE_EXECUTOR": "ray:2"}, {**kills, "driver": stage_itself})


@contextmanager
def on_slurm() -> Iterator[Engine]:
    """A Slurm cluster of two nodes."""
    with slurm(Cluster(nodes=2)) as running:
        here = Nodes(running)
        variables = {"PIPELINE_EXECUTOR": "slurm:2@work", "SLURM_CONF": str(running.folder / "slurm.conf")}
        kills = {"worker": here.worker, "node": here.node, "head": here.head, "driver": stage_itself}
        yield Engine(variables, kills, here.again)


class Nodes:
    """Servers of a Slurm cluster, some of which are down."""

    def __init__(self, running: LoopbackSlurm) -> None:
        self._slurm = running
        self._down: list[list[str]] = []

    def worker(self, rng: random.Random, _: psutil.Process) -> bool:
        """Kill a process that runs tasks or a whole command."""
        return ended([one for one in self._jobs("SLURM_JOB_ID=") if works(one)], rng)

    def node(self, rng: random.Random, _: psutil.Process) -> bool:
        """Kill a node's slurmd, its jobs and their slurmstepd, as a power cut would."""
        servers = {words[-1]: one for one in self._slurm.servers if (words := _words(one))[0] == "slurmd"}
        name = rng.choice(sorted(self._busy() or servers))
        servers[name].kill()
        servers[name].wait()
        self._slurm.servers.remove(servers[name])
        self._down.append(_words(servers[name]))
        for one in self._jobs(f"SLURMD_NODENAME={name}"):
            with suppress(psutil.Error):
                step = one.parent()
                one.kill()
                if step and "slurmstepd" in step.name():
                    step.kill()
        return True

    def head(self, _: random.Random, __: psutil.Process) -> bool:
        """Kill slurmctld."""
        self._down += self._slurm.kill("slurmctld")
        return True

    def again(self) -> None:
        """Restart the servers that are down."""
        time.sleep(NODE_S if any("slurmd" in words for words in self._down) else AGAIN_S)
        while self._down:
            self._slurm.begin(*self._down.pop())

    def _busy(self) -> set[str]:
        """Return the nodes with running jobs."""
        return set(self._slurm.ask("squeue", "--noheader", "--states=R", "--format=%N").split()) - {""}

    def _jobs(self, word: str) -> list[psutil.Process]:
        found = []
        for pid in self._slurm.processes():
            with suppress(OSError, psutil.Error):
                if word.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(psutil.Process(pid))
        return found


def _words(server: "subprocess.Popen[bytes]") -> list[str]:
    return [str(word) for word in server.args] if isinstance(server.args, list | tuple) else []


@contextmanager
def on_ray(at_head: int = 1) -> Iterator[Engine]:
    """A separate Ray cluster; `at_head` is the number of cores of its head."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as name, own_ports(1) as (port,):
        here = Machines(Path(name), port, at_head)
        try:
            here.begin("head")
            here.begin("node")
            kills = {"worker": here.worker, "node": here.node, "head": here.head, "driver": stage_itself}
            yield Engine({"PIPELINE_EXECUTOR": f"ray@{here.address}", **NO_TOKEN}, kills, here.soon, here.later)
        finally:
            here.stop()


class Machines:
    """Head and node of Ray; the node has one core."""

    def __init__(self, folder: Path, port: int, at_head: int) -> None:
        self._folder, self._port, self._at_head = folder, port, at_head
        self._going: dict[str, subprocess.Popen[bytes]] = {}
        self.address = f"127.0.0.1:{self._port}"

    def begin(self, what: str) -> None:
        """Start the head or the node, and wait for it; on a busy machine Ray's own limit may be too short."""
        cores = self._at_head if what == "head" else 1
        words = [f"--num-cpus={cores}", "--object-store-memory=100000000", "--node-ip-address=127.0.0.1"]
        head = ["--head", f"--port={self._port}", "--include-dashboard=false", f"--temp-dir={self._folder}/r"]
        words += head if what == "head" else [f"--address={self.address}"]
        log, own = self._folder / f"{what}.log", os.environ | NO_TOKEN
        for _ in range(TRIED):
            with log.open("w") as out:
                self._going[what] = subprocess.Popen(
                    [*RAY, "start", "--block", *words], env=own, stdout=out, stderr=out, start_new_session=True
                )
            while self._going[what].poll() is None:
                if "Ray runtime started" in log.read_text():
                    return
                time.sleep(0.1)
        raise SystemExit(log.read_text())

    def stop(self, *names: str) -> None:
        """Kill the named servers (default: all) and their descendants."""
        for what in names or tuple(self._going):
            gone = self._going.pop(what)
            for one in [*family(gone.pid), *([psutil.Process(gone.pid)] if gone.poll() is None else [])]:
                with suppress(psutil.Error):
                    one.kill()
            gone.wait()

    def worker(self, rng: random.Random, _: psutil.Process) -> bool:
        """Kill an actor, or a task that runs a whole command, or that command."""
        every = [one for server in self._going.values() for one in family(server.pid)]
        return ended([one for one in every if works(one)], rng)

    def node(self, _: random.Random, __: psutil.Process) -> bool:
        """Kill the whole node."""
        self.stop("node")
        return True

    def head(self, rng: random.Random, _: psutil.Process) -> bool:
        """Kill the head's GCS, without which Ray cannot work for long."""
        return ended(self._gcs(), rng)

    def soon(self) -> None:
        """Restart the node if it is down and the head is not."""
        if "node" not in self._going and self._gcs():
            self.begin("node")

    def later(self) -> None:
        """Restart both if the head is down."""
        if not self._gcs():
            self.stop()
            self.begin("head")
            self.begin("node")

    def _gcs(self) -> list[psutil.Process]:
        return [one for one in family(self._going["head"].pid) if "gcs_server" in said(one)]


ENGINES = {
    "processes": processes,
    "slurm": on_slurm,
    "ray": on_ray,
    "raynode": partial(on_ray, at_head=0),  # so that the node runs the tasks
    "rayown": own_ray,
}
