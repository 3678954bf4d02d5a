"""Output on stderr, which is quiet for programs.

Progress is a bar with time left on a terminal. Elsewhere it is a plain line every LINES_EVERY_S seconds, so that a log
shows what is running, and shorter work is silent. With --json there are no remarks for people.
"""

import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

LINES_EVERY_S = 10.0
for_programs = False  # set by --json
BAR, TITLE = 12, 32  # columns, so that a line of progress fits a terminal of 80

ShareCallback = Callable[[float], None]  # called with the share of the work that is done
ProgressCallback = Callable[[float, str], None]  # called with the percent done, and a note
Advance = Callable[..., None]  # called with the amount done and, if there is one, a note


def no_progress(done: float, note: str = "") -> None:
    """Show nothing."""


def progress(title: str, total: float, start: float = 0, brief: bool = False) -> AbstractContextManager[Advance]:
    """Show the progress of some work.

    Args:
        title: name of the work.
        total: amount of work.
        start: amount done before.
        brief: the work is usually short: show no bar before its first progress.
    """
    return _bar(title, total, start, brief) if sys.stderr.isatty() else _lines(title, total, start)


@contextmanager
def _bar(title: str, total: float, start: float, brief: bool) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(BAR), TimeElapsedColumn(), TextColumn("left"))
    with Progress(
        *columns, TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=Console(stderr=True)
    ) as bar:
        title = title if len(title) <= TITLE else f"…{title[1 - TITLE :]}"
        task = bar.add_task(title, total=total, completed=int(start), note="", visible=not brief)
        yield lambda done, note="": bar.update(task, completed=done, note=note, visible=True)


@contextmanager
def _lines(title: str, total: float, start: float) -> Iterator[Advance]:
    begun = shown_at = time.monotonic()
    first: tuple[float, float] | None = None  # amount done first, and its time; the time before may include compilation
    latest, over = (start, ""), threading.Event()

    def advance(done: float, note: str = "") -> None:
        nonlocal shown_at, first, latest
        if latest[0] >= total:  # the end was said
            return
        now, latest = time.monotonic(), (done, note)
        if first is None and done > start:
            first = (done, now)
        if now - shown_at < LINES_EVERY_S and (done < total or shown_at == begun):  # short work has no line at all
            return
        shown_at = now
        when = f"done in {now - begun:.0f} s"
        if done < total:  # the length of a step is unknown before the second one
            left = (now - first[1]) * (total - done) / (done - first[0]) if first and done > first[0] else None
            when = "time left unknown" if left is None else f"{left:.0f} s left"
        say(f"{title}: {done:g} of {total:g}, {when}{', ' + note if note else ''}")

    def say_still() -> None:
        while not over.wait(max(shown_at + LINES_EVERY_S - time.monotonic(), LINES_EVERY_S / 10)):
            if latest[0] < total:  # a single step may take minutes
                advance(*latest)

    threading.Thread(target=say_still, daemon=True).start()
    try:
        yield advance
    finally:
        over.set()


def say(*lines: str) -> None:
    """Write lines to stderr, each at once."""
    for line in lines:
        sys.stderr.write(folded(line, sys.stderr) + "\n")
        sys.stderr.flush()


def remark(*lines: str) -> None:
    """Write lines for people to stderr, except with --json."""
    if not for_programs:
        say(*lines)


def folded(line: str, stream: TextIO) -> str:
    """Return a line, wrapped between words for a terminal; for other streams unchanged, as programs expect."""
    if not stream.isatty():
        return line
    width, indent = shutil.get_terminal_size().columns, " " * (len(line) - len(line.lstrip(" ")) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
