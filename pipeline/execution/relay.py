"""A whole command on the engine that tasks go to: a training is one piece of work, and runs there as it would here.

Slurm runs it by srun, a Ray cluster at an address as one task. Either sends on what it says, line by line, and it
writes where it would here, for all machines see this folder. Killed from outside, it is begun again, and goes on where
its last checkpoint is.

A stage ends when the DVC that runs it does: a DVC that was killed would leave it at work next to that of another.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.execution.beginning import GROUP, KILLED, code_digest, environment, must_be
from pipeline.execution.by_slurm import by_slurm
from pipeline.execution.setting import Setting, setting
from pipeline.progress import say

if TYPE_CHECKING:
    from pipeline.execution.on_ray import Head

RELAYED = "PIPELINE_RELAYED"  # the digest of the code of who sent a command, and where he is
KEPT = ("PIPELINE_", "MLFLOW_", "AWS_", "DVC_")  # of the environment: where runs are told of
LOST = 3  # times that a command may be killed from outside
HEAD_S = 2.0  # of silence before it is asked whether Ray's head is there
FOLLOWED_S = 5.0  # that Ray has to end a task in
PATIENT_S = 60.0  # that Ray may be silent at first before it is said why
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh")  # by which DVC runs a command; most become the command
LOOK_S = 1.0
CLEARED_S = 60.0  # in which what is half written is cleared away


def elsewhere() -> bool:
    """Return whether whole commands go to an engine, so that this machine's cores are no bound."""
    place = setting()
    return place.backend == "slurm" or (place.backend == "ray" and bool(place.address))


def relay(threads: int, *words: str) -> bool:
    """Carry out a command on the user's engine; return False where it is to be carried out here.

    Args:
        threads: that it has there.
        words: of the command, behind `python -m pipeline`.

    Raises:
        UserError: the engine cannot be had, or this is a machine of it that has another folder or version of the code.
        SystemExit: it failed there, and has said why.
    """
    if sent := os.environ.get(RELAYED):
        _must_match(*sent.split("@", 1))
        return False
    if not elsewhere():
        return False
    place = setting()
    run = by_slurm if place.backend == "slurm" else _by_ray
    lost = 0
    while code := run(place, threads, words, _command(words), _given(threads)):
        lost += 1
        if code != KILLED or lost == LOST:
            raise SystemExit(code)
        say(f"executor: {' '.join(words)} was ended from outside; it begins again where it was")
    return True


def _must_match(code: str, folder: str) -> None:
    """Refuse to work in another folder or by another version than who sent the command."""
    if not Path(folder).is_dir() or not Path.cwd().samefile(folder):
        raise UserError(
            f"executor: {socket.gethostname()} is in {Path.cwd()}; expected {folder}, in a folder that all nodes share"
        )
    must_be(code)


def _given(threads: int) -> dict[str, str]:
    """Return what its environment has there, its threads pinned, and no engine of its own."""
    ours = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    about = {"PIPELINE_EXECUTOR": "serial", RELAYED: f"{code_digest()}@{Path.cwd()}", "PYTHONUNBUFFERED": "1"}
    return environment(threads) | {"PIPELINE_TRACKING": ""} | ours | about


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pipeline", *words]


def _by_ray(place: Setting, threads: int, _: Sequence[str], command: Sequence[str], given: Mapping[str, str]) -> int:
    """Return the exit code of a task that runs it; what is there ends with this process, killed or not."""
    from pipeline.execution.on_ray import Head, joined

    said: SimpleQueue[str | int | UserError] = SimpleQueue()
    tasks: list[Any] = []
    with joined(place.address) as ray:
        about = (ray, threads, (command, str(Path.cwd()), given, GROUP), said, tasks)
        # In a thread, for what a signal raises within Ray's compiled code is lost there.
        follower = threading.Thread(target=_follow, args=about, daemon=True)
        follower.start()
        try:
            return _told(said, Head(ray, ours=False), place.address)
        finally:
            for task in tasks if follower.is_alive() else ():
                with suppress(Exception):  # Ray is gone
                    ray.cancel(task, force=True)
            follower.join(FOLLOWED_S)  # who asks Ray for something behind its end is ended by it


def _told(said: "SimpleQueue[str | int | UserError]", head: "Head", address: str) -> int:
    """Pass on what is said; return the exit code."""
    waits_until = time.monotonic() + PATIENT_S
    while True:
        try:
            one = said.get(timeout=HEAD_S)
        except Empty:
            head.must_answer()
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
    """Put what a task of Ray says into a queue, and at last its exit code."""
    try:
        cores = int(max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]))
        task = ray.remote(num_cpus=max(1, min(threads, cores)), max_retries=0)(_lines_of())
        tasks.append(task.options(num_returns="streaming").remote(*sent))
        for future in tasks[0]:
            said.put(ray.get(future))
    except Exception as error:
        gone = isinstance(error, ray.exceptions.RayError) and not isinstance(error, ray.exceptions.RayTaskError)
        why = " ".join(str(getattr(error, "cause", None) or error).split())[:300]
        said.put(KILLED if gone else UserError(f"executor: Ray: {why}"))


def _lines_of() -> Callable[[Sequence[str], str, Mapping[str, str], str], Iterator[str | int]]:
    """Return what runs a command and yields its lines, then its exit code; sent by value, it needs no package there."""

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

    return run


def end_with_dvc(environment: Mapping[str, str] = os.environ) -> None:
    """Have this process end when DVC does; one that was sent to an engine, or begun by hand, is left alone."""
    if not environment.get("DVC_STAGE") or RELAYED in environment:
        return
    own, line = os.getpid(), [os.getppid()]
    while _of(line[-1])[1] in SHELLS:
        line.append(_of(line[-1])[0])
    if line[-1] <= 1 and not _of(1)[1].startswith(("dvc", "python")):  # it is gone already
        os.kill(own, signal.SIGTERM)
    threading.Thread(target=_watch, args=([own, *line],), daemon=True).start()


def _watch(line: list[int]) -> None:
    own, parent, *_ = line
    while os.getppid() == parent and all(_of(at)[0] == up for at, up in pairwise(line[1:])):
        time.sleep(LOOK_S)
    os.kill(own, signal.SIGTERM)
    time.sleep(CLEARED_S)
    os._exit(128 + signal.SIGTERM)


def _of(process: int) -> tuple[int, str]:
    """Return the parent of a process and its name; 0 and nothing where it is gone."""
    with suppress(OSError, ValueError, IndexError):
        name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
        return int(rest.split()[1]), name
    asked = subprocess.run(["ps", "-o", "ppid=,comm=", "-p", str(process)], check=False, capture_output=True, text=True)
    parent, _, name = asked.stdout.strip().partition(" ")
    return int(parent or 0), Path(name.strip()).name.removeprefix("-")
