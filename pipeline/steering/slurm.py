"""Slurm's own commands, called with lists of words.

Environment variables that change their output (SQUEUE_FORMAT and others) are removed. Times are in seconds since 1970.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence

from pipeline.errors import UserError
from pipeline.steering.rows import SINFO, SPRIO, SQUEUE, JobRow, OddError, Reading, factors_in, jobs_in, nodes_in

FORMATTING = ("SQUEUE_", "SINFO_", "SPRIO_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
PATIENCE_S = 30.0  # with one command
MOST_BYTES = 64_000_000  # of an answer
AWAY = re.compile(r"unable to contact|connection refused|not responding|socket timed out", re.IGNORECASE)
NAMED = re.compile(r"(.*) for job (\d{1,10})(?:_\S*)?", re.ASCII)  # a complaint of scontrol, and its job
DENIED = re.compile(r"access/permission denied|Invalid user id|insufficient privilege", re.IGNORECASE)
MULTIFACTOR = "priority/multifactor"


class AwayError(OddError):
    """slurmctld does not answer."""


class Slurm:
    """A Slurm cluster, accessed through the commands in the path."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        kept = {name: value for name, value in given.items() if not name.startswith(FORMATTING)}
        self.environment = kept | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
        self.inherited: tuple[int, ...] = ()  # open files that scontrol keeps while it runs

    def read(self) -> Reading:
        """Read the cluster by one squeue, sinfo and sprio; OddError if unreadable, AwayError without an answer."""
        now, jobs = time.time(), self.jobs()
        nodes = self._query("sinfo", "--noheader", "--all", "--local", "--Node", "--exact", "-o", "|".join(SINFO))
        return Reading(now, jobs, nodes_in(nodes), self.factors())

    def jobs(self) -> list[JobRow]:
        """Read the queue in the order of Slurm's priorities; raises like `read`."""
        fields = ",".join(f"{name}:|" for name in SQUEUE)
        return jobs_in(self._query("squeue", "--noheader", "--all", "--local", "--sort=-p,i", "-O", fields))

    def factors(self) -> dict[int, int]:
        """Read the SiteFactor of every waiting job that may start; raises like `read`."""
        return factors_in(self._query("sprio", "--noheader", "-o", "|".join(SPRIO)))

    def set(self, factors: Mapping[int, int]) -> str:
        """Set SiteFactors by job number in one scontrol; returns and raises like `update`."""
        return self.update([f"update jobid={number:d} SiteFactor={factor:d}" for number, factor in factors.items()])

    def update(self, lines: Sequence[str], what: str = "SiteFactor may be set") -> str:
        """Run lines in one scontrol and return its complaint, empty if it did all of them.

        Only the numbers of jobs in the lines come from users. Raises UserError: Slurm denies this to the account
        (`what` is then named as the missing permission). AwayError: slurmctld does not answer.
        """
        done = self._run(["scontrol"], "".join(f"{line}\n" for line in lines), self.inherited)
        if DENIED.search(done.stderr):
            raise UserError(f"scontrol: {what} only by Slurm's operators and administrators, not by you")
        if AWAY.search(done.stderr):
            raise AwayError(f"scontrol: {_line(done.stderr)}")
        return done.stderr or (f"ended with {done.returncode}" if done.returncode else "")

    def settings(self) -> dict[str, str]:
        """Read the configuration of slurmctld; raises like `read`."""
        rows = (line.partition("=") for line in self._query("scontrol", "show", "config").splitlines())
        return {name.strip(): value.strip() for name, equals, value in rows if equals}

    def boot_time(self) -> float:
        """Read the start time of slurmctld in seconds since 1970; raises like `read`."""
        found = self.settings().get("BOOT_TIME", "")
        if not found.isdigit():
            raise OddError(f"scontrol: expected the start time of slurmctld, found {found[:40]!r}")
        return float(found)

    def check_multifactor(self) -> dict[str, str]:
        """Read the settings of a cluster whose order depends on SiteFactor; raise a UserError for any other."""
        found = self.settings()
        if (kind := found.get("PriorityType")) != MULTIFACTOR:
            raise UserError(
                f"slurm.conf: PriorityType: expected {MULTIFACTOR}, as SiteFactor is part of it; got {kind}"
            )
        return found

    def _query(self, *words: str) -> str:
        done = self._run(list(words), "")
        if "DNS SRV" in done.stderr:
            raise AwayError(f"{words[0]}: no Slurm cluster is known here: no slurm.conf, and none was found by DNS")
        if done.returncode != 0:
            kind = AwayError if AWAY.search(done.stderr) else OddError
            raise kind(f"{words[0]}: {_line(done.stderr or done.stdout) or f'ended with {done.returncode}'}")
        if len(done.stdout) > MOST_BYTES:
            raise OddError(f"{words[0]}: more than {MOST_BYTES} characters")
        return done.stdout

    def _run(self, words: list[str], text: str, inherited: tuple[int, ...] = ()) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                words,
                env=self.environment,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_S,
                check=False,
                pass_fds=inherited,
                start_new_session=True,  # ctrl-C is for the controller; a running scontrol completes its lines
            )
        except subprocess.TimeoutExpired as error:
            said = _line((error.stderr or b"").decode(errors="replace"))
            raise AwayError(f"{words[0]}: no answer within {PATIENCE_S:g} s{said and f': {said}'}") from None
        except OSError as error:
            raise UserError(f"{words[0]}: {error.strerror} (Debian: apt-get install slurm-client)") from None


def _line(said: str) -> str:
    return " ".join(said.split())[:300]


def confirmed_jobs(numbers: Iterable[int], complaint: str) -> set[int]:
    r"""Return the jobs that scontrol certainly updated: all that its complaint does not name.

    A complaint that names no job makes all of them uncertain. scontrol repeats each complaint once without the job.

    >>> confirmed_jobs([7, 8], "Job has already finished for job 8\nslurm_suspend error: Job has already finished")
    {7}
    >>> confirmed_jobs([7, 8], "slurm_suspend error: Zero Bytes were transmitted or received")
    set()
    """
    lines = [(line, NAMED.fullmatch(line)) for line in map(str.strip, complaint.splitlines()) if line]
    said = {match[1] for _, match in lines if match}
    if any(not match and line.rpartition("error: ")[2] not in said for line, match in lines):
        return set()
    return set(numbers) - {int(match[2]) for _, match in lines if match}
