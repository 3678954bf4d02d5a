"""The farm: run the stages of a plan through DVC, several at the same time, and show their output."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from pipeline.execution.commands import Commands, reason
from pipeline.farming import dvc_stages
from pipeline.farming.plan import Plan
from pipeline.progress import LINES_EVERY_S, say

KEPT = 20  # last lines of a stage, for the reason of a failure
LONGEST_NAMES = 8  # stages in a list


@dataclass(frozen=True)
class Command:
    """A command, its folder, and additions to its environment."""

    words: Sequence[str]
    place: Path = Path()
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Farm:
    """One run of a plan."""

    plan: Plan
    workers: int  # stages or points at the same time
    command: Callable[[str], Command]  # the command that runs one of them
    # Stores the result of one that has run (its name, DVC's action, seconds); returns its fate in a word.
    ended: Callable[[str, str, float], str]
    held: int  # file descriptor that stays open, and locked, while anything runs

    def __post_init__(self) -> None:
        self._at: dict[str, str] = {}  # current stage of a point
        self._output: dict[str, deque[str]] = {}
        self._fates: dict[str, str] = {}  # DVC's action, by stage
        self._worked_s = 0.0

    def work(self) -> dict[str, str]:
        """Run the stages and return their fates; if one fails, stages that do not need it continue."""
        begun_s = time.monotonic()
        running: dict[Future[int], str] = {}
        with ThreadPoolExecutor(self.workers) as pool, Commands([self.held]) as commands:
            while True:
                while len(running) < self.workers and (stage := self.plan.begin(time.monotonic())):
                    running[pool.submit(self._run, stage, commands)] = stage
                if not running:
                    break
                done, _ = wait(running, LINES_EVERY_S, FIRST_COMPLETED)
                for future in done:
                    self._end(running.pop(future), future.result())
                if not done:
                    say(status(self.plan, self.workers, time.monotonic(), self._at))
        say(summary(self._fates.values(), time.monotonic() - begun_s, self._worked_s))
        return self._fates

    def _run(self, stage: str, commands: Commands) -> int:
        self._output[stage] = deque(maxlen=KEPT)
        command = self.command(stage)
        return commands.run(command.words, partial(self._hear, stage), command.more, command.place)

    def _hear(self, stage: str, line: str) -> None:
        if found := dvc_stages.fate(line):
            self._at[stage], self._fates[stage] = found
        self._output[stage].append(line)
        show(stage, line)

    def _end(self, stage: str, code: int) -> None:
        took_s = time.monotonic() - self.plan.running[stage]
        fate = self._fates.get(stage, "")
        self.plan.end(stage, code == 0)
        if code:
            self._fates[stage] = "failed"
            say(f"farm: {stage} failed after {took_s:.0f} s: {reason(self._output[stage], code)}")
        else:
            self._fates[stage] = fate = self.ended(stage, fate, took_s)
            say(f"farm: {stage} {fate}, {took_s:.0f} s; {len(self.plan.done)} of {self.plan.total} done")
        if fate not in (dvc_stages.UNCHANGED, dvc_stages.CACHED):
            self._worked_s += took_s


def show(name: str, line: str) -> None:
    """Show a line of a stage with its name, without DVC's own lines."""
    if not dvc_stages.is_noise(line):
        say(f"{name} | {line}")


def status(plan: Plan, workers: int, now_s: float, at: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the progress of a farm, with the estimated time left; `at` has the current stage of each point."""
    running = ", ".join(
        f"{name}{f' ({at[name]})' if at.get(name, name) != name else ''} {now_s - since:.0f} s"
        for name, since in plan.running.items()
    )
    left_s, unknown = plan.left_s(workers, now_s)
    left = f"{'at least' if unknown else 'about'} {left_s:.0f} s left" if left_s >= 1 else "time left unknown"
    return f"farm: {len(plan.done)} of {plan.total} done; {running}; {left}"


def summary(fates: Iterable[str], took_s: float, worked_s: float) -> str:
    """Return the number of stages by DVC's action, the time taken and the sum of the stages' times."""
    counts = ", ".join(f"{count} {what}" for what, count in Counter(fates).items()) or "nothing to do"
    return f"farm: {counts}; {took_s:.0f} s, of stages {worked_s:.0f} s"


def some(names: Sequence[str]) -> str:
    """Return a list of names as text, cut if it is long."""
    return ", ".join(names[:LONGEST_NAMES]) + (", ..." if len(names) > LONGEST_NAMES else "")


def failure(plan: Plan) -> str:
    """Return the failed stages, and those that wait for them."""
    failed, blocked = ", ".join(sorted(plan.failed)), sorted(plan.blocked)
    wait = f"; {len(blocked)} wait for it: {some(blocked)}" if blocked else ""
    return f"farm: {failed} failed{wait}; the others are kept: put it right and run again"
