"""Mode `release`: jobs that are submitted held, and their release in the policy's order.

A site names the partitions whose jobs are submitted held. There, the controller manages a job while its hold is the one
it was first seen with. When a user changes the hold, releases the job, or holds it again after its release, the job is
left to the user. Slurm's own holds (a requeue in held state, a failed launch) are not touched. A release counts when
scontrol confirms it or a reading shows the job without its hold; until then, a job that is still held is released
again. No release waits for a disk.

The policy decides as in the simulator: which jobs start now, and on which nodes. These jobs are released in its order
and pinned to their nodes by ReqNodeList, if this version of Slurm accepts that after submission, which is tried on the
first held job. Released jobs that do not run yet hold their nodes in the state that the policy sees. Jobs that are held
for too long, depend on others, have a reservation or fit on no nodes are released at once, to wherever Slurm wants.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from time import sleep

from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.steering.factors import PoolDecision
from pipeline.steering.ledger import SAVED_S, Held, Ledger
from pipeline.steering.rows import HOLDING, PENDING, JobRow, OddError, Reading
from pipeline.steering.settings import Settings
from pipeline.steering.slurm import AwayError, Slurm, confirmed_jobs
from pipeline.steering.states import UNREAD

NODE = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
WHAT = "jobs of others may be released"
TRIES, LOOK_S = 3, 0.5  # attempts, and seconds between two
CLOCK_S = 1.0  # resolution of slurmctld's start time
LEAST_STUCK_S, STUCK_TICKS = 60.0, 5  # that a job may wait for its nodes: Slurm may schedule only once a minute
WITHDRAWN = "the canary took the policy back"
LONG, DEPENDS, RESERVED, NOWHERE = "held for too long", "depends on others", "in a reservation", "fits on no nodes"


def update_held(
    ledger: Ledger, jobs: Iterable[JobRow], held_in: Collection[str], now: float, boot_time: Callable[[], float]
) -> bool:
    """Update the ledger with a reading of the jobs; return whether that changed it.

    Jobs of the partitions `held_in` are submitted held. `boot_time` returns when slurmctld started, and is called only
    where that matters.
    """
    before = {number: one.model_copy() for number, one in ledger.held.items()}
    there = {job.number: job for job in jobs if set(job.partitions) <= set(held_in)}
    for job in there.values():
        if job.state == PENDING:
            _update_one(ledger, job, now, boot_time)
    for number in ledger.held.keys() - there.keys():
        del ledger.held[number]
    return ledger.held != before


def _update_one(ledger: Ledger, job: JobRow, now: float, boot_time: Callable[[], float]) -> None:
    entry = ledger.held.get(job.number)
    if entry is None or (entry.submitted != job.submitted and not job.restarts):  # a restarted slurmctld reuses numbers
        ledger.held[job.number] = Held(submitted=job.submitted, hold=job.hold)
    elif entry.submitted != job.submitted:  # it was requeued
        again = entry.let_go is not None or not entry.hold
        changed = Held(submitted=job.submitted, hold="" if again else job.hold, nodes=entry.nodes, pinned=entry.pinned)
        ledger.held[job.number] = changed
    elif entry.let_go is None:
        entry.hold = entry.hold if job.hold == entry.hold else ""
    elif not job.hold:
        entry.done, entry.kept = True, entry.kept or now - entry.let_go > SAVED_S
    elif job.hold == entry.hold and not entry.kept and (not entry.done or boot_time() > entry.let_go - CLOCK_S):
        entry.let_go, entry.nodes, entry.done = None, (), False  # slurmctld never did it, or was killed and forgot
    else:
        entry.hold = ""  # another user holds it


def claim(ledger: Ledger, jobs: Iterable[JobRow], held_in: Collection[str]) -> None:
    """Treat all held jobs of some partitions as the controller's, whatever the ledger says."""
    for job in jobs:
        if job.state == PENDING and job.hold and set(job.partitions) <= set(held_in):
            known = ledger.held.get(job.number)
            pinned = known is not None and known.pinned
            ledger.held[job.number] = Held(submitted=job.submitted, hold=job.hold, pinned=pinned)


def _waiting(ledger: Ledger, jobs: Iterable[JobRow]) -> Iterator[tuple[JobRow, Held]]:
    """Yield the waiting jobs of the ledger, and their entries."""
    for job in jobs:
        if job.state == PENDING and (entry := ledger.held.get(job.number)):
            yield job, entry


def releasable(ledger: Ledger, jobs: Iterable[JobRow]) -> list[JobRow]:
    """Return the jobs that are held for this controller to release."""
    found = _waiting(ledger, jobs)
    return [job for job, entry in found if entry.let_go is None and entry.hold and entry.hold == job.hold]


def stuck_jobs(ledger: Ledger, jobs: Iterable[JobRow], now: float, most_s: float) -> list[int]:
    """Return the jobs to unpin: they have waited too long for their nodes, or wait again after a requeue."""
    found = ((job, entry) for job, entry in _waiting(ledger, jobs) if entry.pinned and not job.hold)
    return [job.number for job, entry in found if entry.let_go is None or now - entry.let_go > most_s]


def unpin_lines(numbers: Iterable[int]) -> list[str]:
    """Return the scontrol commands that let Slurm place jobs anywhere."""
    return [f"update jobid={number:d} ReqNodeList=" for number in numbers]


def release_lines(ledger: Ledger, number: int, nodes: Sequence[str], pin: bool, now: float) -> list[str]:
    """Note the intent to release a job to nodes (with `pin`: nowhere else), and return the lines of scontrol."""
    entry = ledger.held[number]
    entry.let_go, entry.nodes, entry.done = now, tuple(nodes), False
    pin = bool(pin and nodes and all(NODE.fullmatch(name) for name in nodes))
    entry.pinned |= pin  # a pinned job counts as pinned until scontrol confirms the opposite
    first = [f"update jobid={number:d} ReqNodeList={','.join(nodes)}"] if pin else []
    return [*first, f"release {number:d}"]


def confirm(ledger: Ledger, released: Iterable[int], unpinned: Iterable[int], complaint: str) -> None:
    """Note which jobs scontrol certainly released, and which it certainly unpinned."""
    for number in confirmed_jobs(released, complaint):
        ledger.held[number].done = True
    for number in confirmed_jobs(unpinned, complaint):
        ledger.held[number].pinned, ledger.held[number].nodes = False, ()


def release_all(slurm: Slurm, ledger: Ledger) -> int:
    """Release all jobs that are held for the controller and unpin those that wait; return the number of held jobs.

    Raises OddError: slurmctld does not answer, or jobs are still held afterwards. UserError: Slurm denies it.
    """
    if not ledger.held_in and not ledger.held:
        return 0
    try:
        jobs = slurm.jobs()
    except AwayError:
        raise
    except OddError:  # squeue cannot be read: release what the ledger has
        now = time.time()
        found = [number for number, one in ledger.held.items() if one.hold and not one.done]
        lines = [line for number in found for line in release_lines(ledger, number, (), False, now)]
        confirm(ledger, found, (), slurm.update(lines, WHAT))
        ledger.try_save()
        return len(found)
    held_in = ledger.held_in or {name for job in jobs if job.number in ledger.held for name in job.partitions}
    count, complaint = 0, ""
    for attempt in range(TRIES + 1):
        now = time.time()
        update_held(ledger, jobs, held_in, now, slurm.boot_time)
        left, loose = releasable(ledger, jobs), stuck_jobs(ledger, jobs, now, most_s=-1.0)
        count = count or len(left)
        ledger.try_save()
        if attempt == TRIES or not (left or loose):
            break
        lines = [line for job in left for line in release_lines(ledger, job.number, (), False, now)]
        sleep(LOOK_S if attempt else 0.0)
        ledger.try_save()
        complaint = slurm.update(unpin_lines(loose) + lines, WHAT)
        confirm(ledger, (), loose, complaint)  # releases are verified by the next reading
        jobs = slurm.jobs()
    if still := [job.number for job in left]:
        why = f": {' '.join(complaint.split())[:200]}" if complaint else ""
        raise OddError(f"scontrol: {len(still)} jobs are still held, job {min(still)} first{why}")
    return count


def check_partitions(held_in: Sequence[str], partitions: Collection[str]) -> None:
    """Raise a UserError for the first partition that does not exist."""
    for name in held_in:
        if name not in partitions:
            raise UserError(f"--held-in: unknown partition '{name[:60]}': there are {', '.join(sorted(partitions))}")


class Releaser:
    """Releases jobs of one Slurm cluster."""

    def __init__(self, slurm: Slurm, ledger: Ledger, settings: Settings) -> None:
        self.slurm, self.ledger, self.settings = slurm, ledger, settings
        self.pins: bool | None = None  # does this cluster accept ReqNodeList? None: no job was held yet
        self._held: dict[int, JobRow] = {}  # jobs that may be released, at the last reading
        self._patience_s = max(LEAST_STUCK_S, STUCK_TICKS * settings.tick_s)

    def visible(self, reading: Reading) -> Reading:
        """Return the jobs that the policy sees: held ones as eligible, running ones, and those about to run."""
        if update_held(self.ledger, reading.jobs, self.settings.held_in, reading.now, self.slurm.boot_time):
            self.ledger.try_save()
        held = releasable(self.ledger, reading.jobs)
        self._held = {job.number: job for job in held if job.eligible is None or job.eligible <= reading.now}
        if self.pins is None:
            self.pins = self._try_to_pin(reading)
        waiting = [one._replace(array=one.number) for one in self._held.values() if not self._at_once(one, reading.now)]
        running = [job for job in reading.jobs if job.state in HOLDING]
        for job, entry in _waiting(self.ledger, reading.jobs):  # released jobs that do not run yet, as if they ran
            if entry.nodes and entry.let_go is not None and reading.now - entry.let_go <= self._patience_s:
                running.append(job._replace(state=HOLDING[0], started=reading.now, places=",".join(entry.nodes)))
        return reading._replace(jobs=[*waiting, *running], factors=dict.fromkeys((job.number for job in waiting), 0))

    def release(self, found: Sequence[PoolDecision], reading: Reading, withdrawn: bool) -> tuple[dict[str, Json], str]:
        """Release the jobs that the policy starts; return where each went and why, and scontrol's complaint.

        A withdrawn policy releases all at once, so that Slurm's own order applies. Raises like `Slurm.update`.
        """
        loose = stuck_jobs(self.ledger, reading.jobs, reading.now, self._patience_s)
        lines, complaint = unpin_lines(loose), ""
        going = dict.fromkeys(self._held, ((), WITHDRAWN)) if withdrawn else self._going(found, reading.now)
        for number, (nodes, _) in going.items():
            pin = bool(self.pins) and _may_be_pinned(self._held[number])
            lines += release_lines(self.ledger, number, nodes, pin, reading.now)
        if lines:
            if not self.ledger.try_save():  # a full disk stops no release, but an unrecorded pin would stay
                lines = [line for line in lines if line.startswith("release ") or line.endswith("=")]
            complaint = self.slurm.update(lines, WHAT)
            confirm(self.ledger, going, loose, complaint)
            self.ledger.try_save()
        return {str(number): {"nodes": list(nodes), "why": why} for number, (nodes, why) in going.items()}, complaint

    def _going(self, found: Sequence[PoolDecision], now: float) -> dict[int, tuple[tuple[str, ...], str]]:
        """Return the jobs to release, in order: their nodes, and the reason if it is not the policy."""
        going: dict[int, tuple[tuple[str, ...], str]] = {}
        for number, job in self._held.items():
            if why := self._at_once(job, now):
                going[number] = ((), why)
        for one in found:
            going |= {number: (nodes, "") for number, nodes in one.starts.items()}
            going |= dict.fromkeys(one.never, ((), NOWHERE))
        return going

    def _at_once(self, job: JobRow, now: float) -> str:
        """Return why a job is released regardless of the policy; "" if it is not."""
        if now - job.arrived > self.settings.longest_hold_s:
            return LONG
        return DEPENDS if job.depends else RESERVED if job.reserved else UNREAD if job.odd else ""

    def _try_to_pin(self, reading: Reading) -> bool | None:
        """Try to set the nodes of a held job; None: there is no job to try it on."""
        for job in self._held.values():
            own = [node.name for node in reading.nodes if node.partition in job.partitions]
            names = [name for name in own if NODE.fullmatch(name)]
            if names and _may_be_pinned(job):
                break
        else:
            return None
        self.ledger.held[job.number].pinned = True
        if not self.ledger.try_save():
            return None
        self.slurm.update([f"update jobid={job.number:d} ReqNodeList={names[0]}"], WHAT)
        found = any(one.number == job.number and one.wanted == names[0] for one in self.slurm.jobs())
        confirm(self.ledger, (), [job.number], self.slurm.update(unpin_lines([job.number]), WHAT))
        return found


def _may_be_pinned(job: JobRow) -> bool:
    """Return whether the policy may place a job: its user did not, and it is not several tasks of an array."""
    return not job.wanted and not job.several
