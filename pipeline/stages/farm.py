"""`farm`: make all stale stages, several at the same time; then run `dvc repro`, which has only to confirm it."""

import fcntl
import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TextIO

from pipeline.core import storage
from pipeline.core.config import Params
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
    """Bring all stages up to date, byte for byte as `dvc repro` does; return whether any was stale.

    Args:
        params: of params.yaml.
        workers: maximum number of stages at the same time.
        first: called before DVC determines what is stale, while no other farm runs and dvc.lock is intact.

    Raises:
        UserError: a stage failed, so that its dependents were skipped; or another farm runs here.
    """
    with exclusive() as held:
        notes = repaired()
        first()
        stale = dvc_cli.stale()
        if not stale and notes.order is None:
            say("farm: no stage is stale")
            return False
        needs = dvc_cli.graph()
        stages = with_dependents(needs, stale)
        say(f"farm: {len(stages)} of {len(needs)} stages are stale or depend on stale ones, {workers} at a time")
        make_here(params, needs, stages, workers, held)
        notes = Notes.read()
        code, passed = go_through(held)
        if code:
            raise UserError(f"farm: {REPRO} failed afterwards: run it to see why")
        with dvc_waits():  # restore the order of stages in dvc.lock that a sequential run has
            lock = LOCK.read_text(encoding="utf-8")
            if (put := ordered(lock, notes.order or [], passed)) != lock:
                storage.write(LOCK, put.encode())
        notes.order = None
        notes.write()
        return True


def make_here(params: Params, needs: dvc_cli.Graph, stages: Collection[str], workers: int, held: TextIO) -> None:
    """Compile the code of some stages and make them in this repository.

    Args:
        params: of params.yaml.
        needs: the whole graph.
        stages: those to make; with a stage, either all of its dependents or none.
        workers: maximum number of stages at the same time.
        held: a file that stays locked while anything runs.

    Raises:
        UserError: one failed, and its dependents were skipped.
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
        """Save dvc.lock and the duration of the stage."""
        keep(read_lock())
        if fate == dvc_cli.RAN:
            notes.seconds[stage] = round(took_s, 1)
            notes.write()
        return fate

    Farm(plan, workers, lambda stage: Command(dvc_cli.repro(stage)), ended, held).work()
    if plan.failed:
        raise UserError(failure(plan))


def repaired() -> Notes:
    """Return the notes of earlier farms, after restoring the files of DVC that a kill has truncated."""
    if _is_truncated(USERS):  # DVC writes its list of readers and writers in place, and refuses a damaged one
        with USERS.with_name(f"{USERS.name}.lock").open("a") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)  # DVC holds it briefly while it writes
            if _is_truncated(USERS):
                USERS.unlink()
                say(f"farm: {USERS} was cut by a kill; removed")
    notes = Notes.read()
    if notes.order is not None:
        with dvc_waits():
            kept = cut(LOCK.read_bytes() if LOCK.exists() else b"")
            if kept is not None:  # the missing entries are still in DVC's cache
                storage.write(LOCK, kept)
                say(f"farm: {LOCK} was cut by a kill; restored its state when a stage last ended")
    return notes


def _is_truncated(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except (ValueError, RecursionError):
        return True
    return False
