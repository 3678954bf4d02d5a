"""A real Slurm on loopback that a controller steers, in processes of their own."""

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
    """A cluster, and what steers it."""

    def __init__(self, slurm: LoopbackSlurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        self.started: list[subprocess.Popen[str]] = []

    def empty(self) -> None:
        """End all jobs."""
        self.slurm.ask("scancel", "--user=root")
        self.slurm.until(lambda: not self.slurm.states(), "no jobs")

    def busy(self) -> str:
        """Let a job take the whole cluster."""
        job = self.slurm.submit("sleep 600", "--time=10", *ALL)
        self.slurm.until(lambda: self.slurm.states()[job] == "R", "a job that runs")
        return job

    def waits(self, limit_min: int, *options: str, script: str = "sleep 1") -> int:
        """Submit a job that waits for the whole cluster."""
        return int(self.slurm.submit(script, f"--time={limit_min}", *ALL, *options))

    def steer(
        self, *options: str, policy: str = "sjf", mode: str = "order", path: Path | None = None
    ) -> subprocess.Popen[str]:
        """Begin a controller; `path`: with other commands, and a folder of its own there."""
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
        """Wait until the last controller has begun: it imports, takes back, and asks its policy for the first time."""
        said, end = self.folder.parent / f"said-{len(self.started) - 1}", time.monotonic() + most_s
        while not re.search("^steer: [a-z]+: ", said.read_text(), re.MULTILINE):
            assert self.started[-1].poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.1)

    def ended(self, process: "subprocess.Popen[str]") -> str:
        """Wait until a controller has ended, and return what it said; its watchdog may go on."""
        process.wait(60)
        return (self.folder.parent / f"said-{self.started.index(process)}").read_text()

    def by_hand(self) -> "subprocess.CompletedProcess[str]":
        """Take back what is set."""
        words = [sys.executable, *WORDS, "--reset", "--folder", str(self.folder)]
        return subprocess.run(
            words, env=self.slurm.environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
        )

    def factors(self) -> dict[int, int]:
        """Return the SiteFactor of each job that waits and may start."""
        said = self.slurm.ask("sprio", "--noheader", "-o", "%i|%S").splitlines()
        return {int(number): int(factor) for number, factor in (line.split("|") for line in said)}

    def answers(self) -> bool:
        """Return whether slurmctld does."""
        with suppress(UserError):
            return bool(self.slurm.ask("scontrol", "show", "config"))
        return False

    def in_order(self) -> list[int]:
        """Return the jobs that have a factor, the highest first."""
        found = {number: factor for number, factor in self.factors().items() if factor}
        return sorted(found, key=lambda number: -found[number])

    def until_ordered(self, *jobs: int) -> None:
        """Wait until these have factors, in this order, and no others have."""
        self.slurm.until(lambda: self.in_order() == list(jobs), f"factors of {jobs}", SOON_S)

    def until_reset(self) -> None:
        """Wait until no job has a factor."""
        self.slurm.until(lambda: not self.in_order(), "no factors", SOON_S)

    def held(self) -> set[int]:
        """Return the jobs that somebody holds; of a cluster that does not answer, those that there may be."""
        try:
            rows = self.slurm.jobs()
        except UserError:
            return set(range(MANY))
        return {int(number) for number, row in rows.items() if row["Reason"].startswith("JobHeld")}

    def starts(self, after: str) -> list[int]:
        """Return the jobs submitted after one that have started, the first one first; tasks by their array."""
        found = self.slurm.jobs(SLURM_TIME_FORMAT="%s").values()
        begun = [(int(row["StartTime"]), int(row.get("ArrayJobId", row["JobId"]))) for row in found if _ran(row)]
        return [number for _, number in sorted(begun) if number > int(after)]

    def journal(self, kind: str) -> list[dict[str, Any]]:
        """Return what the journal has of a kind, so far."""
        if not (self.folder / JOURNAL).exists():
            return []
        return [dict(row) for row in rows(self.folder) if row["kind"] == kind]

    def kill_slurmctld(self) -> None:
        """Kill slurmctld as nothing can hold off, and begin it again; it has forgotten what it did not save."""
        (words,) = self.slurm.kill("slurmctld")
        self.slurm.begin(*words, "-R")  # it keeps the partitions that it was told of, too

    def kill_watchdog(self) -> None:
        """Kill the watchdog of the controller as nothing can hold off."""
        self._kill("pipeline.steering.watchdog")

    def kill_policy(self) -> None:
        """Kill the process of the policy."""
        self._kill("spawn_main")

    def _kill(self, word: str) -> None:
        """Kill what the last controller began, whose command has a word."""
        begun = psutil.Process(self.started[-1].pid).children()
        (process,) = [child for child in begun if any(word in said for said in child.cmdline())]
        process.kill()

    def end(self) -> None:
        """End what was begun, the watchdogs by letting them finish."""
        for one in self.started:
            with suppress(ProcessLookupError):
                one.send_signal(signal.SIGTERM)
            one.wait(30)


def _ran(row: dict[str, str]) -> bool:
    return row["JobState"] in ("COMPLETED", "RUNNING", "COMPLETING")


@contextmanager
def steered(slurm: LoopbackSlurm, folder: Path) -> Iterator[Steered]:
    """Let a test steer a cluster without jobs, and leave it so."""
    found = Steered(slurm, folder)
    found.empty()
    try:
        yield found
    finally:
        found.end()
        found.empty()


def killed(process: "subprocess.Popen[str]") -> None:
    """Kill a process as nothing can hold off."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def until_free(folder: Path, most_s: float = SOON_S) -> None:
    """Wait until nobody holds the lock of a folder."""
    end = time.monotonic() + most_s
    while True:
        with (folder / "lock").open("rb") as stream, suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        assert time.monotonic() < end, f"{folder}: still locked"
        time.sleep(0.1)
