"""`farm`: all that is stale, several stages at the same time; then `dvc repro`, which finds nothing left to do."""

import fcntl
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TextIO

from pipeline import storage
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.farming import dvc_cli
from pipeline.farming.farm import REPRO, Farm, failure, go_through
from pipeline.farming.notes import Notes, cut, exclusive, keep, ordered, stages_of
from pipeline.farming.plan import Plan, with_dependents
from pipeline.farming.processes import Command
from pipeline.progress import say
from pipeline.stages import compiling
from pipeline.tracking.digests import LOCK, dvc_waits, read_lock
from pipeline.tracking.run import LAST

USERS = Path(".dvc/tmp/rwlock")


def run(params: Params, workers: int, first: Callable[[], None] = lambda: None) -> bool:
    """Bring all stages up to date, to the bytes that `dvc repro` makes; tell whether any was stale.

    Args:
        params: of params.yaml.
        workers: stages at the same time, at most.
        first: is done before DVC is asked what is stale; no other farm is at work meanwhile, and dvc.lock is whole.

    Raises:
        UserError: a stage failed, and those that need it were left out; or another farm is at work here.
    """
    with exclusive() as held:
        notes = mended()
        first()
        stale = dvc_cli.stale()
        if not stale and notes.order is None:
            say("farm: nothing is stale")
            return False
        needs = dvc_cli.graph()
        stages = with_dependents(needs, stale)
        say(f"farm: {len(stages)} of {len(needs)} stages are stale or behind such, {workers} at a time")
        make_here(params, needs, stages, workers, held)
        notes = Notes.read()
        code, passed = go_through(held)
        if code:
            raise UserError(f"farm: {REPRO} failed behind it: run it to see why")
        _put_in_order(notes.order or [], passed)
        notes.order = None
        notes.write()
        return True


def make_here(params: Params, needs: dvc_cli.Graph, stages: Collection[str], workers: int, held: TextIO) -> None:
    """Make some stages in this repository, their code compiled before.

    Args:
        params: of params.yaml.
        needs: the whole graph.
        stages: those to be made; with a stage, all that need it, or none of these.
        workers: stages at the same time, at most.
        held: a file that stays locked while anything runs.

    Raises:
        UserError: one failed, and those that need it were left out.
    """
    notes = Notes.read()
    if notes.order is None:
        lock = read_lock() if LOCK.exists() else b""
        notes.order = stages_of(lock.decode())
        keep(lock)
    notes.write()
    compiling.first(params, stages)
    plan = Plan(needs, sorted(stages), notes.seconds, LAST)

    def ended(stage: str, fate: str, took_s: float) -> str:
        """Keep dvc.lock as it now is, and how long the stage took."""
        keep(read_lock())
        if fate == dvc_cli.RAN:
            notes.seconds[stage] = round(took_s, 1)
            notes.write()
        return fate

    Farm(plan, workers, lambda stage: Command(dvc_cli.repro(stage)), ended, held).work()
    if plan.failed:
        raise UserError(failure(plan))


def mended() -> Notes:
    """Return what earlier farms left; what a kill has cut is put back first: dvc.lock, and what DVC notes of itself."""
    _mend_users()
    notes = Notes.read()
    if notes.order is not None:
        with dvc_waits():
            kept = cut(LOCK.read_bytes() if LOCK.exists() else b"")
            if kept is not None:  # DVC's cache has what it does not tell
                storage.write(LOCK, kept)
                say(f"farm: {LOCK} was cut by a kill; put back as it was when a stage last ended")
    return notes


def _mend_users() -> None:
    """Remove a list of what is being read and written that a kill has cut: DVC writes it in place, and then refuses."""
    if not _is_cut(USERS):
        return
    with USERS.with_name(f"{USERS.name}.lock").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # as DVC does, for moments, while it writes
        if _is_cut(USERS):
            USERS.unlink()
            say(f"farm: {USERS} was cut by a kill; removed")


def _is_cut(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except (ValueError, RecursionError):
        return True
    return False


def _put_in_order(before: Sequence[str], passed: Sequence[str]) -> None:
    """Give the stages of dvc.lock the places that they have when one is made after the other."""
    with dvc_waits():
        lock = LOCK.read_text(encoding="utf-8")
        if (put := ordered(lock, before, passed)) != lock:
            storage.write(LOCK, put.encode())
