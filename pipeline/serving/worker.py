"""A policy in a process of its own, so that the service survives if it hangs, fails or is killed.

States go in and decisions come out as JSON, one at a time. Only the arguments of `work` are pickled, by the service
itself.
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

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.interactive.live.deciding import RefusedError
from pipeline.problems import problem_of
from pipeline.serving.records import ServedPolicy

READY, DECIDED, REFUSED, FAILED = b"+", b"=", b"?", b"!"  # first byte of an answer; the rest is JSON or one line
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
WAITING = 64  # most states that wait for the process; others go to the fallback at once
FIRST_S, SMOOTH = 0.02, 0.2  # assumed time of the first state; weight of the latest one
Answer = tuple[bytes, bytes]


def work(params: Params, scenario: str, served: ServedPolicy, pipe: Connection) -> None:
    """Load a policy, then answer states until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the service ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ |= dict.fromkeys(THREADS, "1")  # one state at a time: waking other threads takes longer than the sums
    with contextlib.suppress(EOFError, OSError):
        try:
            live = problem_of(params, scenario).live
            decide = live.decider(params, scenario, served.place, served.tuned)
            decide(live.state.model_validate(live.example(params, scenario)))  # compiles and reads files at first use
        except Exception as error:  # any failure of a model is reported
            pipe.send_bytes(FAILED + _line(error))
            return
        pipe.send_bytes(READY)
        while True:
            raw = pipe.recv_bytes()
            try:
                pipe.send_bytes(DECIDED + decide(live.state.model_validate_json(raw)).model_dump_json().encode())
            except ValidationError:  # the service parses it again for the message
                pipe.send_bytes(REFUSED + b"it is no state")
            except (RefusedError, UserError) as error:
                pipe.send_bytes(REFUSED + _line(error))
            except Exception as error:
                pipe.send_bytes(FAILED + _line(error))


def _line(error: BaseException) -> bytes:
    return " ".join(str(error).split())[:300].encode() or type(error).__name__.encode()


class Worker:
    """The process of one policy, and the thread that sends states to it."""

    def __init__(self, params: Params, scenario: str, served: ServedPolicy) -> None:
        self.served = served
        self.ready = threading.Event()
        self.over = threading.Event()
        self.said = ""  # reason for its end
        self.busy_since: float | None = time.monotonic()
        self.state_s = FIRST_S  # time of a state, smoothed
        self._states: queue.Queue[tuple[bytes, Future[Answer]] | None] = queue.Queue()
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(params, scenario, served, theirs), daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def ask(self, state: bytes, limit_s: float) -> "Future[Answer]":
        """Queue a state for the process; raise a RefusedError if it could not answer within the limit."""
        ahead = self._states.qsize() + (self.busy_since is not None)
        if ahead >= WAITING or (ahead and (ahead + 1) * self.state_s > limit_s):
            raise RefusedError(f"{ahead} states wait for it")
        answer: Future[Answer] = Future()
        self._states.put((state, answer))
        if self.over.is_set():
            self._drop()
        return answer

    def end(self, now: bool) -> None:
        """End the process: after its queue, or at once."""
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
            while (queued := self._states.get()) is not None:
                self._answer(*queued)
            self.said = "its process ended"
        except (EOFError, OSError):
            self.said = "its process ended"
        except Exception as error:  # the gateway restarts the process
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
            return  # the caller has given up
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
        """Fail all states that still wait for a process that is over."""
        with contextlib.suppress(queue.Empty):
            while True:
                queued = self._states.get_nowait()
                if queued is not None and queued[1].set_running_or_notify_cancel():
                    _give(queued[1], (FAILED, b"its process ended"))


def _give(answer: "Future[Answer]", found: Answer) -> None:
    with contextlib.suppress(InvalidStateError):
        answer.set_result(found)


def _split(raw: bytes) -> Answer:
    return raw[:1], raw[1:]
