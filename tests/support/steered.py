"""A real Slurm cluster on loopback that a controller steers, in separate processes."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from builders import REPOSITORY

from benchmarks.slurm.loopback import LoopbackSlurm
from pipeline.errors import UserError
from pipeline.steering.journal import JOURNAL, rows

ALL = ("--nodes=4", "--exclusive")  # a job that takes the whole cluster
WORDS = ("-m", "pipeline", "steer", "slurm")
SOON_S = 60.0
MANY = 100_000  # jobs


class Steered:
    """A cluster and the controllers that steer it."""

    def __init__(self, slurm: LoopbackSlurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        self.started: list[subprocess.Popen[str]] = []

    def empty(self) -> None:
        """End all jobs."""
        self.slurm.ask("scancel", "--user=root")
        self.slurm.until(lambda: not self.slurm.states(), "no jobs")

    def busy(self) -> str:
        """Start a job that takes the whole cluster."""
        job = self.slurm.submit("sleep 600", "--time=10", *ALL)
        self.slurm.until(lambda: self.slurm.states()[job] == "R", "a job that runs")
        return job

    def waits(self, limit_min: int, *options: str, script: str = "sleep 1") -> int:
        """Submit a job that waits for the whole cluster."""
        return int(self.slurm.submit(script, f"--time={limit_min}", *ALL, *options))

    def steer(
        self, *options: str, policy: str = "sjf", mode: str = "order", path: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start a controller; with `path`, its commands come from there, and its folder is in there."""
        words = [sys.executable, *WORDS, "--scenario", "machines", "--policy", policy, "--mode", mode, "--tick", "1"]
        there = self.slurm.environment["PATH"]
        begun = subprocess.Popen(
            [*words, "--folder", str(self.folder if path is None else path / mode), *options],
            env=self.slurm.environment | {"PATH": there if path is None else f"{path}:{there}"},
            cwd=REPOSITORY,
            stderr=(self.folder.parent / f"said-{len(self.started)}").open("w"),
            text=True,
        )
        self.started.append(begun)
        return begun

    def until_steering(self, most_s: float = SOON_S) -> None:
        """Wait until the last controller has started: imports, resets, and asks its policy once."""
        said, end = self.folder.parent / f"said-{len(self.started) - 1}", time.monotonic() + most_s
        while not re.search("^steer: [a-z]+: ", said.read_text(), re.MULTILINE):
            assert self.started[-1].poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.1)

    def ended(self, process: "subprocess.Popen[str]") -> str:
        """Wait until a controller has ended, and return its output; its watchdog may still run."""
        process.wait(60)
        return (self.folder.parent / f"said-{self.started.index(process)}").read_text()

    def by_hand(self) -> "subprocess.CompletedProcess[str]":
        """Reset all settings by the command for it."""
        words = [sys.executable, *WORDS, "--reset", "--folder", str(self.folder)]
        return subprocess.run(
            words, env=self.slurm.environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
        )

    def factors(self) -> dict[int, int]:
        """Return the SiteFactor of each waiting job that may start."""
        said = self.slurm.ask("sprio", "--noheader", "-o", "%i|%S").splitlines()
        return {int(number): int(factor) for number, factor in (line.split("|") for line in said)}

    def answers(self) -> bool:
        """Return whether slurmctld answers."""
        with suppress(UserError):
            return bool(self.slurm.ask("scontrol", "show", "config"))
        return False

    def in_order(self) -> list[int]:
        """Return the jobs that have a factor, the highest factor first."""
        found = {number: factor for number, factor in self.factors().items() if factor}
        return sorted(found, key=lambda number: -found[number])

    def until_ordered(self, *jobs: int) -> None:
        """Wait until exactly these jobs have factors, in this order."""
        self.slurm.until(lambda: self.in_order() == list(jobs), f"factors of {jobs}", SOON_S)

    def until_reset(self) -> None:
        """Wait until no job has a factor."""
        self.slurm.until(lambda: not self.in_order(), "no factors", SOON_S)

    def held(self) -> set[int]:
        """Return the held jobs; if the cluster does not answer, all that could exist."""
        try:
            rows = self.slurm.jobs()
        except UserError:
            return set(range(MANY))
        return {int(number) for number, row in rows.items() if row["Reason"].startswith("JobHeld")}

    def starts(self, after: str) -> list[int]:
        """Return the started jobs that were submitted after one, in order of start; tasks by their array's id."""
        found = self.slurm.jobs(SLURM_TIME_FORMAT="%s").values()
        begun = [(int(row["StartTime"]), int(row.get("ArrayJobId", row["JobId"]))) for row in found if _ran(row)]
        return [number for _, number in sorted(begun) if number > int(after)]

    def journal(self, kind: str) -> list[dict[str, Any]]:
        """Return the journal's rows of a kind so far."""
        if not (self.folder / JOURNAL).exists():
            return []
        return [dict(row) for row in rows(self.folder) if row["kind"] == kind]

    def kill_slurmctld(self) -> None:
        """Kill slurmctld with SIGKILL and restart it; it has forgotten what it did not save."""
        (words,) = self.slurm.kill("slurmctld")
        self.slurm.begin(*words, "-R")  # with -R it also keeps the partition states that were set

    def kill_watchdog(self) -> None:
        """Kill the controller's watchdog with SIGKILL."""
        self._kill("pipeline.steering.watchdog")

    def kill_policy(self) -> None:
        """Kill the policy's process."""
        self._kill("spawn_main")

    def _kill(self, word: str) -> None:
        """Kill the child of the last controller whose command contains a word."""
        begun = psutil.Process(self.started[-1].pid).children()
        (process,) = [child for child in begun if any(word in said for said in child.cmdline())]
        process.kill()

    def end(self) -> None:
        """End all controllers, letting the watchdogs finish."""
        for one in self.started:
            with suppress(ProcessLookupError):
                one.send_signal(signal.SIGTERM)
            one.wait(30)


def _ran(row: dict[str, str]) -> bool:
    return row["JobState"] in ("COMPLETED", "RUNNING", "COMPLETING")


@contextmanager
def steered(slurm: LoopbackSlurm, folder: Path) -> Iterator[Steered]:
    """Let a test steer a cluster without jobs, and remove all jobs afterwards."""
    found = Steered(slurm, folder)
    found.empty()
    try:
        yield found
    finally:
        found.end()
        found.empty()


def killed(process: "subprocess.Popen[str]") -> None:
    """Kill a process with SIGKILL."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def until_free(folder: Path, most_s: float = SOON_S) -> None:
    """Wait until no process holds the lock of a folder."""
    end = time.monotonic() + most_s
    while True:
        with (folder / "lock").open("rb") as stream, suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        assert time.monotonic() < end, f"{folder}: still locked"
        time.sleep(0.1)
