"""One run of a controller, from its start to its end, however that comes.

One controller changes something for each Slurm of a machine, whatever its folder. The sign is a socket with a name but
without a file: the kernel keeps it while a process holds it and no longer, so a killed process leaves nothing. A user
who takes the name locks out no other: a socket counts as a controller's only where its process belongs to root, to
SlurmUser or to the present user. Machines do not see each other's sockets.
"""

import asyncio
import hashlib
import os
import re
import signal
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from time import time

from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.serving.desk import Desk
from pipeline.serving.measured import Measured
from pipeline.serving.named import Named
from pipeline.steering.asking import Slurm
from pipeline.steering.book import WHO, Book, held_by, locked
from pipeline.steering.controller import Controller
from pipeline.steering.holding import claim, must_be_there
from pipeline.steering.journal import Journal
from pipeline.steering.resetting import all_back
from pipeline.steering.rows import OddError
from pipeline.steering.settings import Settings
from pipeline.steering.states import MOST_WAITING
from pipeline.steering.watchdog import Watched

BEGIN_S = 120.0  # in which the policy must answer for the first time
CREDENTIALS = struct.Struct("3i")  # process, user, group
PATIENCE_S = 1.0


def steer(
    params: Params, scenario: str, look: Callable[[], Named], fallback: Named, limit_s: float, settings: Settings
) -> None:
    """Steer until a signal comes.

    Raises:
        UserError: another controller is at work, Slurm cannot be steered, or the policy does not begin.
    """
    slurm = Slurm()
    told = slurm.must_weigh()  # first, so that no folder is left where there is nothing to steer
    with locked(settings.folder) as lock, alone(told) if settings.mode.acts else nullcontext() as sign:
        if settings.held_in:
            must_be_there(settings.held_in, {node.partition for node in slurm.read().nodes})
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
            watched = Watched(settings.folder, lock, sign, settings.tick_s) if sign else None
            if settings.mode.acts and named.digest in book.behind:
                say(f"steer: it only looks on: {book.behind[named.digest]}; another policy, or --reset, ends that")
            asyncio.run(_run(controller, watched))
            held_by(lock, WHO)  # for a moment, so that whoever begins next waits for that
        finally:
            desk.close()


def take_back(folder: Path, held_in: tuple[str, ...] = ()) -> None:
    """Reset whatever a controller of a folder left; let all go that is held in partitions, whatever the ledger says.

    Raises:
        UserError: one is at work there, or Slurm does not answer.
    """
    if not folder.is_dir() and not held_in:
        raise UserError(f"{folder}: not found; expected the --folder of a controller")
    with locked(folder):
        slurm = Slurm()
        book = _claimed(slurm, folder, held_in) if held_in else Book(folder)
        if not _take_back(slurm, book):
            say(f"steer: nothing is set, by what {folder} says{' and what is held there' if held_in else ''}")
        _leave(book)
        if book.behind:  # policies that the canary took back may act again
            for why in book.behind.values():
                say(f"steer: it may act again: {why}")
            book.behind = {}
            book.save()


def _claimed(slurm: Slurm, folder: Path, held_in: tuple[str, ...]) -> Book:
    """Return the ledger of a folder, if it can be read, with all that is held in partitions as the controller's."""
    seen = slurm.read()
    must_be_there(held_in, {node.partition for node in seen.nodes})
    try:
        book = Book(folder)
    except UserError as error:
        say(f"steer: {error}; what is held is let go without it")
        book = Book(folder, blank=True)
    book.held_in = (*dict.fromkeys((*book.held_in, *held_in)),)
    claim(book, seen.jobs, held_in)
    return book


def _take_back(slurm: Slurm, book: Book) -> str:
    if back := all_back(slurm, book):
        say(f"steer: {back}")
    return back


def _leave(book: Book) -> None:
    """Let no watchdog look after partitions any more, and say what that means."""
    if book.held_in:
        where, book.held_in = ", ".join(book.held_in), ()
        book.save()
        say(
            f"steer: what is submitted held in {where} from now on stays held, until somebody lets it go "
            f"(all at once: --reset --held-in {where.replace(' ', '')})"
        )


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
            back = await asyncio.to_thread(all_back, controller.slurm, controller.book)
            say(f"steer: ended; {(back or 'nothing is left to take back') if watched else 'nothing was touched'}")
            _leave(controller.book)
            clean = True
            controller.journal.add("end", time(), back=back)
            controller.journal.close()
        except OddError as error:
            say(f"steer: ended; the watchdog takes back what was set as soon as it can: {error}")
        finally:
            if watched:
                watched.done(clean)


def alone(told: Mapping[str, str]) -> socket.socket:
    """Return what is held while this one is the only controller of a Slurm, given its settings, on this machine.

    Raises:
        UserError: another one is at work.
    """
    cluster, host = told.get("ClusterName", ""), told.get("SlurmctldHost[0]", "")
    which = f"{cluster} {host} {told.get('SlurmctldPort', '')}"
    name = f"\0steer-slurm {hashlib.sha256(which.encode()).hexdigest()[:32]}"
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(name)
        found.listen(8)
    except OSError:
        process, user = _holder(name)
        if user not in (0, os.geteuid(), _slurm_user(told)):
            say(f"steer: a process of user {user} ({process}) has taken this cluster's name here; it is ignored")
            return found
        found.close()
        raise UserError(
            f"cluster {cluster[:60]}: another controller is at work from another folder (process {process}, or its "
            "watchdog); expected one at a time"
        ) from None
    return found


def _holder(name: str) -> tuple[int, int]:
    """Return whose socket of a name it is: the process and its user; where it has gone meanwhile, root's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(PATIENCE_S)
        try:
            asking.connect(name)
        except OSError:
            return 0, 0
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    process, user, _ = CREDENTIALS.unpack(told)
    return process, user


def _slurm_user(told: Mapping[str, str]) -> int:
    match = re.fullmatch(r".*\((\d{1,10})\)", told.get("SlurmUser", ""))
    return int(match[1]) if match else 0
