"""The farm: has DVC make the stages of a plan, some at the same time, and shows what they say."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TextIO

from pipeline.farming import asking
from pipeline.farming.plan import Plan
from pipeline.farming.work import Crew, Task
from pipeline.progress import say

REPRO = "dvc repro"
KEPT = 20  # last lines of a stage, for the reason why it failed
LONGEST_NAMES = 8  # of stages that are listed


@dataclass
class Farm:
    """One go at a plan."""

    plan: Plan  # of stages, or of what else there is to be made
    workers: int  # how many may run at the same time
    task: Callable[[str], Task]  # returns the command that makes one
    # Keeps what is to be kept of one that was made (its name, what DVC did, seconds); returns its fate in a word.
    ended: Callable[[str, str, float], str]
    held: TextIO  # stays locked while anything runs

    def __post_init__(self) -> None:
        self._at: dict[str, str] = {}  # the stage that runs, of what has several
        self._heard: dict[str, deque[str]] = {}
        self._fates: dict[str, str] = {}  # by stage, what DVC did
        self._worked_s = 0.0

    def work(self) -> None:
        """Make the stages; where one fails, those that do not need it continue."""
        begun_s = time.monotonic()
        with Crew(self.held) as crew:
            self._begin(crew)
            for stage, line in crew.lines(lambda now_s: status(self.plan, self.workers, now_s, self._at)):
                if line is not None:
                    self._hear(stage, line)
                else:
                    self._end(stage, crew.dismiss(stage))
                    self._begin(crew)
        say(summary(self._fates.values(), time.monotonic() - begun_s, self._worked_s))

    def _begin(self, crew: Crew) -> None:
        """Begin as many stages as may run."""
        while len(crew) < self.workers and (stage := self.plan.next()):
            self.plan.begin(stage, time.monotonic())
            self._heard[stage] = deque(maxlen=KEPT)
            crew.begin(stage, self.task(stage))

    def _hear(self, stage: str, line: str) -> None:
        if found := asking.fate(line):
            self._at[stage], self._fates[stage] = found
        if line.strip():
            self._heard[stage].append(line)
        show(stage, line)

    def _end(self, stage: str, code: int) -> None:
        took_s = time.monotonic() - self.plan.running[stage]
        fate = self._fates.get(stage, "")
        self.plan.end(stage, code == 0)
        if code:
            self._fates[stage] = "failed"
            say(f"farm: {stage} failed after {took_s:.0f} s: {reason(self._heard[stage], code)}")
        else:
            self._fates[stage] = fate = self.ended(stage, fate, took_s)
            say(f"farm: {stage} {fate}, {took_s:.0f} s; {len(self.plan.done)} of {self.plan.total} done")
        if fate not in (asking.UNCHANGED, asking.CACHED):
            self._worked_s += took_s


def go_through(held: TextIO) -> tuple[int, list[str]]:
    """Have `dvc repro` go through all stages; return its exit code, and the stages in the order in which it went."""
    code, order, begun_s = 0, list[str](), time.monotonic()

    def seen(now_s: float) -> str:
        return f"farm: {REPRO} goes through, {now_s - begun_s:.0f} s, {len(order)} stages seen"

    say(f"farm: {REPRO} goes through what was made")
    with Crew(held) as crew:
        crew.begin(REPRO, Task(asking.repro()))
        for _, line in crew.lines(seen):
            if line is None:
                code = crew.dismiss(REPRO)
                continue
            if found := asking.fate(line):
                order.append(found[0])
                if found[1] != asking.UNCHANGED:
                    say(f"farm: {REPRO}: {found[0]} {found[1]}")
            show(REPRO, line)
    return code, order


def show(name: str, line: str) -> None:
    """Show a line of a stage under its name; what DVC adds of its own is left out."""
    if not asking.beside(line):
        say(f"{name} | {line}")


def status(plan: Plan, workers: int, now_s: float, at: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return where a farm is: what is done and what runs, since when, and the time left as far as it is known.

    `at` has the stage that each is at, of what has several.
    """
    running = ", ".join(
        f"{name}{f' ({at[name]})' if at.get(name, name) != name else ''} {now_s - since:.0f} s"
        for name, since in plan.running.items()
    )
    left_s, unknown = plan.left_s(workers, now_s)
    left = f"{'at least' if unknown else 'about'} {left_s:.0f} s left" if left_s >= 1 else "time left unknown"
    return f"farm: {len(plan.done)} of {plan.total} done; {running}; {left}"


def reason(heard: Iterable[str], code: int) -> str:
    """Return why a stage failed, on one line: its own error, else the signal that ended it, else its last line.

    >>> reason(["error: params.yaml: no such key", "ERROR: failed to reproduce 'gate'"], 255)
    'params.yaml: no such key'
    >>> reason(["gate: started"], -9)
    'ended by signal 9'
    """
    lines = list(heard)
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if own:
        return own[-1]
    if code < 0:
        return f"ended by signal {-code}"
    return lines[-1].removeprefix("ERROR: ") if lines else f"exit code {code}"


def summary(fates: Iterable[str], took_s: float, worked_s: float) -> str:
    """Return what a farm did: of how many stages DVC decided what, and how long they would have taken one by one."""
    said = ", ".join(f"{count} {what}" for what, count in Counter(fates).items()) or "nothing to do"
    return f"farm: {said}; {took_s:.0f} s, of stages {worked_s:.0f} s"


def some(names: Sequence[str]) -> str:
    """Return the first of some names."""
    return ", ".join(names[:LONGEST_NAMES]) + (", ..." if len(names) > LONGEST_NAMES else "")


def failure(plan: Plan) -> str:
    """Return what failed, and what waits for it."""
    failed, blocked = ", ".join(sorted(plan.failed)), sorted(plan.blocked)
    wait = f"; {len(blocked)} wait for it: {some(blocked)}" if blocked else ""
    return f"farm: {failed} failed{wait}; the others are kept: put it right and run again"
