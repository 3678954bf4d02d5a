"""A whole command on the engine that tasks go to: a training is one piece of work, and runs there as it would here.

Slurm runs it by srun, a Ray cluster at an address as one task. Either sends on what it says, line by line, and it
writes where it would here, for all machines see this folder. Killed from outside, it is begun again, and goes on where
its last checkpoint is.
"""

import getpass
import hashlib
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pipeline.errors import UserError
from pipeline.execution.beginning import environment
from pipeline.execution.group import GROUP
from pipeline.execution.setting import Setting, setting
from pipeline.execution.version import SHOWN, code_digest, must_be
from pipeline.progress import say

RELAYED = "PIPELINE_RELAYED"  # the digest of the code of who sent a command, and where he is
KEPT = ("PIPELINE_", "MLFLOW_", "AWS_", "DVC_")  # of the environment: where runs are told of
KILLED = 128 + 9
LOST = 3  # times that a command may be killed from outside
STOP_S = 10.0  # for what is half written to be cleared away
LOOKED_S = 0.2
ENDED_S = 60.0  # in which a job that is cancelled ends
HEAD_S = 2.0  # of silence before it is asked whether Ray's head is there
PATIENT_S = 60.0  # that Ray may be silent at first before it is said why


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
    run = _by_slurm if place.backend == "slurm" else _by_ray
    lost = 0
    while code := run(place, threads, words):
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


def _by_slurm(place: Setting, threads: int, words: Sequence[str]) -> int:
    """Return the exit code of a job that srun waits for; one that a killed stage left is ended first."""
    name = f"pipeline-{hashlib.sha256(str(Path.cwd()).encode()).hexdigest()[:SHOWN]}-{'-'.join(words)}"
    options: dict[str, object] = {
        "job-name": name,
        "ntasks": 1,
        "cpus-per-task": threads,
        "time": place.minutes,
        "chdir": Path.cwd(),
    }
    options |= {"partition": place.partition} if place.partition else {}
    options |= place.options
    chosen = [f"--{key}" + ("" if value is True else f"={value}") for key, value in options.items()]
    _end_jobs(name)
    try:
        job = subprocess.Popen(
            ["srun", *chosen, "--input=none", "--kill-on-bad-exit", *_command(words)],
            env={**os.environ, **_given(threads)},
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise UserError(f"executor: srun: {error.strerror}") from error
    try:
        return job.wait()
    except BaseException:
        with suppress(subprocess.TimeoutExpired):
            job.terminate()  # srun tells the command
            job.wait(STOP_S)
        _end_jobs(name)
        raise


def _end_jobs(name: str) -> None:
    """End jobs of a name, and wait until they have ended.

    Raises:
        UserError: Slurm is not there, or they do not end.
    """
    who, end = f"--user={getpass.getuser()}", time.monotonic() + ENDED_S
    try:
        while subprocess.run(["squeue", "-h", who, f"--name={name}"], capture_output=True, check=False).stdout.strip():
            subprocess.run(["scancel", who, f"--name={name}"], capture_output=True, check=False)
            if time.monotonic() > end:
                raise UserError(f"executor: Slurm's job {name} of before does not end; see squeue --name={name}")
            time.sleep(LOOKED_S)
    except OSError as error:
        raise UserError(f"executor: squeue: {error.strerror}") from error


def _by_ray(place: Setting, threads: int, words: Sequence[str]) -> int:
    """Return the exit code of a task that runs it; what is there ends with this process, killed or not."""
    from pipeline.execution.on_ray import Head, joined

    said: SimpleQueue[str | int | UserError] = SimpleQueue()
    with joined(place) as ray:
        about = (ray, threads, (_command(words), str(Path.cwd()), _given(threads), GROUP), said)
        # In a thread, for what a signal raises within Ray's compiled code is lost there.
        threading.Thread(target=_follow, args=about, daemon=True).start()
        head, waits_until = Head(ray, ours=False), time.monotonic() + PATIENT_S
        while True:
            try:
                one = said.get(timeout=HEAD_S)
            except Empty:
                head.must_answer()
                if time.monotonic() > waits_until:
                    waits_until = math.inf
                    say(f"executor: Ray at {place.address} has not begun yet; it waits for cores (ray status)")
                continue
            waits_until = math.inf
            if isinstance(one, UserError):
                raise one
            if isinstance(one, int):
                return one
            sys.stderr.write(one)
            sys.stderr.flush()


def _follow(ray: Any, threads: int, sent: Sequence[object], said: "SimpleQueue[str | int | UserError]") -> None:
    """Put what a task of Ray says into a queue, and at last its exit code."""
    try:
        cores = int(max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]))
        task = ray.remote(num_cpus=max(1, min(threads, cores)), max_retries=0)(_lines_of())
        for future in task.options(num_returns="streaming").remote(*sent):
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
