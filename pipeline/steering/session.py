"""One run of a controller, from its start to its end, whatever the cause of the end.

On a machine, only one controller acts on each Slurm cluster, whatever its folder. The claim is a socket with a name but
without a file: the kernel keeps it exactly as long as a process holds it, so a killed process leaves nothing. A user
who takes the name does not lock out others: a socket counts as a controller's only if its process belongs to root, to
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

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.serving.gateway import PolicyGateway
from pipeline.serving.records import Metrics, ServedPolicy
from pipeline.steering.controller import Controller
from pipeline.steering.journal import Journal
from pipeline.steering.ledger import WATCHDOG, Ledger, lock_folder, sign_lock
from pipeline.steering.release import check_partitions, claim
from pipeline.steering.rows import OddError
from pipeline.steering.settings import Settings
from pipeline.steering.slurm import Slurm
from pipeline.steering.states import MOST_WAITING
from pipeline.steering.watchdog import Watchdog, undo_all

CREDENTIALS = struct.Struct("3i")  # process, user, group
PATIENCE_S = 1.0


def steer(
    params: Params,
    scenario: str,
    look: Callable[[], ServedPolicy],
    fallback: ServedPolicy,
    limit_s: float,
    settings: Settings,
) -> None:
    """Steer until a signal comes.

    Raises UserError: another controller is at work, Slurm cannot be steered, or the policy does not begin.
    """
    slurm = Slurm()
    known = slurm.check_multifactor()  # first, so that no folder is created if Slurm cannot be steered
    acts = settings.mode.acts
    with lock_folder(settings.folder) as lock, claim_cluster(known) if acts else nullcontext() as sign:
        if settings.held_in:
            check_partitions(settings.held_in, {node.partition for node in slurm.read().nodes})
        ledger = Ledger(settings.folder)
        _undo(slurm, ledger)
        served = look()
        if not Path(served.place).is_dir():  # a heuristic sees the whole queue; a network as many slots as in training
            row = params.machines_scenario(scenario)
            wide = row.model_copy(update={"slots": max(row.slots, MOST_WAITING)})
            params = params.model_copy(update={"scenarios": {**params.scenarios, scenario: wide}})
        gateway = PolicyGateway(params, scenario, look, fallback, limit_s, Metrics())
        try:
            gateway.wait()
            controller = Controller(slurm, gateway, settings, ledger, Journal(settings.folder))
            controller.begin(known)
            whom = f"{served.policy} ({served.digest[:8]})"
            say(f"steer: {settings.mode}: {known.get('ClusterName', '')}, {whom}, every {settings.tick_s:g} s")
            watchdog = Watchdog(settings.folder, lock, sign, settings.tick_s) if sign else None
            if acts and served.digest in ledger.withdrawn:
                why = ledger.withdrawn[served.digest]
                say(f"steer: it only observes: {why}; another policy, or --reset, ends that")
            asyncio.run(_run(controller, watchdog))
            sign_lock(lock, WATCHDOG)  # so that the next controller waits briefly for the watchdog's end
        finally:
            gateway.close()


def take_back(folder: Path, held_in: tuple[str, ...] = ()) -> None:
    """Undo the changes of a stopped controller, and release all held jobs in `held_in`, even if the ledger lacks them.

    Raises UserError: a controller still runs in the folder, or Slurm does not answer.
    """
    if not folder.is_dir() and not held_in:
        raise UserError(f"{folder}: not found; expected the --folder of a controller")
    with lock_folder(folder):
        slurm = Slurm()
        ledger = _claimed(slurm, folder, held_in) if held_in else Ledger(folder)
        if not _undo(slurm, ledger):
            say(f"steer: {folder}: no changes to take back{' and no job held' if held_in else ''}")
        _leave_partitions(ledger)
        if ledger.withdrawn:
            for why in ledger.withdrawn.values():
                say(f"steer: it may act again: {why}")
            ledger.withdrawn = {}
            ledger.save()


def _claimed(slurm: Slurm, folder: Path, held_in: tuple[str, ...]) -> Ledger:
    """Return a folder's ledger, blank if unreadable; claim all jobs held in the partitions for the controller."""
    seen = slurm.read()
    check_partitions(held_in, {node.partition for node in seen.nodes})
    try:
        ledger = Ledger(folder)
    except UserError as error:
        say(f"steer: {error}; what is held is let go without it")
        ledger = Ledger(folder, blank=True)
    ledger.held_in = (*dict.fromkeys((*ledger.held_in, *held_in)),)
    claim(ledger, seen.jobs, held_in)
    return ledger


def _undo(slurm: Slurm, ledger: Ledger) -> str:
    if back := undo_all(slurm, ledger):
        say(f"steer: {back}")
    return back


def _leave_partitions(ledger: Ledger) -> None:
    """End the release of jobs that are submitted held in partitions, and explain the consequence."""
    if ledger.held_in:
        where, ledger.held_in = ", ".join(ledger.held_in), ()
        ledger.save()
        say(
            f"steer: what is submitted held in {where} from now on stays held, until somebody lets it go "
            f"(all at once: --reset --held-in {where.replace(' ', '')})"
        )


async def _run(controller: Controller, watchdog: Watchdog | None) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if watchdog:
        controller.slurm.inherited = (watchdog.pipe,)
    clean = False
    try:
        await controller.run_loop(stop, watchdog)
    finally:
        try:
            back = await asyncio.to_thread(undo_all, controller.slurm, controller.ledger)
            say(f"steer: ended; {(back or 'nothing is left to take back') if watchdog else 'nothing was touched'}")
            _leave_partitions(controller.ledger)
            clean = True
            controller.journal.add("end", time(), back=back)
            controller.journal.close()
        except OddError as error:
            say(f"steer: ended; the watchdog takes back what was set as soon as it can: {error}")
        finally:
            if watchdog:
                watchdog.dismiss(clean)


def claim_cluster(slurm: Mapping[str, str]) -> socket.socket:
    """Return a socket to hold while this is the only controller of a cluster on this host; UserError if it is not."""
    cluster, host = slurm.get("ClusterName", ""), slurm.get("SlurmctldHost[0]", "")
    which = f"{cluster} {host} {slurm.get('SlurmctldPort', '')}"
    name = f"\0steer-slurm {hashlib.sha256(which.encode()).hexdigest()[:32]}"
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(name)
        found.listen(8)
    except OSError:
        process, user = _holder(name)
        match = re.fullmatch(r".*\((\d{1,10})\)", slurm.get("SlurmUser", ""))
        if user not in (0, os.geteuid(), int(match[1]) if match else 0):
            say(f"steer: a process of user {user} ({process}) has taken this cluster's name here; it is ignored")
            return found
        found.close()
        raise UserError(
            f"cluster {cluster[:60]}: another controller is at work from another folder (process {process}, or its "
            "watchdog); expected one at a time"
        ) from None
    return found


def _holder(name: str) -> tuple[int, int]:
    """Return the process that holds a socket, and its user; 0, 0 if it has disappeared."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(PATIENCE_S)
        try:
            asking.connect(name)
        except OSError:
            return 0, 0
        process, user, _ = CREDENTIALS.unpack(
            asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        )
    return process, user
