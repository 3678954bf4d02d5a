"""The farm: run the stages of a plan through DVC, several at the same time, and show their output.

The plan: stages that may have to run, the next of them, and the time left.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

from pipeline.execution.commands import Commands, reason
from pipeline.farming import dvc_stages
from pipeline.farming.dvc_stages import Graph
from pipeline.progress import LINES_EVERY_S, say

# For stages that never ran here, by kind: about their time in the default run on two cores.
GUESSED_S = {
    "pretrain": 10.0,
    "finetune": 60.0,
    "heuristics": 30.0,
    "hindsight": 30.0,
    "evaluate": 8.0,
    "transfer": 10.0,
    "plan": 30.0,
}
KEPT = 20  # last lines of a stage, for the reason of a failure
LONGEST_NAMES = 8  # stages in a list


def with_dependents(needs: Graph, stages: Collection[str]) -> set[str]:
    """Return some stages and all that need them, directly or indirectly.

    >>> needs = {"a": frozenset(), "b": frozenset({"a"}), "c": frozenset({"b"}), "d": frozenset()}
    >>> sorted(with_dependents(needs, ["b"]))
    ['b', 'c']
    """
    found = set(stages) & set(needs)
    while more := {stage for stage, others in needs.items() if others & found} - found:
        found |= more
    return found


class Plan:
    """Waiting, running and ended stages."""

    def __init__(self, needs: Graph, stages: Collection[str], seconds: Mapping[str, float], last: str = "") -> None:
        """Plan `stages` of the graph `needs`, which include all their dependents; of equals, the first begins first.

        `seconds` are the times of each stage's last run. The stage `last` runs after all others, whatever it needs.
        """
        self._needs = {stage: needs[stage] & set(stages) for stage in stages}
        self._seconds, self._last = seconds, last
        # Stages that never ran here count with the time of their kind.
        self._ranks = self._chains({at: seconds.get(at, GUESSED_S.get(at.partition("@")[0], 1.0)) for at in stages})
        self.waiting = list(stages)
        self.total = len(self.waiting)
        self.running: dict[str, float] = {}  # since when
        self.done: set[str] = set()
        self.failed: set[str] = set()

    @property
    def blocked(self) -> set[str]:
        """Return the stages that wait for one that failed."""
        return with_dependents(self._needs, self.failed) - self.failed

    def begin(self, now_s: float) -> str | None:
        """Begin the next stage, if any: of those with their inputs ready, the one at the head of the longest chain."""
        ready = [stage for stage in self.waiting if self._needs[stage] <= self.done]
        if len(ready) > 1 or self.running:
            ready = [stage for stage in ready if stage != self._last]
        if not ready:
            return None
        stage = max(ready, key=self._ranks.__getitem__)
        self.waiting.remove(stage)
        self.running[stage] = now_s
        return stage

    def end(self, stage: str, well: bool) -> None:
        """Record the end of a stage."""
        del self.running[stage]
        (self.done if well else self.failed).add(stage)

    def left_s(self, workers: int, now_s: float) -> tuple[float, int]:
        """Return the seconds left, and the number of remaining stages whose time is unknown.

        The time is that of the longest chain, or the sum divided by the workers if that is more; unknown times are 0.
        """
        blocked = self.blocked
        rest = [*(stage for stage in self.waiting if stage not in blocked), *self.running]
        own = {stage: self._seconds.get(stage, 0.0) for stage in rest}
        own |= {stage: max(own[stage] - now_s + since, 0.0) for stage, since in self.running.items()}
        longest = max(self._chains(own).values(), default=0.0)
        return max(longest, sum(own.values()) / workers), sum(stage not in self._seconds for stage in rest)

    def _chains(self, own: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of the longest chain that begins with each stage."""

        @cache
        def chain(stage: str) -> float:
            return own[stage] + max((chain(other) for other in own if stage in self._needs[other]), default=0.0)

        return {stage: chain(stage) for stage in own}


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
