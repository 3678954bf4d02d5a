"""Undo all changes, on behalf of the controller when it ends, of the watchdog, or of a user.

A reset factor stays in the ledger, as 0: a killed slurmctld has forgotten its last seconds, and restarts with the
earlier factors.
"""

import re
from collections.abc import Callable
from time import monotonic, sleep

from pipeline.errors import UserError
from pipeline.steering.ledger import Ledger
from pipeline.steering.release import release_all
from pipeline.steering.rows import OddError
from pipeline.steering.slurm import AwayError, Slurm, confirmed_jobs

TRIES, LOOK_S = 3, 0.5  # attempts, and seconds between two
UNKNOWN = re.compile(r"Invalid job id specified for job (\d+)")
LONGEST_PAUSE_S = 60.0


def reset(slurm: Slurm, ledger: Ledger) -> int:
    """Set the factors of all jobs in the ledger to 0; return how many present jobs had another, or raise a UserError.

    A factor that another user has set since stays. Running jobs are reset too, since a requeued job keeps its factor.
    """
    wanted = _jobs_to_reset(ledger, _shown_factors(slurm)) if ledger.jobs else set()
    count, left = sum(ledger.jobs[number].gone is None for number in wanted), wanted
    stay, unsure, complaint = set[int](), set[int](), ""
    for attempt in range(TRIES):
        if not left:
            break
        sleep(LOOK_S if attempt else 0.0)
        complaint = slurm.set(dict.fromkeys(left, 0))
        seen = _shown_factors(slurm) or {}
        stay = {number for number in left if seen.get(number, 0) != 0}
        # For jobs that sprio does not show, scontrol's answer must do; a job unknown to slurmctld needs no reset.
        unknown = {int(one) for one in UNKNOWN.findall(complaint)}
        unsure = left - seen.keys() - confirmed_jobs(left, complaint) - unknown
        left = stay | {number for number in unsure if ledger.jobs[number].gone is None}
    if stay:
        why = f": {' '.join(complaint.split())[:200]}" if complaint else ""
        raise OddError(f"scontrol: {len(stay)} jobs keep their SiteFactor, job {min(stay)} first{why}")
    if done := wanted - unsure:
        ledger.note(dict.fromkeys(done, 0), {number: ledger.jobs[number].submitted for number in done})
        ledger.try_save()
    return count


def _shown_factors(slurm: Slurm) -> dict[int, int] | None:
    """Return the factors that sprio shows, or None if unreadable; the caller then resets every job of the ledger."""
    try:
        return slurm.factors()
    except AwayError:
        raise
    except OddError:
        return None


def _jobs_to_reset(ledger: Ledger, seen: dict[int, int] | None) -> set[int]:
    """Return the jobs with a factor that was set here, and those whose factor is not shown because they run.

    A job that was gone may be running again by now; if not, slurmctld complains, which does no harm.
    """
    if seen is None:
        return set(ledger.jobs)
    common = ledger.jobs.keys() & seen.keys()
    shown = {number for number in common if seen[number] and ledger.owns(number, seen[number])}
    return shown | {number for number, entry in ledger.jobs.items() if number not in seen and entry.factor}


def undo_all(slurm: Slurm, ledger: Ledger) -> str:
    """Reset all factors and release all jobs held for the controller; return a summary, or raise like `reset`."""
    found, failed = list[str](), list[UserError]()
    for said, act in (("SiteFactor of {} jobs taken back", reset), ("{} held jobs let go", release_all)):
        try:
            if count := act(slurm, ledger):
                found.append(said.format(count))
        except UserError as error:  # a failure of one must not prevent the other
            failed.append(error)
    if failed:
        raise failed[0]
    return ", ".join(found)


def retry_undo(slurm: Slurm, ledger: Ledger, say: Callable[[str], None], pause_s: float, most_s: float) -> bool:
    """Undo all as soon as slurmctld answers; return whether that took less than `most_s`.

    Pauses grow from `pause_s` by half each time, up to a minute. Each reason for a failure is printed once.
    """
    said, begun = "", monotonic()
    while True:
        try:
            if back := undo_all(slurm, ledger):
                say(f"steer: {back}")
            return True
        except UserError as error:
            if str(error) != said:
                said = str(error)
                say(f"steer: what was set is not taken back yet: {said}")
        if monotonic() - begun >= most_s:
            by_hand = f"python -m pipeline steer slurm --reset --folder {ledger.path.parent}"
            say(f"steer: given up after {most_s / 3600:g} h; when Slurm is back: {by_hand}")
            return False
        sleep(min(pause_s, most_s))
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)
