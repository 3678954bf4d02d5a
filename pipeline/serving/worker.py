"""A policy in a process of its own, so that one that hangs, fails or is killed takes nothing with it.

States go in and decisions come out as JSON, one at a time. Nothing is pickled but the brief, which the service itself
writes.
"""

import contextlib
import os
import queue
import signal
import threading
import time
from concurrent.futures import Future, InvalidStateError
from multiprocessing import get_context
from multiprocessing.connection import Connection

from pydantic import ValidationError

from pipeline.errors import UserError
from pipeline.live.deciding import RefusedError
from pipeline.problems import problem_of
from pipeline.serving.named import Brief

READY, DECIDED, REFUSED, FAILED = b"+", b"=", b"?", b"!"  # how an answer begins; the rest is JSON or one line
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
WAITING = 64  # states that may wait for the process; more go to the fallback at once
FIRST_S, SMOOTH = 0.02, 0.2  # how long a state takes before any was decided; the weight of the last one
Answer = tuple[bytes, bytes]


def work(brief: Brief, pipe: Connection) -> None:
    """Load a policy, then answer states until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the service ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ |= dict.fromkeys(THREADS, "1")  # one state at a time: waking others takes longer than the sums do
    with contextlib.suppress(EOFError, OSError):
        try:
            live = problem_of(brief.params, brief.scenario).live
            decide = live.decider(brief.params, brief.scenario, brief.named.place, brief.named.tuned)
            example = live.example(brief.params, brief.scenario)
            decide(live.state.model_validate(example))  # what is compiled or read at first use
        except Exception as error:  # whatever a wrong model does, it is told
            pipe.send_bytes(FAILED + _line(error))
            return
        pipe.send_bytes(READY)
        while True:
            raw = pipe.recv_bytes()
            try:
                pipe.send_bytes(DECIDED + decide(live.state.model_validate_json(raw)).model_dump_json().encode())
            except ValidationError:  # the service reads it again, to say where
                pipe.send_bytes(REFUSED + b"it is no state")
            except (RefusedError, UserError) as error:
                pipe.send_bytes(REFUSED + _line(error))
            except Exception as error:
                pipe.send_bytes(FAILED + _line(error))


def _line(error: BaseException) -> bytes:
    return " ".join(str(error).split())[:300].encode() or type(error).__name__.encode()


class Worker:
    """The process of one policy, and the thread that hands states to it."""

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        self.ready = threading.Event()
        self.over = threading.Event()
        self.said = ""  # why it could not begin
        self.busy_since: float | None = time.monotonic()
        self.state_s = FIRST_S  # how long a state takes, smoothed
        self._states: queue.Queue[tuple[bytes, Future[Answer]] | None] = queue.Queue()
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(brief, theirs), daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid or 0

    @property
    def alive(self) -> bool:
        """Return whether there is a process."""
        return self._process.is_alive()

    def ask(self, state: bytes, limit_s: float) -> "Future[Answer]":
        """Pass a state to the process, unless so many wait that it could not answer within the limit."""
        ahead = self._states.qsize() + (self.busy_since is not None)
        if ahead >= WAITING or (ahead and (ahead + 1) * self.state_s > limit_s):
            raise RefusedError(f"{ahead} states wait for it")
        answer: Future[Answer] = Future()
        self._states.put((state, answer))
        if self.over.is_set():
            self._drop()
        return answer

    def end(self, now: bool) -> None:
        """End the process: behind what it was handed already, or at once."""
        if now and self._process.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        self._states.put(None)

    def _run(self) -> None:
        try:
            kind, said = _split(self._pipe.recv_bytes())
            if kind != READY:
                self.said = said.decode(errors="replace")
                return
            self.busy_since = None
            self.ready.set()
            while (handed := self._states.get()) is not None:
                self._answer(*handed)
            self.said = "its process ended"
        except (EOFError, OSError):
            self.said = "its process ended"
        except Exception as error:  # the process is ended, and begun again by the desk
            self.said = f"{type(error).__name__}: {error}"
        finally:
            self.over.set()
            self.ready.clear()
            self._pipe.close()
            self._drop()
            self._process.join(1.0)
            self._process.kill()

    def _answer(self, state: bytes, answer: "Future[Answer]") -> None:
        if not answer.set_running_or_notify_cancel():
            return  # nobody waits for it any more
        self.busy_since = began = time.monotonic()
        try:
            self._pipe.send_bytes(state)
            found = _split(self._pipe.recv_bytes())
        except (EOFError, OSError):
            _give(answer, (FAILED, b"its process ended"))
            raise
        self.busy_since = None
        self.state_s += SMOOTH * (time.monotonic() - began - self.state_s)
        _give(answer, found)

    def _drop(self) -> None:
        """Answer all that still wait for a process that is over."""
        with contextlib.suppress(queue.Empty):
            while True:
                handed = self._states.get_nowait()
                if handed is not None and handed[1].set_running_or_notify_cancel():
                    _give(handed[1], (FAILED, b"its process ended"))


def _give(answer: "Future[Answer]", found: Answer) -> None:
    with contextlib.suppress(InvalidStateError):
        answer.set_result(found)


def _split(raw: bytes) -> Answer:
    return raw[:1], raw[1:]
