"""A controller from its beginning to its end, however that comes."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from time import time

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.serving.desk import Desk
from pipeline.serving.measured import Measured
from pipeline.serving.named import Named
from pipeline.steering.asking import Slurm
from pipeline.steering.book import Book, locked
from pipeline.steering.controller import Controller
from pipeline.steering.journal import Journal
from pipeline.steering.resetting import reset
from pipeline.steering.rows import OddError
from pipeline.steering.settings import Mode, Settings
from pipeline.steering.states import MOST_WAITING
from pipeline.steering.watchdog import Watched

BEGIN_S = 120.0  # in which the policy must answer for the first time


def steer(
    params: Params, scenario: str, look: Callable[[], Named], fallback: Named, limit_s: float, settings: Settings
) -> None:
    """Steer until a signal comes.

    Raises:
        UserError: another controller is at work, Slurm cannot be steered, or the policy does not begin.
    """
    slurm = Slurm()
    told = slurm.must_weigh()  # first, so that no folder is left where there is nothing to steer
    with locked(settings.folder) as lock:
        book = Book(settings.folder)
        _take_back(slurm, book)
        named = look()
        desk = Desk(_wide(params, scenario, named), scenario, look, fallback, limit_s, Measured())
        try:
            if not desk.wait(BEGIN_S):
                raise UserError(f"{named.policy}: {desk.why or 'its process did not begin'}")
            controller = Controller(slurm, desk, settings, book, Journal(settings.folder))
            controller.begin(told)
            whom = f"{named.policy} ({named.digest[:8]})"
            say(f"steer: {settings.mode}: {told.get('ClusterName', '')}, {whom}, every {settings.tick_s:g} s")
            watched = Watched(settings.folder, lock, settings.tick_s) if settings.mode is Mode.ORDER else None
            asyncio.run(_run(controller, watched))
        finally:
            desk.close()


def take_back(folder: Path) -> None:
    """Reset whatever a controller of a folder left.

    Raises:
        UserError: one is at work there, or Slurm does not answer.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: not found; expected the --folder of a controller")
    with locked(folder):
        count = _take_back(Slurm(), Book(folder))
        if not count:
            say(f"steer: nothing is set, by what {folder} says")


def _take_back(slurm: Slurm, book: Book) -> int:
    try:
        count = reset(slurm, book)
    except OddError as error:
        raise UserError(str(error)) from None
    if count:
        say(f"steer: SiteFactor of {count} jobs taken back")
    return count


def _wide(params: Params, scenario: str, named: Named) -> Params:
    """Let a heuristic see the whole queue; a network sees as many slots as it was trained with."""
    if Path(named.place).is_dir():
        return params
    row = params.machines_scenario(scenario)
    wide = row.model_copy(update={"slots": max(row.slots, MOST_WAITING)})
    return params.model_copy(update={"scenarios": {**params.scenarios, scenario: wide}})


async def _run(controller: Controller, watched: Watched | None) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if watched:
        controller.slurm.held = (watched.pipe,)
    clean = False
    try:
        await controller.go_round(stop, watched)
    finally:
        try:
            count = await asyncio.to_thread(reset, controller.slurm, controller.book)
            controller.journal.add("end", time(), reset=count)
            controller.journal.close()
            clean = True
            say(f"steer: ended; {f'SiteFactor of {count} jobs taken back' if watched else 'nothing was touched'}")
        except OddError as error:
            say(f"steer: ended; the watchdog takes back what was set as soon as it can: {error}")
        finally:
            if watched:
                watched.done(clean)
