"""The plan: which stages may have to run, which of them next, and how long all of it still takes."""

import heapq
from collections.abc import Collection, Mapping

from pipeline.farming.asking import Graph

# Of a stage that never ran here, by its kind: about what those of the default run take on two cores.
GUESSED_S = {
    "pretrain": 10.0,
    "finetune": 60.0,
    "heuristics": 30.0,
    "hindsight": 30.0,
    "evaluate": 8.0,
    "transfer": 10.0,
    "plan": 30.0,
}


def behind(needs: Graph, stages: Collection[str]) -> set[str]:
    """Return some stages and all that need them, at first or second hand.

    >>> sorted(behind({"a": frozenset(), "b": frozenset({"a"}), "c": frozenset({"b"}), "d": frozenset()}, ["b"]))
    ['b', 'c']
    """
    found = set(stages) & set(needs)
    while more := {stage for stage, others in needs.items() if others & found} - found:
        found |= more
    return found


class Plan:
    """What waits, what runs and how the rest ended."""

    def __init__(self, needs: Graph, stages: Collection[str], seconds: Mapping[str, float], last: str = "") -> None:
        """Plan some stages of a graph.

        Args:
            needs: the whole graph.
            stages: what is to be done; with a stage, all that need it. Of equals the first is begun first.
            seconds: how long stages took when they last ran.
            last: a stage that comes behind all others, whatever it needs.
        """
        self._needs = {stage: needs[stage] & set(stages) for stage in stages}
        self._seconds, self._last = seconds, last
        self._place = {stage: place for place, stage in enumerate(stages)}
        self.waiting = set(stages)
        self.running: dict[str, float] = {}  # since when
        self.done: set[str] = set()
        self.failed: set[str] = set()

    @property
    def total(self) -> int:
        """Return how many stages there are."""
        return len(self._needs)

    @property
    def blocked(self) -> set[str]:
        """Return the stages that wait for one that failed."""
        return behind(self._needs, self.failed) - self.failed

    def next(self) -> str | None:
        """Return the stage to begin, if one can: of those whose inputs are there, that with most work behind it."""
        ready, ranks = self._ready(self.waiting - self.blocked, self.done, bool(self.running)), self._ranks()
        return max(ready, key=lambda stage: (ranks[stage], -self._place[stage]), default=None)

    def begin(self, stage: str, now_s: float) -> None:
        """Note that a stage runs."""
        self.waiting.discard(stage)
        self.running[stage] = now_s

    def end(self, stage: str, well: bool) -> None:
        """Note how a stage ended."""
        del self.running[stage]
        (self.done if well else self.failed).add(stage)

    def left_s(self, workers: int, now_s: float) -> tuple[float, int]:
        """Return the seconds that the rest takes, and of how many stages nobody knows how long they take.

        The rest is played as it would be begun, each stage as long as the last time, and those that are unknown for
        nothing.
        """
        rest = self.waiting - self.blocked
        unknown = [stage for stage in (*rest, *self.running) if stage not in self._seconds]
        ends = [(max(self._seconds.get(at, 0.0) - now_s + since, 0.0), at) for at, since in self.running.items()]
        ranks, done, at_s = self._ranks(), set(self.done), 0.0
        heapq.heapify(ends)
        while rest or ends:
            ready = self._ready(rest, done, bool(ends))
            for stage in sorted(ready, key=lambda stage: -ranks[stage])[: max(workers - len(ends), 0)]:
                rest.discard(stage)
                heapq.heappush(ends, (at_s + self._seconds.get(stage, 0.0), stage))
            at_s, ended = heapq.heappop(ends)
            done.add(ended)
        return at_s, len(unknown)

    def _ready(self, waiting: set[str], done: set[str], busy: bool) -> set[str]:
        """Return those of some stages that can begin; the last one only where nothing else waits or runs."""
        ready = {stage for stage in waiting if self._needs[stage] <= done}
        return ready - {self._last} if busy or waiting != {self._last} else ready

    def _ranks(self) -> dict[str, float]:
        """Return the seconds from the beginning of each stage to the end of the longest way behind it."""
        ranks: dict[str, float] = {}
        users = {stage: [other for other, needs in self._needs.items() if stage in needs] for stage in self._needs}

        def rank(stage: str) -> float:
            if stage not in ranks:
                guessed = GUESSED_S.get(stage.partition("@")[0], 1.0)  # of equals the longer chain goes first
                own = self._seconds.get(stage, guessed)
                ranks[stage] = own + max((rank(other) for other in users[stage]), default=0.0)
            return ranks[stage]

        return {stage: rank(stage) for stage in self._needs}
