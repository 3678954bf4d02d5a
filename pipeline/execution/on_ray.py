"""Commands as tasks of a Ray cluster, run by a separate process: `python -m pipeline.execution.on_ray REQUEST`.

The process writes the commands' lines to stderr as they arrive. The cluster runs at an address, or is started for these
commands.
"""

import json
import logging
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from pipeline.errors import UserError, missing_packages_named
from pipeline.execution.commands import GROUP, KILLED, Job, Setting, cores, is_failure
from pipeline.progress import say

ANSWER_S = 5.0  # for an address to answer
GONE_S = 20  # without an answer from the head, after which Ray ends this process
ATTEMPTS = 4  # to start Ray here: on busy cores its own limit of 30 s may be too short
STORE_BYTES = 100 << 20  # of Ray's store in memory: results go to files instead
NO_HEAD = "Failed to connect to GCS"  # Ray's last message
LOOK_S = 2.0  # between two looks at what has begun
PATIENT_S = 60.0  # that Ray may take to begin before a message is shown
Ended = SimpleQueue[int | UserError]  # exit codes of commands


def driver(place: Setting, jobs: Sequence[Job]) -> list[str]:
    """Return the command that runs jobs of one kind on Ray."""
    workers = place.workers or (len(jobs) if place.address else cores())
    commands, given = [job.words for job in jobs[:workers]], dict(jobs[0].given)
    request = {"address": place.address, "commands": commands, "given": given, "threads": jobs[0].cores}
    return [sys.executable, "-m", "pipeline.execution.on_ray", json.dumps(request)]


def understood(line: str, address: str) -> str:
    """Return a line of the driver; Ray's message that its head is gone is replaced by one that says what to do."""
    if NO_HEAD not in line:
        return line
    where, again = (address, "begin the cluster again, then run again") if address else ("this machine", "run again")
    return f"error: executor: the head of Ray at {where} is gone; {again} to resume"


def run(address: str, commands: Sequence[Sequence[str]], given: Mapping[str, str], threads: int) -> int:
    """Run commands on Ray, up to one per core; return the exit code of the first that failed, or the highest."""
    with _joined(address, len(commands)) as ray:
        nodes = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        remote = ray.remote(num_cpus=max(1, min(threads, max(nodes))), max_retries=0)(_work).options(
            num_returns="streaming"
        )
        ended, begun, codes = Ended(), threading.Event(), list[int]()
        chosen = commands[: max(1, sum(nodes))]
        for words in chosen:
            task = remote.remote(words, str(Path.cwd()), given, GROUP)
            # In threads, because a signal is lost while Ray's compiled code waits.
            threading.Thread(target=_follow, args=(ray, task, ended, begun), daemon=True).start()
        waits_until = time.monotonic() + PATIENT_S
        while len(codes) < len(chosen) and not any(is_failure(code) for code in codes):
            try:
                code = ended.get(timeout=LOOK_S)
            except Empty:
                if not begun.is_set() and time.monotonic() > waits_until:
                    waits_until = math.inf
                    say("executor: Ray has not begun yet; it waits for cores (ray status)")
                continue
            if isinstance(code, UserError):
                raise code
            codes.append(code)
    return next((code for code in codes if is_failure(code)), max(codes))


def _follow(ray: Any, task: Any, ended: Ended, begun: threading.Event) -> None:
    """Print the lines of a command that runs on Ray, and report its exit code."""
    try:
        for future in task:
            one = ray.get(future)
            begun.set()
            if isinstance(one, int):
                ended.put(one)
                return
            if one:
                say(one.rstrip("\n"))
    except ray.exceptions.RayTaskError as error:
        ended.put(UserError(f"executor: Ray: {' '.join(str(error.cause or error).split())[:300]}"))
    except ray.exceptions.RayError:
        ended.put(KILLED)


def _work(words: Sequence[str], folder: str, given: Mapping[str, str], group: str) -> Iterator[str | int]:
    """Run a command on a node, and yield its lines and its exit code."""
    with subprocess.Popen(
        ["/bin/sh", "-c", group, "group", *words],
        cwd=folder if Path(folder).is_dir() else None,  # the command says what is missing
        env={**os.environ, **given},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as found:
        yield ""  # it has begun
        assert found.stdout is not None
        # Not `yield from`: Ray sends values to the generator, and a file accepts none.
        for line in found.stdout:  # noqa: UP028
            yield line
        code = found.wait()
    yield code if code >= 0 else 128 - code


@contextmanager
def _joined(address: str, workers: int) -> Iterator[Any]:
    """Yield Ray, connected to the cluster at an address, or to one of some workers started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(GONE_S))
    with missing_packages_named():
        import ray
    options: dict[str, Any] = {"address": address or "local", "log_to_driver": False, "logging_level": logging.CRITICAL}
    folder = ""
    if address:
        try:
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), ANSWER_S).close()
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
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _start(ray: Any, options: dict[str, Any], attempts: int) -> None:
    for left in reversed(range(attempts)):
        try:
            ray.init(**options)
            return
        except Exception as error:  # Ray raises no narrower class
            if "timed out" not in str(error).lower() or not left:
                where = "this machine" if options["address"] == "local" else options["address"]
                raise UserError(f"executor: Ray at {where}: {' '.join(str(error).split())[:300]}") from error
            ray.shutdown()


if __name__ == "__main__":
    try:
        exit_code = run(**json.loads(sys.argv[1]))
    except UserError as error:
        say(f"error: {error}")
        exit_code = 2
    os._exit(exit_code)  # at once: threads may still wait for a cluster that is gone
