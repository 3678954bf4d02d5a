"""Jobsets made of blocks of consecutive jobs of some parts of a log (a block bootstrap, Künsch 1989).

A part of a log that is too short to learn from gives any number of jobsets in which jobs still come as they came: in
bursts, and by users with habits. Each job keeps the time since the job before it, stretched or compressed to the load.
Parts are named by places of jobs in order of arrival, so that what others published on the jobs between them can be
tested on jobs that nobody has learned from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.config import MachinePark, MachinesLog, MachinesScenario, Parts
from pipeline.core import SPLIT_NUMBERS
from pipeline.errors import UserError
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.workload.windows import Fitted


@dataclass(frozen=True)
class Blocks:
    """Jobs resampled from parts of a log; its times are seconds."""

    seed: int
    scenario: MachinesScenario
    workload: MachinesLog
    parts: Parts
    fit: Fitted
    notes: tuple[str, ...]

    @property
    def park(self) -> MachinePark:
        """Return the machines and the unit of time."""
        return self.fit.park

    def split(self, name: str) -> dict[int, list[Jobs]]:
        """Return the jobsets of a split, by load, from that split's parts of the log."""
        count = getattr(self.scenario.jobsets, name)
        return {load: [self._draw(name, load, k) for k in range(count)] for load in self.scenario.loads}

    def fresh(self, load: int, number: int) -> Jobs:
        """Return a training jobset that `generate` did not write."""
        return self._draw("fresh", load, number)

    def _draw(self, stream: str, load: int, number: int) -> Jobs:
        rng = np.random.default_rng([self.seed, SPLIT_NUMBERS[stream], load, number])
        parts: Sequence[tuple[int, int]] = getattr(self.parts, "train" if stream == "fresh" else stream)
        places = np.concatenate([np.arange(first, after) for first, after in parts])
        last = len(places) - self.workload.block
        begins = rng.integers(last + 1, size=-(-self.workload.window // self.workload.block))
        chosen = places[(begins[:, None] + np.arange(self.workload.block)).ravel()[: self.workload.window]]
        arrival = self.fit.jobs.arrival
        gap = np.diff(arrival, prepend=arrival[0])[chosen] * self.fit.stretch(load)
        gap[np.isin(chosen, [first for first, _ in parts])] = 0.0  # what came before it belongs to another part
        jobs = Jobs._make(column[chosen] for column in self.fit.jobs)
        return jobs._replace(arrival=np.cumsum(gap) - gap[0])


def check_parts(parts: Parts, block: int, jobs: int) -> None:
    """Refuse parts that a log is too short for.

    Raises:
        UserError: a part ends behind the log's last job, or those of a split have less than one block.
    """
    for split, spans in parts:
        for first, after in spans:
            if after > jobs:
                span = f"[{first}, {after}]"
                raise UserError(f"workload.parts.{split}: expected at most {jobs}, the log's jobs, got {span}")
        if sum(after - first for first, after in spans) < block:
            raise UserError(f"workload.parts.{split}: fewer jobs than a block of {block}")
