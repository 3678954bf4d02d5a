"""The plan: stages that may have to run, the next of them, and the time left."""

from collections.abc import Collection, Mapping
from functools import cache

from pipeline.farming.dvc_stages import Graph

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
