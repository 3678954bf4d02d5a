"""Workers that are actors of a Ray cluster: one that is started here for the stage, or one that runs at an address."""

import logging
import os
import pickle
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from pipeline.errors import UserError, missing_packages_named
from pipeline.execution.beginning import environment
from pipeline.execution.processes import LOOKED_S, cores
from pipeline.execution.setting import Setting
from pipeline.execution.worker import Errand, Order

ANSWER_S = 5.0  # that an address has to answer in
GONE_S = 20.0  # that a head may refuse to answer; behind 60 Ray ends this process, in words of its own
TRIED = 4  # times that Ray is started here: where other work keeps the cores busy, its own 30 s may be too few
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
STORE_BYTES = 100 << 20  # of Ray's own store in memory: what tasks find goes to files


class Head:
    """The head of a cluster that was joined: with it all else ends, but not at once."""

    def __init__(self, ray: Any, ours: bool) -> None:
        self._address: str = ray.get_runtime_context().gcs_address
        self._again = "run again" if ours else "begin the cluster again, then run again"
        self._silent_since: float | None = None

    def must_answer(self) -> None:
        """Ask whether it is there."""
        try:
            _connect(self._address)
            self._silent_since = None
        except OSError as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since >= GONE_S:
                raise UserError(
                    f"executor: the head of Ray at {self._address} is gone ({error}); {self._again} to resume"
                ) from error


class RayCrew:
    """Actors that stay as long as the stage, so that what is compiled or read for one task serves the next."""

    def __init__(self, setting: Setting, order: Order, threads: int) -> None:
        """Join a cluster, or start one."""
        self._order, self._given = order, environment(threads)
        self._workers, self._actors = setting.workers or cores(), list[Any]()
        with ExitStack() as stack:
            self._ray = stack.enter_context(joined(setting.address, self._workers))
            if setting.address:
                there = int(self._ray.cluster_resources().get("CPU", 1))
                self._workers = max(1, min(setting.workers or there, there))
            self._head = Head(self._ray, ours=not setting.address)
            self._joined = stack.pop_all()

    def run(self, errands: Sequence[Errand], on_done: Callable[[int], None]) -> None:
        """Carry out tasks; those of an actor that was killed are left."""
        ray, waiting, done = self._ray, list(reversed(errands)), 0
        self._actors += [self._actor() for _ in range(min(self._workers, len(errands)) - len(self._actors))]
        idle = list(self._actors)
        going: dict[Any, Any] = {}
        while waiting or going:
            while waiting and idle:
                actor = idle.pop()
                going[actor.carry_out.remote(self._given, pickle.dumps((self._order, waiting.pop())))] = actor
            if not going:
                return
            ready, _ = ray.wait(list(going), timeout=LOOKED_S)
            if not ready:
                self._head.must_answer()
            for future in ready:
                actor = going.pop(future)
                try:
                    said = ray.get(future)
                except ray.exceptions.RayActorError:
                    self._actors.remove(actor)
                    continue
                except ray.exceptions.RayTaskError as error:
                    raise error.cause or error from None
                if said:
                    raise UserError(said)
                idle.append(actor)
                done += 1
            on_done(done)

    def close(self) -> None:
        """End the actors, and the cluster if it is ours."""
        for actor in self._actors:
            with suppress(Exception):  # it is gone, or the cluster is
                self._ray.kill(actor)
        self._joined.close()

    def _actor(self) -> Any:
        # Sent by value, for it tells, in a line, of a machine that has no such package.
        class Worker:
            def carry_out(self, given: dict[str, str], call: bytes) -> str:
                import os
                import pickle
                import socket
                import sys

                os.environ.update(given)
                for path in reversed(given["PYTHONPATH"].split(os.pathsep)):
                    if path not in sys.path:
                        sys.path.insert(0, path)
                try:
                    from pipeline.execution.worker import carry_out
                except ImportError as error:
                    return (
                        f"executor: {socket.gethostname()} cannot run this code ({error}); expected the same packages"
                    )
                said: str = carry_out(*pickle.loads(call))
                return said

        return self._ray.remote(num_cpus=1, max_restarts=0)(Worker).remote()


@contextmanager
def joined(address: str, workers: int = 0) -> Iterator[Any]:
    """Yield Ray, as a member of the cluster at an address; without one, of a cluster of some workers begun here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with missing_packages_named(), _signals_kept():
        import ray
    if address:
        _must_answer(address)
    folder = "" if address else tempfile.mkdtemp(prefix="ray-")  # short: paths of sockets begin with it
    own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE_BYTES, "_temp_dir": folder}
    about = QUIET | ({"address": address} if address else {"address": "local", **own})
    try:
        with _refused_at(address or "this machine"):
            _start(ray, about, 1 if address else TRIED)
        yield ray
    finally:
        with _signals_kept():
            ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _start(ray: Any, about: dict[str, Any], times: int) -> None:
    for left in reversed(range(times)):
        try:
            with _signals_kept():
                ray.init(**about)
            return
        except Exception as error:
            if "timed out" not in str(error).lower() or not left:
                raise
            ray.shutdown()


@contextmanager
def _refused_at(where: str) -> Iterator[None]:
    """Tell in one line why Ray cannot be joined: it is another Ray, or no node of it is here."""
    try:
        yield
    except Exception as error:  # Ray raises the plainest of all
        raise UserError(f"executor: Ray at {where}: {' '.join(str(error).split())[:300]}") from error


def _must_answer(address: str) -> None:
    try:
        _connect(address)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"executor: nobody answers at {address} ({error}); expected the head of a Ray cluster"
        ) from error


def _connect(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), ANSWER_S).close()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Leave it to the stage what a signal does; Ray would end the process."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
