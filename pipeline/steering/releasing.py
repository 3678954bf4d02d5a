"""A tick of mode `release`: who is held, what the policy is told of it, and who is let go, where.

The policy decides as in the simulator: who starts now, and on which nodes. These are let go in its order and pinned to
their nodes by ReqNodeList, where this version of Slurm takes that behind the submission; it is tried on the first job
that is held. Who was let go and does not run yet holds its nodes as far as the policy is told. At once, and wherever
Slurm wants, goes who is held for too long, depends on other jobs, has a reservation, or fits on no nodes.
"""

from collections.abc import Iterator, Sequence

from pipeline.core import Json
from pipeline.steering.asking import Slurm
from pipeline.steering.book import Book
from pipeline.steering.competing import UNREAD
from pipeline.steering.holding import NODE, WHAT, confirm, look, ours, released, stuck, unpinned
from pipeline.steering.planning import Decided
from pipeline.steering.rows import HOLDING, PENDING, JobRow, Reading
from pipeline.steering.settings import Settings

LEAST_STUCK_S, STUCK_TICKS = 60.0, 5  # that a job may wait for its nodes: Slurm may look at its queue once a minute
BEHIND = "the canary took the policy back"
LONG, DEPENDS, RESERVED, NOWHERE = "held for too long", "depends on others", "in a reservation", "fits on no nodes"


class Releasing:
    """What is let go of one Slurm."""

    def __init__(self, slurm: Slurm, book: Book, settings: Settings) -> None:
        self.slurm, self.book, self.settings = slurm, book, settings
        self.pins: bool | None = None  # does this Slurm take ReqNodeList? None: nobody was held yet
        self._held: dict[int, JobRow] = {}  # who may be let go, at the last reading

    def begin(self) -> None:
        """Take charge of what is held, so that whoever takes it back knows."""
        self.book.held_in = self.settings.held_in
        self.book.save()

    @property
    def let_go_so_far(self) -> set[int]:
        """Return the jobs that were let go from here, and are still there."""
        return {number for number, one in self.book.held.items() if one.let_go is not None}

    def seen(self, reading: Reading) -> Reading:
        """Return what there is to decide: who is held, what runs, and what is about to; all are told as eligible."""
        if look(self.book, reading.jobs, self.settings.held_in, reading.now, self.slurm.began):
            self.book.keep()
        held = ours(self.book, reading.jobs)
        self._held = {job.number: job for job in held if job.eligible is None or job.eligible <= reading.now}
        if self.pins is None:
            self.pins = self._takes_nodes(reading)
        waiting = [one._replace(array=one.number) for one in self._held.values() if not self._at_once(one, reading.now)]
        running = [job for job in reading.jobs if job.state in HOLDING]
        factors = dict.fromkeys((job.number for job in waiting), 0)
        return reading._replace(jobs=[*waiting, *running, *self._about_to_run(reading)], factors=factors)

    def let_go(self, found: Sequence[Decided], reading: Reading, behind: bool) -> tuple[dict[str, Json], str]:
        """Let go whom the policy starts; return who went where and why, and what scontrol complained of.

        Where the policy is behind the fallback all go at once, and Slurm's own order stands. Raises as `Slurm.tell`.
        """
        loose = stuck(self.book, reading.jobs, reading.now, self._patience_s)
        lines, complaint = unpinned(loose), ""
        going = dict.fromkeys(self._held, ((), BEHIND)) if behind else self._going(found, reading.now)
        for number, (nodes, _) in going.items():
            job = self._held[number]
            lines += released(self.book, number, nodes, bool(self.pins) and _may_be_pinned(job), reading.now)
        if lines:
            if not self.book.keep():  # a full disk stops no release, but a pin that is not on record would stay
                lines = [line for line in lines if line.startswith("release ") or line.endswith("=")]
            complaint = self.slurm.tell(lines, WHAT)
            confirm(self.book, going, loose, complaint)
            self.book.keep()
        return {str(number): {"nodes": list(nodes), "why": why} for number, (nodes, why) in going.items()}, complaint

    def _going(self, found: Sequence[Decided], now: float) -> dict[int, tuple[tuple[str, ...], str]]:
        """Return who goes, in order: where to, and why if not as the policy starts him."""
        going: dict[int, tuple[tuple[str, ...], str]] = {}
        for number, job in self._held.items():
            if why := self._at_once(job, now):
                going[number] = ((), why)
        for one in found:
            going |= {start.job: (start.nodes, "") for start in one.starts}
            going |= dict.fromkeys(one.never, ((), NOWHERE))
        return going

    def _at_once(self, job: JobRow, now: float) -> str:
        """Return why a job is let go whatever the policy wants; nothing if it is not."""
        if now - job.arrived > self.settings.longest_hold_s:
            return LONG
        return DEPENDS if job.depends else RESERVED if job.reserved else UNREAD if job.odd else ""

    @property
    def _patience_s(self) -> float:
        return max(LEAST_STUCK_S, STUCK_TICKS * self.settings.tick_s)

    def _about_to_run(self, reading: Reading) -> Iterator[JobRow]:
        """Yield who was let go and does not run yet, as if he ran."""
        for job in reading.jobs:
            entry = self.book.held.get(job.number)
            if entry is None or job.state != PENDING or entry.let_go is None or not entry.nodes:
                continue
            if reading.now - entry.let_go <= self._patience_s:
                yield job._replace(state=HOLDING[0], started=reading.now, places=",".join(entry.nodes))

    def _takes_nodes(self, reading: Reading) -> bool | None:
        """Try whether nodes can be set of a job that is held; None: there is none to try it on."""
        for job in self._held.values():
            names = [
                node.name for node in reading.nodes if node.partition in job.partitions and NODE.fullmatch(node.name)
            ]
            if names and _may_be_pinned(job):
                break
        else:
            return None
        self.book.held[job.number].pinned = True
        if not self.book.keep():
            return None
        self.slurm.tell([f"update jobid={job.number:d} ReqNodeList={names[0]}"], WHAT)
        found = any(one.number == job.number and one.wanted == names[0] for one in self.slurm.jobs())
        confirm(self.book, (), [job.number], self.slurm.tell(unpinned([job.number]), WHAT))
        return found


def _may_be_pinned(job: JobRow) -> bool:
    """Return whether where a job runs is for the policy to say: its user did not, and it is one job."""
    return not job.wanted and not job.several
