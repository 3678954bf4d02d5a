"""Commands forked from a process that has already imported third-party libraries; each still has its own process.

`python -m dvc` and `python -m pipeline` spend most of a small command on importing torch, pandas, MLflow and DVC. Here
these are imported once. The project is not, because copies under test differ. The `python` that this writes
asks for a fork if its arguments are `-m dvc` or `-m pipeline`, and becomes Python itself for all others. With it on
PATH, the stages that DVC runs are forked as well. Not for tests of how a process starts, of limits that it inherits,
of signals to its group, or of what may differ between two processes (hashes of strings do not, here).
"""

import atexit
import gc
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MODULES = ("dvc", "pipeline")
# Without numba, which reads the environment, and without libraries that start a thread which a command would lack.
LIBRARIES = (
    "pandas",
    "pandera.pandas",
    "pyarrow.parquet",
    "torch",
    "torch.fx.experimental.symbolic_shapes",
    "scipy.linalg",
    "matplotlib.pyplot",
    "mlflow",
    "mlflow.store.tracking.sqlalchemy_store",
    "dvc.cli.parser",
    "dvc.repo",
    "dvc.repo.experiments",
    "dvc_render",
    "dulwich.repo",
    "scmrepo.git",
    "pygit2",
    "typer",
    "ruamel.yaml",
)
LONGEST = 1 << 18  # bytes of a command and its environment
ENDED_S = 60.0

# It imports only built-in modules, and so starts in 10 ms.
ASKING = """#!{python} -IS
import _signal, _socket, marshal, os, sys
if sys.argv[1:2] != ["-m"] or sys.argv[2] not in {modules}:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
asked = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
asked.connect({socket!r})
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
order = marshal.dumps((sys.argv[0], sys.argv[2:], os.getcwd(), dict(os.environ)))
asked.sendmsg([order], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    _signal.signal(number, lambda number, frame: asked.send(bytes([number])))
code = int.from_bytes(asked.recv(4), sys.byteorder, signed=True)
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL) if -code != _signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextmanager
def warm(place: Path) -> Iterator[Path]:
    """Start the process that forks, and end it.

    Args:
        place: a separate folder with a short path.

    Yields:
        A folder for PATH, which contains `python`.
    """
    address, python = place / "socket", place / "bin" / "python"
    python.parent.mkdir()
    python.write_text(ASKING.format(python=sys.executable, modules=MODULES, socket=str(address)))
    python.chmod(0o755)
    begun = [sys.executable, __file__, str(address)]
    with subprocess.Popen(begun, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield python.parent
        process.communicate(timeout=ENDED_S)


def _serve(address: str) -> None:
    """Fork for every request until the parent process ends, which closes standard input."""
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # as pipeline/__main__.py has it
    for name in LIBRARIES:
        __import__(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            asked, _ = listener.accept()
            if not os.fork():
                listener.close()
                return _keep(asked)
            asked.close()
            _bury()
    return None


def _bury() -> None:
    """Reap all children that have ended."""
    with suppress(ChildProcessError):
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
            pass


def _keep(asked: socket.socket) -> None:
    """Fork once more, into the command; pass on the signals it is sent and its exit code."""
    order, files, *_ = socket.recv_fds(asked, LONGEST, 3)
    child = os.fork()
    if not child:
        asked.close()
        return _become(*marshal.loads(order), files)
    os.setpgid(child, child)  # the command does the same: whichever comes first
    ended = os.pidfd_open(child)
    while ended not in select.select([asked, ended], [], [])[0]:
        number = asked.recv(1)
        if not number:  # the client has gone: so does everything that the command started
            os.killpg(child, signal.SIGKILL)
            os._exit(0)
        os.kill(child, number[0])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asked.send(code.to_bytes(4, sys.byteorder, signed=True))
    os._exit(0)


def _become(python: str, words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> None:
    """Become a module, run as `python -m` does."""
    import runpy

    os.setpgid(0, 0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    through = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = os.fdopen(1, "w", closefd=False, buffering=1 if os.isatty(1) else -1)
    sys.stdout.reconfigure(write_through=through)
    sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1, errors="backslashreplace")
    sys.executable = python
    sys.argv = words
    paths = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:1] = paths  # in place of this file's folder
    # The pipeline's own exit would come before the functions that these libraries registered; `_end` comes after them.
    register = atexit.register
    atexit.register = lambda call, *more, **named: call if call.__name__ == "_leave" else register(call, *more, **named)
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _end(end.code)
    _end(0)


def _end(code: object) -> None:
    """End as Python does, without finalizing all modules, which takes a third of a second."""
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # wait for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    _serve(sys.argv[1])
