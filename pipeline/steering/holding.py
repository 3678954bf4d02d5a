"""Jobs that are submitted held for a controller to let go: which they are, and how they are let go.

A site says in which partitions jobs are submitted held. There, a job is the controller's while it is held as it was
when it was first seen. Whoever holds it in another way, lets it go himself, or holds it again behind its release, has
it from then on. Of Slurm's own holds (a requeue in held state, a launch that failed) none is touched.

A release counts when scontrol confirms it or a reading shows the job without its hold. Before that, a job that is still
held is released again. No release waits for a disk.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from time import sleep

from pipeline.errors import UserError
from pipeline.steering.asking import AwayError, Slurm, sure
from pipeline.steering.book import SAVED_S, Book, Held
from pipeline.steering.rows import PENDING, JobRow, OddError

NODE = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
WHAT = "jobs of others may be released"
TRIES, LOOK_S = 3, 0.5  # and between two
CLOCK_S = 1.0  # to which slurmctld tells when it began
Began = Callable[[], float]  # when slurmctld began, which is asked where it matters


def look(book: Book, jobs: Iterable[JobRow], held_in: Collection[str], now: float, began: Began) -> bool:
    """Bring the book up to date with the jobs that there are; return whether that changed it."""
    before, there = {number: one.model_copy() for number, one in book.held.items()}, set[int]()
    for job in jobs:
        if not set(job.partitions) <= set(held_in):
            continue
        there.add(job.number)
        if job.state == PENDING:
            _see(book, job, now, began)
    for number in book.held.keys() - there:
        del book.held[number]
    return book.held != before


def _see(book: Book, job: JobRow, now: float, began: Began) -> None:
    entry = book.held.get(job.number)
    if entry is None or (entry.submitted != job.submitted and not job.restarts):  # the other was forgotten
        book.held[job.number] = Held(submitted=job.submitted, hold=job.hold)
    elif entry.submitted != job.submitted:  # it was requeued
        again = entry.let_go is not None or not entry.hold
        changed = Held(submitted=job.submitted, hold="" if again else job.hold, nodes=entry.nodes, pinned=entry.pinned)
        book.held[job.number] = changed
    elif entry.let_go is None:
        entry.hold = entry.hold if job.hold == entry.hold else ""
    elif not job.hold:
        entry.done, entry.kept = True, entry.kept or now - entry.let_go > SAVED_S
    elif job.hold == entry.hold and not entry.kept and (not entry.done or began() > entry.let_go - CLOCK_S):
        entry.let_go, entry.nodes, entry.done = None, (), False  # slurmctld never did it, or was killed and forgot
    else:
        entry.hold = ""  # somebody else holds it


def claim(book: Book, jobs: Iterable[JobRow], held_in: Collection[str]) -> None:
    """Take all jobs held in some partitions for the controller's, whatever the ledger says."""
    for job in jobs:
        if job.state == PENDING and job.hold and set(job.partitions) <= set(held_in):
            known = book.held.get(job.number)
            pinned = known is not None and known.pinned
            book.held[job.number] = Held(submitted=job.submitted, hold=job.hold, pinned=pinned)


def ours(book: Book, jobs: Iterable[JobRow]) -> list[JobRow]:
    """Return the jobs that are held for this controller to let go."""
    found = []
    for job in jobs:
        entry = book.held.get(job.number)
        if entry and job.state == PENDING and entry.let_go is None and entry.hold and entry.hold == job.hold:
            found.append(job)
    return found


def stuck(book: Book, jobs: Iterable[JobRow], now: float, most_s: float) -> list[int]:
    """Return the jobs that wait for nodes of ours for too long, or again behind a requeue; Slurm may place them."""
    found = []
    for job in jobs:
        entry = book.held.get(job.number)
        if not entry or not entry.pinned or job.state != PENDING or job.hold:
            continue
        if entry.let_go is None or now - entry.let_go > most_s:
            found.append(job.number)
    return found


def unpinned(numbers: Iterable[int]) -> list[str]:
    """Return the lines that let Slurm place jobs."""
    return [f"update jobid={number:d} ReqNodeList=" for number in numbers]


def confirm(book: Book, gone: Iterable[int], loose: Iterable[int], complaint: str) -> None:
    """Note which jobs scontrol certainly let go, and which ones it certainly lets Slurm place."""
    for number in sure(gone, complaint):
        book.held[number].done = True
    for number in sure(loose, complaint):
        book.held[number].pinned, book.held[number].nodes = False, ()


def released(book: Book, number: int, nodes: Sequence[str], pin: bool, now: float) -> list[str]:
    """Return the lines that let a job go to nodes (with `pin`: nowhere else), and note the intent."""
    entry = book.held[number]
    entry.let_go, entry.nodes, entry.done = now, tuple(nodes), False
    pin = bool(pin and nodes and all(NODE.fullmatch(name) for name in nodes))
    entry.pinned |= pin  # what is pinned already stays so until scontrol confirms that it is not
    first = [f"update jobid={number:d} ReqNodeList={','.join(nodes)}"] if pin else []
    return [*first, f"release {number:d}"]


def let_all_go(slurm: Slurm, book: Book) -> int:
    """Let all jobs go that are held for the controller, and Slurm place those that wait; return how many were held.

    Raises:
        OddError: slurmctld does not answer, or does not do it.
        UserError: who runs this may not.
    """
    if not book.held_in and not book.held:
        return 0
    try:
        jobs = slurm.jobs()
    except AwayError:
        raise
    except OddError:
        return _blindly(slurm, book)
    held_in = book.held_in or {name for job in jobs if job.number in book.held for name in job.partitions}
    count = 0
    complaint = ""
    for attempt in range(TRIES + 1):
        now = time.time()
        look(book, jobs, held_in, now, slurm.began)
        left, loose = ours(book, jobs), stuck(book, jobs, now, most_s=-1.0)
        count = count or len(left)
        book.keep()
        if attempt == TRIES or not (left or loose):
            break
        lines = [line for job in left for line in released(book, job.number, (), False, now)]
        sleep(LOOK_S if attempt else 0.0)
        book.keep()
        complaint = slurm.tell(unpinned(loose) + lines, WHAT)
        confirm(book, (), loose, complaint)  # whether they were let go is read, not believed
        jobs = slurm.jobs()
    if still := [job.number for job in left]:
        why = f": {' '.join(complaint.split())[:200]}" if complaint else ""
        raise OddError(f"scontrol: {len(still)} jobs are still held, job {min(still)} first{why}")
    return count


def _blindly(slurm: Slurm, book: Book) -> int:
    """Let go what the book has, where squeue cannot be read."""
    now = time.time()
    found = [number for number, one in book.held.items() if one.hold and not one.done]
    lines = [line for number in found for line in released(book, number, (), False, now)]
    confirm(book, found, (), slurm.tell(lines, WHAT))
    book.keep()
    return len(found)


def must_be_there(held_in: Sequence[str], partitions: Collection[str]) -> None:
    """Refuse partitions that there are not.

    Raises:
        UserError: the first of them.
    """
    for name in held_in:
        if name not in partitions:
            raise UserError(f"--held-in: unknown partition '{name[:60]}': there are {', '.join(sorted(partitions))}")
