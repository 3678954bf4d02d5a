"""The plan: which stages may have to run, which of them next, and how long all of it still takes."""

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
        waiting = self.waiting - self.blocked
        ready = {stage for stage in waiting if self._needs[stage] <= self.done}
        if self.running or waiting != {self._last}:
            ready.discard(self._last)
        # Of stages that never ran here, those of a long kind, and of equals the longer chain, go first.
        own = {at: self._seconds.get(at, GUESSED_S.get(at.partition("@")[0], 1.0)) for at in self._needs}
        ranks = self._chains(own)
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
        """Return the seconds that the rest takes, and of how many of its stages it is unknown how long they take.

        That is its longest chain, or its sum over the workers where that is more; an unknown stage counts for nothing.
        """
        rest = [*(self.waiting - self.blocked), *self.running]
        own = {stage: self._seconds.get(stage, 0.0) for stage in rest}
        own |= {stage: max(own[stage] - now_s + since, 0.0) for stage, since in self.running.items()}
        longest = max(self._chains(own).values(), default=0.0)
        return max(longest, sum(own.values()) / workers), sum(stage not in self._seconds for stage in rest)

    def _chains(self, own: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds from the beginning of each stage to the end of the longest chain that begins with it."""
        chains: dict[str, float] = {}

        def chain(stage: str) -> float:
            if stage not in chains:
                users = (other for other in own if stage in self._needs[other])
                chains[stage] = own[stage] + max(map(chain, users), default=0.0)
            return chains[stage]

        return {stage: chain(stage) for stage in own}
