"""A whole Slurm on the loopback interface: munged, slurmctld and some slurmd, without a database.

It needs Slurm's programs, and root because slurmd runs jobs of several users. It has its own folder in /tmp, which
users may enter and whose name is short (sockets: up to 108 characters). Its processes run in separate sessions,
so that ctrl-C ends the command first, and the command then ends them.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.slurm.configuration import Cluster, configuration
from pipeline.errors import UserError

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "squeue")
INSTALLED = "(Debian: apt-get install munge slurmctld slurmd slurm-client)"
STARTED_S, ENDED_S = 30.0, 60.0
KILLED_S = 5.0  # time in which its processes must end after SIGTERM, and again after SIGKILL
LOOKED_S = 0.1  # between two checks
EPHEMERAL, FIRST_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range"), 32_768
NO_FAULT = re.compile("MailProg|pmix")  # what Debian's Slurm prints at every start
FIRST_OF_USERS, LAST, PORTS = 1_024, 65_536, 8_000  # ports; the last is how many below the ephemeral ones are tried


def why_not() -> str:
    """Return why Slurm cannot run here, or an empty string if it can."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        return f"no {', '.join(lacking)} {INSTALLED}"
    return "" if os.geteuid() == 0 else "slurmd runs jobs of several users as root only"


class LoopbackSlurm:
    """A running Slurm, and calls of its tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobcomp = folder / "jobcomp.log"
        self.servers: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "TZ": "UTC"}

    def ask(self, *words: str, **more: str) -> str:
        """Run a command and return its output.

        Args:
            words: of the command.
            more: environment variables in addition to the cluster's.

        Raises:
            UserError: the command fails.
        """
        environment = self.environment | more
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd="/tmp")
        if done.returncode != 0:
            raise UserError(f"{words[0]}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout.strip()

    def submit(self, script: str, *options: str) -> str:
        """Submit a job that runs a line of shell on its node, and return its id."""
        return self.ask("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}")

    def states(self) -> dict[str, str]:
        """Return the states of all jobs that have not ended, by their own id."""
        return dict(line.split() for line in self.ask("squeue", "--noheader", "--format=%A %t").splitlines())

    def jobs(self, **more: str) -> dict[str, dict[str, str]]:
        """Return scontrol's fields of every job, by its own id; `more` is as for `ask`."""
        rows = self.ask("scontrol", "--oneliner", "show", "job", **more).splitlines()
        found = [dict(re.findall(r"(\w+)=(\S*)", row)) for row in rows]
        return {row["JobId"]: row for row in found if row}

    def kill(self, program: str) -> list[list[str]]:
        """Kill the servers of a program as `kill -9` does, and return the words that `begin` needs to restart them."""
        killed = [server for server in self.servers if _words(server)[0] == program]
        for server in killed:
            server.kill()
            server.wait()
        self.servers = [server for server in self.servers if server not in killed]
        return [_words(server) for server in killed]

    def begin(self, *words: str) -> None:
        """Start a server of the cluster."""
        with (self.folder / f"{words[0]}.out").open("ab") as out:
            server = subprocess.Popen(words, env=self.environment, stdout=out, stderr=out, start_new_session=True)
        self.servers.append(server)

    def until(self, true: Callable[[], bool], what: str, at_most_s: float = ENDED_S) -> None:
        """Wait until a condition is true.

        Raises:
            UserError: it does not become true in time, or a server of the cluster ends first.
        """
        end = time.monotonic() + at_most_s
        while not true():
            if time.monotonic() >= end or self._lost():
                raise UserError(f"Slurm on loopback: expected {what} within {at_most_s:g} s{self._last_words()}")
            time.sleep(LOOKED_S)

    def processes(self) -> list[int]:
        """Return the processes in its environment: its servers, steps and jobs."""
        mine = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended
                if mine in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
        return found

    def _lost(self) -> bool:
        return any(server.poll() is not None for server in self.servers)

    def _last_words(self) -> str:
        ended = [_words(server)[0] for server in self.servers if server.poll() is not None]
        said = [
            line for log in sorted(self.folder.glob("*.out")) for line in log.read_text(errors="replace").splitlines()
        ]
        faults = [line for line in said if ("error" in line or "fatal" in line) and not NO_FAULT.search(line)]
        first_and_last = dict.fromkeys(faults[:1] + faults[-1:])
        return "".join(f"; {words}" for words in [*(f"{name} has ended" for name in ended), *first_and_last])


@contextmanager
def slurm(cluster: Cluster | None = None) -> Iterator[LoopbackSlurm]:
    """Start a Slurm cluster, and finally end it with everything that it started.

    Raises:
        UserError: Slurm cannot run here, or does not start.
    """
    if reason := why_not():
        raise UserError(f"Slurm on loopback: {reason}")
    wanted = cluster or Cluster()
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name, ExitStack() as running:
        found = LoopbackSlurm(Path(name))
        ports = running.enter_context(own_ports(wanted.nodes + 1))  # held until its servers have ended
        running.callback(_end, found)
        _lay_out(found.folder, wanted, ports)
        _start_all(found, wanted)
        yield found


def _lay_out(folder: Path, cluster: Cluster, ports: list[int]) -> None:
    """Write the files that its servers read, and create the folders that they write to."""
    folder.chmod(0o755)
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(configuration(folder, host, ports, cluster))
    for name in ("state", *(f"spool{node}" for node in cluster.names)):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(64))
    key.chmod(0o600)


def _start_all(slurm: LoopbackSlurm, cluster: Cluster) -> None:
    folder = slurm.folder
    slurm.begin("munged", "--foreground", "--force", f"--key-file={folder}/munge.key",
                f"--socket={folder}/munge.sock", f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munge.seed",
                f"--log-file={folder}/munged.log")  # fmt: skip
    slurm.until((folder / "munge.sock").exists, "munged", STARTED_S)
    slurm.begin("slurmctld", "-D", "-f", f"{folder}/slurm.conf")
    for node in cluster.names:
        slurm.begin("slurmd", "-D", "-f", f"{folder}/slurm.conf", "-N", node)
    slurm.until(lambda: _idle(slurm) == cluster.nodes, f"{cluster.nodes} idle nodes", STARTED_S)


@contextmanager
def own_ports(count: int) -> Iterator[list[int]]:
    """Provide free ports, in order, that no other user of this function gets at the same time.

    The kernel never assigns them to connections: a server that is killed and restarted finds its own port free.
    """
    low = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else FIRST_EPHEMERAL
    below = range(max(FIRST_OF_USERS, low - PORTS), low) or range(FIRST_OF_USERS, LAST)
    found: list[int] = []
    with ExitStack() as held:
        for port in random.SystemRandom().sample(below, len(below)):
            if _take(port, held):
                found.append(port)
            if len(found) == count:
                break
        yield sorted(found)


def _take(port: int, held: ExitStack) -> bool:
    """Return whether a port is free; if so, it is held, although its server binds it only later."""
    with ExitStack() as tried, suppress(OSError):  # another process holds it, or listens there
        if EPHEMERAL.exists():  # Linux has socket names without a file: they vanish with their process
            tried.enter_context(socket.socket(socket.AF_UNIX)).bind(f"\0loopback-port-{port}")
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))
        held.push(tried.pop_all())
        return True
    return False


def _words(server: "subprocess.Popen[bytes]") -> list[str]:
    return [str(word) for word in server.args] if isinstance(server.args, list | tuple) else [str(server.args)]


def _idle(slurm: LoopbackSlurm) -> int:
    asked = subprocess.run(["sinfo", "-hN", "-o", "%N %t"], env=slurm.environment, capture_output=True, check=False)
    return len({line for line in asked.stdout.splitlines() if line.endswith(b" idle")})  # listed once per partition


def _end(slurm: LoopbackSlurm) -> None:
    """End all processes, including jobs and their steps: first with SIGTERM, then with SIGKILL."""
    told: set[int] = set()
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in slurm.processes():
            told.add(process)
            with suppress(ProcessLookupError):
                os.kill(process, number)
        end = time.monotonic() + KILLED_S
        while (slurm.processes() or any(map(_goes_on, told))) and time.monotonic() < end:
            time.sleep(0.05)
    for server in slurm.servers:
        server.wait()


def _goes_on(process: int) -> bool:
    """Return whether a process still runs; one that is ending has lost the environment that `processes` looks for."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False
