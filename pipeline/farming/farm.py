"""The farm: has DVC make the stages of a plan, some at the same time, and hears them all."""

import queue
import time
from collections import defaultdict
from types import TracebackType
from typing import Protocol, TextIO

from pipeline.farming import asking, view
from pipeline.farming.notes import Notes, keep
from pipeline.farming.plan import Plan
from pipeline.farming.work import Said, Task, Work
from pipeline.progress import LINES_EVERY_S, say
from pipeline.tracking.digests import read_lock

TICK_S = 0.5
REPRO = "dvc repro"
KEPT = 20  # last lines of a stage, for the reason why it failed


class Crew:
    """Commands that run side by side."""

    def __init__(self, held: TextIO) -> None:
        """Begin with nobody; a file stays open, and locked, for as long as anybody works."""
        self._held = held
        self._said: queue.Queue[Said] = queue.Queue()
        self._works: dict[str, Work] = {}

    def __len__(self) -> int:
        return len(self._works)

    def begin(self, name: str, task: Task) -> None:
        """Have one more command run."""
        self._works[name] = Work(name, task, self._said, self._held.fileno())

    def hear(self) -> Said | None:
        """Return who said which line next, behind the last line None; nothing if nobody says anything for a moment."""
        for work in self._works.values():
            work.tidy()
        try:
            return self._said.get(timeout=TICK_S)
        except queue.Empty:
            return None

    def dismiss(self, name: str) -> int:
        """Return how one that said its last line ended: its exit code, or below 0 the signal that ended it."""
        work = self._works.pop(name)
        work.stopped()
        return work.code

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell all that still work to end, and wait until they have."""
        for work in self._works.values():
            work.stop()
        for work in self._works.values():
            work.stopped()


class Trade(Protocol):
    """How what a plan names is made."""

    def begin(self, name: str) -> Task:
        """Return the command that makes one."""

    def ended(self, name: str, fate: str, took_s: float) -> str:
        """Keep what is to be kept of one that was made; return what became of it, in a word or two."""


class Stages:
    """Stages of this repository: a `dvc repro` each."""

    def __init__(self, notes: Notes) -> None:
        """Begin.

        Args:
            notes: takes how long stages took.
        """
        self._notes = notes

    def begin(self, name: str) -> Task:
        """Return the command that makes a stage."""
        return Task(asking.repro(name))

    def ended(self, name: str, fate: str, took_s: float) -> str:
        """Keep dvc.lock as it now is, and how long the stage took; return what DVC did."""
        keep(read_lock())
        if fate == asking.RAN:
            self._notes.seconds[name] = round(took_s, 1)
            self._notes.write()
        return fate


class Farm:
    """One go at a plan."""

    def __init__(self, plan: Plan, workers: int, trade: Trade, held: TextIO) -> None:
        """Take a plan.

        Args:
            plan: the stages, or what else there is to be made.
            workers: how many may run at the same time.
            trade: how one is made, and what there is to do when it has ended.
            held: a file that stays locked while anything runs.
        """
        self._plan, self._workers, self._trade, self._held = plan, workers, trade, held
        self._at: dict[str, str] = {}  # the stage that runs, of what has several
        self._heard: defaultdict[str, list[str]] = defaultdict(list)
        self._fates: dict[str, str] = {}  # by stage, what DVC did
        self._worked_s = 0.0
        self._shown_s = 0.0

    def work(self) -> None:
        """Make the stages; behind one that fails, those that do not need it go on."""
        begun_s = self._shown_s = time.monotonic()
        with Crew(self._held) as crew:
            while self._begin(crew):
                self._hear(crew)
                if time.monotonic() - self._shown_s >= LINES_EVERY_S:
                    self._shown_s = time.monotonic()
                    say(view.status(self._plan, self._workers, self._shown_s, self._at))
        say(view.summary(self._fates, time.monotonic() - begun_s, self._worked_s))

    def _begin(self, crew: Crew) -> bool:
        """Begin as many stages as may be; tell whether any runs."""
        while len(crew) < self._workers and (stage := self._plan.next()):
            self._plan.begin(stage, time.monotonic())
            crew.begin(stage, self._trade.begin(stage))
        return len(crew) > 0

    def _hear(self, crew: Crew) -> None:
        said = crew.hear()
        if said is None:
            return
        stage, line = said
        if line is None:
            self._end(stage, crew.dismiss(stage))
            return
        if found := asking.fate(line):
            self._fates[stage] = found[1]
            self._at[stage] = found[0]
        if line.strip():
            self._heard[stage] = [*self._heard[stage][1 - KEPT :], line]
        view.show(stage, line)

    def _end(self, stage: str, code: int) -> None:
        took_s = time.monotonic() - self._plan.running[stage]
        fate = self._fates.get(stage, "")
        self._plan.end(stage, code == 0)
        if code:
            self._fates[stage] = "failed"
            say(f"farm: {stage} failed after {took_s:.0f} s: {view.reason(self._heard[stage], code)}")
        else:
            self._fates[stage] = fate = self._trade.ended(stage, fate, took_s)
            say(f"farm: {stage} {fate}, {took_s:.0f} s; {len(self._plan.done)} of {self._plan.total} done")
        if fate not in (asking.UNCHANGED, asking.CACHED):
            self._worked_s += took_s
        self._shown_s = time.monotonic()


def go_through(held: TextIO) -> tuple[int, list[str]]:
    """Have `dvc repro` go through all stages; return its exit code, and the stages in the order in which it went."""
    order: list[str] = []
    begun_s = shown_s = time.monotonic()
    say(f"farm: {REPRO} goes through what was made")
    with Crew(held) as crew:
        crew.begin(REPRO, Task(asking.repro()))
        while True:
            said = crew.hear()
            if said and said[1] is None:
                return crew.dismiss(REPRO), order
            if said and said[1] is not None:
                if found := asking.fate(said[1]):
                    order.append(found[0])
                    if found[1] != asking.UNCHANGED:
                        say(f"farm: {REPRO}: {found[0]} {found[1]}")
                view.show(REPRO, said[1])
            if time.monotonic() - shown_s >= LINES_EVERY_S:
                shown_s = time.monotonic()
                say(f"farm: {REPRO} goes through, {shown_s - begun_s:.0f} s, {len(order)} stages seen")
