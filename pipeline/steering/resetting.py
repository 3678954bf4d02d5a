"""Take back whatever was set: by the controller when it ends, by the watchdog, or by hand.

What was taken back stays in the book, as 0: a slurmctld that is killed has forgotten what it was told in its last
seconds, and begins again with the factors of before.
"""

from collections.abc import Callable
from time import sleep

from pipeline.errors import UserError
from pipeline.steering.asking import AwayError, Slurm, unset
from pipeline.steering.book import Book
from pipeline.steering.rows import OddError

TRIES = 3
LOOK_S = 0.5  # between two


def reset(slurm: Slurm, book: Book) -> int:
    """Set the factors of all jobs in the book to 0; return how many were not.

    A factor that somebody else set meanwhile stays. Jobs that run are reset too, or one that is requeued would come
    back with it.

    Raises:
        OddError: slurmctld does not answer, or does not do it.
        UserError: who runs this may not.
    """
    wanted = _ours(book, _seen(slurm)) if book.jobs else set()
    count, left = len(wanted), wanted
    for _ in range(TRIES):
        if not left:
            break
        slurm.set(unset(left))
        seen = _seen(slurm)
        left = {number for number in left if seen and seen.get(number, 0) != 0}
        if left:
            sleep(LOOK_S)
    if left:
        raise OddError(f"scontrol: {len(left)} jobs keep their SiteFactor, job {min(left)} first")
    if count:
        book.intend(unset(wanted), {number: book.jobs[number].submitted for number in wanted})
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
    """Return the jobs to reset: those with a factor of ours, and those whose factor is not shown, as they run."""
    if seen is None:
        return set(book.jobs)
    shown = {number for number in book.jobs.keys() & seen.keys() if seen[number] and book.owns(number, seen[number])}
    return shown | {number for number, entry in book.jobs.items() if number not in seen and entry.factor}


def until_reset(slurm: Slurm, book: Book, say: Callable[[str], None], pause_s: float) -> None:
    """Reset as soon as slurmctld answers, however long that takes."""
    said = ""
    while True:
        try:
            if count := reset(slurm, book):
                say(f"steer: SiteFactor of {count} jobs taken back")
            return
        except (OddError, UserError) as error:
            if str(error) != said:
                said = str(error)
                say(f"steer: what was set is not taken back yet: {said}")
        sleep(pause_s)
