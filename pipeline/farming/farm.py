"""The farm: run the stages of a plan through DVC, several at the same time, and show their output."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TextIO

from pipeline.farming import dvc_cli
from pipeline.farming.plan import Plan
from pipeline.farming.processes import Command, Crew
from pipeline.progress import say

REPRO = "dvc repro"
KEPT = 20  # last lines of a stage, for the reason of a failure
LONGEST_NAMES = 8  # stages in a list


@dataclass
class Farm:
    """One run of a plan."""

    plan: Plan
    workers: int  # stages or points at the same time
    command: Callable[[str], Command]  # that makes one of them
    # Stores the result of one that was made (its name, DVC's action, seconds); returns its fate in a word.
    ended: Callable[[str, str, float], str]
    held: TextIO  # stays locked while anything runs

    def __post_init__(self) -> None:
        self._at: dict[str, str] = {}  # current stage of a point
        self._output: dict[str, deque[str]] = {}
        self._fates: dict[str, str] = {}  # DVC's action, by stage
        self._worked_s = 0.0

    def work(self) -> None:
        """Make the stages; if one fails, stages that do not need it continue."""
        begun_s = time.monotonic()
        with Crew(self.held) as crew:
            self._begin(crew)
            for stage, line in crew.lines(lambda now_s: status(self.plan, self.workers, now_s, self._at)):
                if line is None:
                    self._end(stage, crew.dismiss(stage))
                    self._begin(crew)
                    continue
                if found := dvc_cli.fate(line):
                    self._at[stage], self._fates[stage] = found
                if line.strip():
                    self._output[stage].append(line)
                show(stage, line)
        say(summary(self._fates.values(), time.monotonic() - begun_s, self._worked_s))

    def _begin(self, crew: Crew) -> None:
        while len(crew) < self.workers and (stage := self.plan.next()):
            self.plan.begin(stage, time.monotonic())
            self._output[stage] = deque(maxlen=KEPT)
            crew.begin(stage, self.command(stage))

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
        if fate not in (dvc_cli.UNCHANGED, dvc_cli.CACHED):
            self._worked_s += took_s


def go_through(held: TextIO) -> tuple[int, list[str]]:
    """Run `dvc repro` on all stages; return its exit code and the stages in its order."""
    code, order, begun_s = 0, list[str](), time.monotonic()

    def seen(now_s: float) -> str:
        return f"farm: {REPRO} goes through, {now_s - begun_s:.0f} s, {len(order)} stages seen"

    say(f"farm: {REPRO} goes through what was made")
    with Crew(held) as crew:
        crew.begin(REPRO, Command(dvc_cli.repro()))
        for _, line in crew.lines(seen):
            if line is None:
                code = crew.dismiss(REPRO)
                continue
            if found := dvc_cli.fate(line):
                order.append(found[0])
                if found[1] != dvc_cli.UNCHANGED:
                    say(f"farm: {REPRO}: {found[0]} {found[1]}")
            show(REPRO, line)
    return code, order


def show(name: str, line: str) -> None:
    """Show a line of a stage with its name, without DVC's own lines."""
    if not dvc_cli.is_noise(line):
        say(f"{name} | {line}")


def status(plan: Plan, workers: int, now_s: float, at: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the progress of a farm: done and running stages, and the estimated time left.

    `at` has the current stage of each point.
    """
    running = ", ".join(
        f"{name}{f' ({at[name]})' if at.get(name, name) != name else ''} {now_s - since:.0f} s"
        for name, since in plan.running.items()
    )
    left_s, unknown = plan.left_s(workers, now_s)
    left = f"{'at least' if unknown else 'about'} {left_s:.0f} s left" if left_s >= 1 else "time left unknown"
    return f"farm: {len(plan.done)} of {plan.total} done; {running}; {left}"


def reason(output: Iterable[str], code: int) -> str:
    """Return the reason of a failure on one line: the stage's error, else its signal, else its last line.

    >>> reason(["error: params.yaml: no such key", "ERROR: failed to reproduce 'gate'"], 255)
    'params.yaml: no such key'
    >>> reason(["gate: started"], -9)
    'ended by signal 9'
    """
    lines = list(output)
    own = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    if own:
        return own[-1]
    if code < 0:
        return f"ended by signal {-code}"
    return lines[-1].removeprefix("ERROR: ") if lines else f"exit code {code}"


def summary(fates: Iterable[str], took_s: float, worked_s: float) -> str:
    """Return the number of stages by DVC's action, the time taken and the sum of the stages' times."""
    counts = ", ".join(f"{count} {what}" for what, count in Counter(fates).items()) or "nothing to do"
    return f"farm: {counts}; {took_s:.0f} s, of stages {worked_s:.0f} s"


def some(names: Sequence[str]) -> str:
    """Return the first of some names."""
    return ", ".join(names[:LONGEST_NAMES]) + (", ..." if len(names) > LONGEST_NAMES else "")


def failure(plan: Plan) -> str:
    """Return the failed stages, and those that wait for them."""
    failed, blocked = ", ".join(sorted(plan.failed)), sorted(plan.blocked)
    wait = f"; {len(blocked)} wait for it: {some(blocked)}" if blocked else ""
    return f"farm: {failed} failed{wait}; the others are kept: put it right and run again"
