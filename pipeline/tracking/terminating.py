"""Terminating: a stage that SIGTERM ends can say so."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM  # exit code of a process that a signal ended, as shells have it


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end what runs as an exception does, so that it can be recorded; others' handlers stay."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(TERMINATED)
