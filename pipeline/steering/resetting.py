"""Take back whatever was set: by the controller when it ends, by the watchdog, or by hand.

What was taken back stays in the book, as 0: a slurmctld that is killed has forgotten what it was told in its last
seconds, and begins again with the factors of before.
"""

import re
from collections.abc import Callable
from time import monotonic, sleep

from pipeline.errors import UserError
from pipeline.steering.asking import AwayError, Slurm, sure
from pipeline.steering.book import Book
from pipeline.steering.holding import let_all_go
from pipeline.steering.rows import OddError

TRIES = 3
UNKNOWN = re.compile(r"Invalid job id specified for job (\d+)")
LOOK_S = 0.5  # between two
LONGEST_PAUSE_S = 60.0


def reset(slurm: Slurm, book: Book) -> int:
    """Set the factors of all jobs in the book to 0; return how many were not, of those that are there.

    A factor that somebody else set meanwhile stays. Jobs that run are reset too, or one that is requeued would come
    back with it.

    Raises:
        UserError: slurmctld does not answer, or does not do it, or not for this account.
    """
    wanted = _ours(book, _seen(slurm)) if book.jobs else set()
    count, left = sum(book.jobs[number].gone is None for number in wanted), wanted
    stay, unsure, complaint = set[int](), set[int](), ""
    for attempt in range(TRIES):
        if not left:
            break
        sleep(LOOK_S if attempt else 0.0)
        complaint = slurm.set(dict.fromkeys(left, 0))
        seen = _seen(slurm) or {}
        stay = {number for number in left if seen.get(number, 0) != 0}
        # Not shown, so scontrol's word is all there is; of a job that slurmctld does not know, nothing is left to set.
        unsure = left - seen.keys() - sure(left, complaint) - {int(one) for one in UNKNOWN.findall(complaint)}
        left = stay | {number for number in unsure if book.jobs[number].gone is None}
    if stay:
        why = f": {' '.join(complaint.split())[:200]}" if complaint else ""
        raise OddError(f"scontrol: {len(stay)} jobs keep their SiteFactor, job {min(stay)} first{why}")
    if done := wanted - unsure:
        book.note(dict.fromkeys(done, 0), {number: book.jobs[number].submitted for number in done})
        book.keep()
    return count


def _seen(slurm: Slurm) -> dict[int, int] | None:
    """Return the factors that sprio shows; None: it cannot be read, and all is reset then, whoever set it."""
    try:
        return slurm.factors()
    except AwayError:
        raise
    except OddError:
        return None


def _ours(book: Book, seen: dict[int, int] | None) -> set[int]:
    """Return the jobs to reset: those with a factor of ours, and those whose factor is not shown, as they run.

    One that is gone may be back by now, and run: slurmctld complains of it else, and does nothing.
    """
    if seen is None:
        return set(book.jobs)
    shown = {number for number in book.jobs.keys() & seen.keys() if seen[number] and book.owns(number, seen[number])}
    return shown | {number for number, entry in book.jobs.items() if number not in seen and entry.factor}


def all_back(slurm: Slurm, book: Book) -> str:
    """Reset all factors and let all jobs go that are held for the controller; return what to say of it.

    Raises:
        UserError: slurmctld does not answer, or does not do it, or not for this account.
    """
    found, failed = list[str](), list[UserError]()
    for said, act in (("SiteFactor of {} jobs taken back", reset), ("{} held jobs let go", let_all_go)):
        try:
            if count := act(slurm, book):
                found.append(said.format(count))
        except UserError as error:  # one that fails must not keep the other from being done
            failed.append(error)
    if failed:
        raise failed[0]
    return ", ".join(found)


def until_reset(slurm: Slurm, book: Book, say: Callable[[str], None], pause_s: float, most_s: float) -> bool:
    """Take all back as soon as slurmctld answers; return whether that was within `most_s`.

    Pauses grow from `pause_s` by half each, up to a minute. Each reason for a failure is said once.
    """
    said, begun = "", monotonic()
    while True:
        try:
            if back := all_back(slurm, book):
                say(f"steer: {back}")
            return True
        except UserError as error:
            if str(error) != said:
                said = str(error)
                say(f"steer: what was set is not taken back yet: {said}")
        if monotonic() - begun >= most_s:
            say(f"steer: given up after {most_s / 3600:g} h; when Slurm is back: {by_hand(book)}")
            return False
        sleep(min(pause_s, most_s))
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)


def by_hand(book: Book) -> str:
    """Return the command that takes back what a book has."""
    return f"python -m pipeline steer slurm --reset --folder {book.path.parent}"
