"""The farm: has DVC make the stages of a plan, some at the same time, and hears them all."""

import time
from collections import defaultdict
from typing import TextIO

from pipeline.farming import asking, view
from pipeline.farming.crew import Crew
from pipeline.farming.notes import Notes, keep
from pipeline.farming.plan import Plan
from pipeline.progress import LINES_EVERY_S, say
from pipeline.tracking.digests import read_lock

REPRO = "dvc repro"
KEPT = 20  # last lines of a stage, for the reason why it failed


class Farm:
    """One go at a plan."""

    def __init__(self, plan: Plan, workers: int, notes: Notes, held: TextIO) -> None:
        """Take a plan.

        Args:
            plan: the stages.
            workers: how many may run at the same time.
            notes: takes how long stages took.
            held: a file that stays locked while anything runs.
        """
        self._plan, self._workers, self._notes, self._held = plan, workers, notes, held
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
                    say(view.status(self._plan, self._workers, self._shown_s))
        say(view.summary(self._fates, time.monotonic() - begun_s, self._worked_s))

    def _begin(self, crew: Crew) -> bool:
        """Begin as many stages as may be; tell whether any runs."""
        while len(crew) < self._workers and (stage := self._plan.next()):
            self._plan.begin(stage, time.monotonic())
            crew.begin(stage, asking.repro(stage))
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
        if line.strip():
            self._heard[stage] = [*self._heard[stage][1 - KEPT :], line]
        view.show(stage, line)

    def _end(self, stage: str, code: int) -> None:
        took_s = time.monotonic() - self._plan.running[stage]
        fate = self._fates.get(stage, "")
        self._plan.end(stage, code == 0)
        if fate == asking.RAN:
            self._worked_s += took_s
        if code:
            self._fates[stage] = "failed"
            say(f"farm: {stage} failed after {took_s:.0f} s: {view.reason(self._heard[stage], code)}")
        else:
            keep(read_lock())
            if fate == asking.RAN:
                self._notes.seconds[stage] = round(took_s, 1)
                self._notes.write()
            say(f"farm: {stage} {fate}, {took_s:.0f} s; {len(self._plan.done)} of {self._plan.total} done")
        self._shown_s = time.monotonic()


def go_through(held: TextIO) -> tuple[int, list[str]]:
    """Have `dvc repro` go through all stages; return its exit code, and the stages in the order in which it went."""
    order: list[str] = []
    begun_s = shown_s = time.monotonic()
    say(f"farm: {REPRO} goes through what was made")
    with Crew(held) as crew:
        crew.begin(REPRO, asking.repro())
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
