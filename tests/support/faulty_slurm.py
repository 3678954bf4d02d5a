"""A small substitute for Slurm's commands, in which one call or one write to the disk fails."""

import errno
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_said import sinfo, squeue

READS = ("squeue", "sinfo", "sprio")
CONFIG = "ClusterName = c\nPriorityType = priority/multifactor\nBOOT_TIME = 1767225600\n"
BUSY = "slurm_update error: Zero Bytes were transmitted or received\n"
SLOW = "slurm_suspend error: Socket timed out on send/recv operation\n"


class KilledError(BaseException):
    """The controller is killed at this point."""


class FaultySlurm:
    """Jobs with their hold, factor and nodes; `fault` happens at call number `at`, counted from 1."""

    def __init__(self, holds: Mapping[int, str], partitions: Mapping[int, str], fault: str = "", at: int = 0) -> None:
        self.holds, self.partitions = dict(holds), dict(partitions)
        self.factors = dict.fromkeys(holds, 0)
        self.nodes = dict.fromkeys(holds, "")
        self.fault, self.at, self.calls, self.saves = fault, at, 0, 0
        self.met_it = False  # the value of `met` at the moment when a test switches faults off

    @property
    def met(self) -> bool:
        """Return whether the fault has happened."""
        return (self.saves if self.fault in ("disk once", "disk full") else self.calls) >= self.at

    def run(self, words: Sequence[str], **more: Any) -> "subprocess.CompletedProcess[str]":
        """Do what subprocess.run does with a command of Slurm's."""
        self.calls += 1
        fault = self.fault if self.calls == self.at else ""
        if fault == "killed before":
            raise KilledError
        if fault == "timeout":
            raise subprocess.TimeoutExpired(list(words), 30.0)
        if fault in ("busy", "slow"):
            return subprocess.CompletedProcess(words, 1, "", BUSY if fault == "busy" else SLOW)
        if fault == "half":
            more["input"] = "".join(more["input"].splitlines(keepends=True)[:1])
        said = self._said(words, more["input"])
        if fault == "killed behind":
            raise KilledError
        if fault in ("done all the same", "half"):
            raise subprocess.TimeoutExpired(list(words), 30.0)
        return subprocess.CompletedProcess(words, 0, said, "")

    def fsync(self, stream: int) -> None:
        """Replace os.fsync, which ends every write to the ledger and the journal."""
        self.saves += 1
        if (self.fault == "disk once" and self.saves == self.at) or (self.fault == "disk full" and self.met):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _said(self, words: Sequence[str], told: str) -> str:
        if words[0] == "scontrol":
            for line in told.splitlines():
                self._do(line)
            return CONFIG if words[1:] else ""
        return {"squeue": self._squeue, "sinfo": lambda: f"{sinfo('n1')}\n{sinfo('n1', 'held')}",
                "sprio": self._sprio}[words[0]]()  # fmt: skip

    def _do(self, line: str) -> None:
        if match := re.fullmatch(r"release (\d+)", line):
            self.holds[int(match[1])] = ""
        elif match := re.fullmatch(r"update jobid=(\d+) SiteFactor=(\d+)", line):
            self.factors[int(match[1])] = int(match[2])
        elif match := re.fullmatch(r"update jobid=(\d+) ReqNodeList=(\S*)", line):
            self.nodes[int(match[1])] = match[2]
        else:
            raise AssertionError(line)

    def _squeue(self) -> str:
        return "\n".join(
            squeue(JobID=k, Reason=hold or "Resources", Partition=self.partitions[k], ReqNodes=self.nodes[k])
            for k, hold in self.holds.items()
        )

    def _sprio(self) -> str:
        return "\n".join(f"{k}|{self.factors[k]}" for k, hold in self.holds.items() if not hold)
