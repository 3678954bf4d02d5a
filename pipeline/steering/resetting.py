"""Take back whatever was set: by the controller when it ends, by the watchdog, or by hand."""

from collections.abc import Callable
from time import sleep

from pipeline.errors import UserError
from pipeline.steering.asking import Slurm, unset
from pipeline.steering.book import Book
from pipeline.steering.rows import OddError

TRIES = 3
LOOK_S = 0.5  # between two


def reset(slurm: Slurm, book: Book) -> int:
    """Set the factors of all jobs in the book to 0, and empty it; return how many jobs were in it.

    A factor that somebody else set meanwhile stays. Jobs that run are reset too, or one that is requeued would come
    back with it.

    Raises:
        OddError: slurmctld does not answer, or does not do it.
        UserError: who runs this may not.
    """
    count = len(book.jobs)
    wanted = _ours(book, _seen(slurm)) if count else {}
    for _ in range(TRIES):
        if not wanted:
            break
        slurm.set(unset(wanted))
        seen = _seen(slurm)
        wanted = {number for number in wanted if seen and seen.get(number, 0) != 0}
        if wanted:
            sleep(LOOK_S)
    if wanted:
        raise OddError(f"scontrol: {len(wanted)} jobs keep their SiteFactor, job {min(wanted)} first")
    book.jobs.clear()
    if count:
        book.save()
    return count


def _seen(slurm: Slurm) -> dict[int, int] | None:
    """Return the factors that sprio shows; None: it cannot be read, and all is reset then, whoever set it."""
    from pipeline.steering.asking import AwayError

    try:
        return slurm.factors()
    except AwayError:
        raise
    except OddError:
        return None


def _ours(book: Book, seen: dict[int, int] | None) -> set[int]:
    return {number for number in book.jobs if seen is None or book.owns(number, seen.get(number, 0))}


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
