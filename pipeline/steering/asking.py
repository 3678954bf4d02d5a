"""Slurm's own commands, each a list of words: what they are asked, and the one that changes something.

What would bend their output (SQUEUE_FORMAT and the like) is kept from them; times come as seconds, whatever the zone.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence

from pipeline.errors import UserError
from pipeline.steering.rows import SINFO, SPRIO, SQUEUE, JobRow, OddError, Reading, factors_in, jobs_in, nodes_in

BENDING = ("SQUEUE_", "SINFO_", "SPRIO_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
PATIENCE_S = 30.0  # with one command
MOST_BYTES = 64_000_000  # of an answer
AWAY = re.compile(r"unable to contact|connection refused|not responding|socket timed out", re.IGNORECASE)
NOWHERE = "DNS SRV"
NAMED = re.compile(r"(.*) for job (\d{1,10})(?:_\S*)?", re.ASCII)  # what scontrol complains of, and of which job
DENIED = re.compile(r"access/permission denied|Invalid user id|insufficient privilege", re.IGNORECASE)
MULTIFACTOR = "priority/multifactor"
Factors = Mapping[int, int]  # by number of a job


class AwayError(OddError):
    """slurmctld does not answer."""


class Slurm:
    """A Slurm, by the commands that are in the path."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        kept = {name: value for name, value in given.items() if not name.startswith(BENDING)}
        self.environment = kept | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
        self.held: tuple[int, ...] = ()  # open files that a scontrol holds while it sets something

    def read(self) -> Reading:
        """Return the cluster as it is: one squeue, one sinfo, one sprio.

        Raises:
            OddError: what they say cannot be read; AwayError: slurmctld does not answer.
        """
        now = time.time()
        jobs = self.jobs()
        nodes = self._ask("sinfo", "--noheader", "--all", "--local", "--Node", "--exact", "-o", "|".join(SINFO))
        return Reading(now, jobs, nodes_in(nodes), self.factors())

    def jobs(self) -> list[JobRow]:
        """Return the jobs of the queue, in the order of Slurm's priorities; raise as `read` does."""
        fields = ",".join(f"{name}:|" for name in SQUEUE)
        return jobs_in(self._ask("squeue", "--noheader", "--all", "--local", "--sort=-p,i", "-O", fields))

    def factors(self) -> dict[int, int]:
        """Return the SiteFactor of each job that waits and may start; raise as `read` does."""
        return factors_in(self._ask("sprio", "--noheader", "-o", "|".join(SPRIO)))

    def set(self, factors: Factors) -> str:
        """Set the SiteFactor of jobs, all in one scontrol; return what it complained of, and raise as `tell` does."""
        return self.tell([f"update jobid={number:d} SiteFactor={factor:d}" for number, factor in factors.items()])

    def tell(self, lines: Sequence[str], what: str = "SiteFactor may be set") -> str:
        """Have one scontrol do what lines say; return what it complained of, if it did not do all of it.

        Args:
            lines: of scontrol's own words, in which nothing is a user's but the numbers of jobs.
            what: is done by them, for whom Slurm does not let.

        Raises:
            UserError: who runs this may not.
            AwayError: slurmctld does not answer.
        """
        done = self._run(["scontrol"], "".join(f"{line}\n" for line in lines), self.held)
        if DENIED.search(done.stderr):
            raise UserError(f"scontrol: {what} by Slurm's operators and administrators alone, not by you")
        if AWAY.search(done.stderr):
            raise AwayError(f"scontrol: {_line(done.stderr)}")
        return done.stderr or (f"ended with {done.returncode}" if done.returncode else "")

    def settings(self) -> dict[str, str]:
        """Return what slurmctld is configured to do; raise as `read` does."""
        rows = (line.partition("=") for line in self._ask("scontrol", "show", "config").splitlines())
        return {name.strip(): value.strip() for name, equals, value in rows if equals}

    def began(self) -> float:
        """Return when slurmctld began, in seconds since 1970; raise as `read` does."""
        told = self.settings().get("BOOT_TIME", "")
        if not told.isdigit():
            raise OddError(f"scontrol: expected when slurmctld began, found {told[:40]!r}")
        return float(told)

    def must_weigh(self) -> dict[str, str]:
        """Return the settings of a Slurm whose order SiteFactor moves.

        Raises:
            UserError: nothing answers, or it does not weigh jobs.
        """
        found = self.settings()
        if (kind := found.get("PriorityType")) != MULTIFACTOR:
            raise UserError(
                f"slurm.conf: PriorityType: expected {MULTIFACTOR}, as SiteFactor is part of it; got {kind}"
            )
        return found

    def _ask(self, *words: str) -> str:
        done = self._run(list(words), "")
        if NOWHERE in done.stderr:
            raise AwayError(f"{words[0]}: no Slurm is known here: no slurm.conf, and none was found by DNS")
        if done.returncode != 0:
            kind = AwayError if AWAY.search(done.stderr) else OddError
            raise kind(f"{words[0]}: {_line(done.stderr or done.stdout) or f'ended with {done.returncode}'}")
        if len(done.stdout) > MOST_BYTES:
            raise OddError(f"{words[0]}: more than {MOST_BYTES} characters")
        return done.stdout

    def _run(self, words: list[str], told: str, held: tuple[int, ...] = ()) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                words,
                env=self.environment,
                input=told,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_S,
                check=False,
                pass_fds=held,
                start_new_session=True,  # ctrl-C is for the controller; a scontrol under way ends its lines
            )
        except subprocess.TimeoutExpired as error:
            said = _line((error.stderr or b"").decode(errors="replace"))
            raise AwayError(f"{words[0]}: no answer within {PATIENCE_S:g} s{said and f': {said}'}") from None
        except OSError as error:
            raise UserError(f"{words[0]}: {error.strerror} (Debian: apt-get install slurm-client)") from None


def _line(said: str) -> str:
    return " ".join(said.split())[:300]


def sure(numbers: Iterable[int], complaint: str) -> set[int]:
    r"""Return the jobs for which scontrol did what it was asked: all that it does not name.

    None is sure where it complains of something without a job's number. It repeats each complaint without one.

    >>> sure([7, 8], "Job has already finished for job 8\nslurm_suspend error: Job has already finished")
    {7}
    >>> sure([7, 8], "slurm_suspend error: Zero Bytes were transmitted or received")
    set()
    """
    lines = [(line, NAMED.fullmatch(line)) for line in map(str.strip, complaint.splitlines()) if line]
    said = {match[1] for _, match in lines if match}
    if any(not match and line.rpartition("error: ")[2] not in said for line, match in lines):
        return set()
    return set(numbers) - {int(match[2]) for _, match in lines if match}
