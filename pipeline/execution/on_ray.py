"""Work on a Ray cluster, started here for the stage or running at an address: workers as actors, or a whole command."""

import logging
import math
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pipeline.errors import UserError, missing_packages_named
from pipeline.execution.environment import GROUP, KILLED, environment
from pipeline.execution.setting import LOOKED_S, Setting, cores
from pipeline.execution.tasks import PackedTask, StageContext
from pipeline.progress import say

ANSWER_S = 5.0  # for an address to answer
GONE_S = 20.0  # for a head that refuses to answer; after 60 Ray itself would end this process
ATTEMPTS = 4  # to start Ray here: on busy cores its own limit of 30 s may be too short
STORE_BYTES = 100 << 20  # of Ray's store in memory: results go to files instead
HEAD_S = 2.0  # of silence before a check of the head
FOLLOWED_S = 5.0  # for Ray to end a task
PATIENT_S = 60.0  # Ray may be silent at first without a message


class Head:
    """The head of the cluster: when it is gone, everything else ends, but not at once."""

    def __init__(self, ray: Any, ours: bool) -> None:
        self._address: str = ray.get_runtime_context().gcs_address
        self._again = "run again" if ours else "begin the cluster again, then run again"
        self._silent_since: float | None = None

    def check(self) -> None:
        """Raise an error if the head has not answered for some time."""
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


class RayWorkers:
    """Actors that live as long as the stage, so that tasks share compiled code and files read."""

    def __init__(self, setting: Setting, stage: StageContext, threads: int) -> None:
        """Join a cluster, or start one."""
        self._stage, self._given = stage, environment(threads)
        self._workers, self._actors = setting.workers or cores(), list[Any]()
        with ExitStack() as stack:
            self._ray = stack.enter_context(_joined(setting.address, self._workers))
            if setting.address:
                there = int(self._ray.cluster_resources().get("CPU", 1))
                self._workers = max(1, min(setting.workers or there, there))
            self._head = Head(self._ray, ours=not setting.address)
            self._joined = stack.pop_all()

    def run(self, tasks: Sequence[PackedTask], on_done: Callable[[int], None]) -> None:
        """Run tasks; those of an actor that was killed are left."""
        ray, waiting, done = self._ray, list(reversed(tasks)), 0
        self._actors += [self._actor() for _ in range(min(self._workers, len(tasks)) - len(self._actors))]
        idle = list(self._actors)
        running: dict[Any, Any] = {}
        while waiting or running:
            while waiting and idle:
                actor = idle.pop()
                running[actor.run.remote(self._given, pickle.dumps((self._stage, waiting.pop())))] = actor
            if not running:
                return
            ready, _ = ray.wait(list(running), timeout=LOOKED_S)
            if not ready:
                self._head.check()
            for future in ready:
                actor = running.pop(future)
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
        """End the actors, and the cluster if it was started here."""
        for actor in self._actors:
            with suppress(Exception):  # the actor or the cluster is gone
                self._ray.kill(actor)
        self._joined.close()

    def _actor(self) -> Any:
        # Sent by value, so that a machine without this package reports that in one line.
        class Worker:
            def run(self, given: dict[str, str], call: bytes) -> str:
                import os
                import pickle
                import socket
                import sys

                os.environ.update(given)
                for path in reversed(given["PYTHONPATH"].split(os.pathsep)):
                    if path not in sys.path:
                        sys.path.insert(0, path)
                try:
                    from pipeline.execution.tasks import run_task
                except ImportError as error:
                    return (
                        f"executor: {socket.gethostname()} cannot run this code ({error}); expected the same packages"
                    )
                said: str = run_task(*pickle.loads(call))
                return said

        return self._ray.remote(num_cpus=1, max_restarts=0)(Worker).remote()


def run_on_ray(place: Setting, threads: int, _: Sequence[str], command: Sequence[str], given: Mapping[str, str]) -> int:
    """Return the exit code of a command run as a task of the cluster; it ends with this process, killed or not."""
    said: SimpleQueue[str | int | UserError] = SimpleQueue()
    tasks: list[Any] = []
    with _joined(place.address) as ray:
        about = (ray, threads, (command, str(Path.cwd()), given, GROUP), said, tasks)
        # In a thread, because exceptions that a signal raises within Ray's compiled code are lost.
        follower = threading.Thread(target=_follow, args=about, daemon=True)
        follower.start()
        try:
            return _pass_on(said, Head(ray, ours=False), place.address)
        finally:
            for task in tasks if follower.is_alive() else ():
                with suppress(Exception):  # Ray is gone
                    ray.cancel(task, force=True)
            follower.join(FOLLOWED_S)  # Ray ends the process if it is used after its shutdown


def _pass_on(said: "SimpleQueue[str | int | UserError]", head: Head, address: str) -> int:
    """Print the lines of a command; return its exit code."""
    waits_until = time.monotonic() + PATIENT_S
    while True:
        try:
            one = said.get(timeout=HEAD_S)
        except Empty:
            head.check()
            if time.monotonic() > waits_until:
                waits_until = math.inf
                say(f"executor: Ray at {address} has not begun yet; it waits for cores (ray status)")
            continue
        waits_until = math.inf
        if isinstance(one, UserError):
            raise one
        if isinstance(one, int):
            return one
        sys.stderr.write(one)
        sys.stderr.flush()


def _follow(
    ray: Any, threads: int, sent: Sequence[object], said: "SimpleQueue[str | int | UserError]", tasks: list[Any]
) -> None:
    """Put the lines of a command that runs on Ray into a queue, and finally its exit code."""

    # Sent by value: it needs no package there.
    def run(words: Sequence[str], folder: str, given: Mapping[str, str], group: str) -> Iterator[str | int]:
        import os
        import subprocess

        with subprocess.Popen(
            ["/bin/sh", "-c", group, "relay", *words],
            cwd=folder,
            env={**os.environ, **given},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as found:
            assert found.stdout is not None
            # Not `yield from`: Ray sends to the generator, and a file takes nothing.
            for line in found.stdout:  # noqa: UP028
                yield line
            code = found.wait()
        yield code if code >= 0 else 128 - code

    try:
        cores = int(max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]))
        task = ray.remote(num_cpus=max(1, min(threads, cores)), max_retries=0)(run)
        tasks.append(task.options(num_returns="streaming").remote(*sent))
        for future in tasks[0]:
            said.put(ray.get(future))
    except Exception as error:
        gone = isinstance(error, ray.exceptions.RayError) and not isinstance(error, ray.exceptions.RayTaskError)
        why = " ".join(str(getattr(error, "cause", None) or error).split())[:300]
        said.put(KILLED if gone else UserError(f"executor: Ray: {why}"))


@contextmanager
def _joined(address: str, workers: int = 0) -> Iterator[Any]:
    """Yield Ray, connected to the cluster at an address, or to one of some workers started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with missing_packages_named(), _signals_kept():
        import ray
    options: dict[str, Any] = {"address": address or "local", "log_to_driver": False, "logging_level": logging.CRITICAL}
    folder = ""
    if address:
        try:
            _connect(address)
        except (OSError, OverflowError) as error:
            raise UserError(
                f"executor: no answer from {address} ({error}); expected the head of a Ray cluster"
            ) from error
    else:
        folder = tempfile.mkdtemp(prefix="ray-")  # short, because socket paths begin with it
        options |= {"num_cpus": workers, "include_dashboard": False, "object_store_memory": STORE_BYTES}
        options["_temp_dir"] = folder
    try:
        _start(ray, options, 1 if address else ATTEMPTS)
        yield ray
    finally:
        with _signals_kept():
            ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _start(ray: Any, options: dict[str, Any], attempts: int) -> None:
    for left in reversed(range(attempts)):
        try:
            with _signals_kept():
                ray.init(**options)
            return
        except Exception as error:  # Ray raises no narrower class
            if "timed out" not in str(error).lower() or not left:
                where = "this machine" if options["address"] == "local" else options["address"]
                raise UserError(f"executor: Ray at {where}: {' '.join(str(error).split())[:300]}") from error
            ray.shutdown()


def _connect(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), ANSWER_S).close()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the stage's own signal handlers; those of Ray would end the process."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
