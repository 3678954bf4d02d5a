"""A cluster of pods and nodes as the state that POST /v1/decide takes, for policies that place jobs on machines.

A pod is a job on one machine, called by its uid. Times are seconds since 1970.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.core import Json
from pipeline.kubernetes.objects import Amounts, Node, Pod

FOR_EVER_S = 1e9
THOUSANDTHS = 1000
MOST, MOST_WAITING = 1e6, 2000  # of a resource, and pods of one state; what its owner wrote must not refuse the whole


@dataclass(frozen=True)
class Words:
    """How a cluster is told."""

    resources: tuple[str, ...] = ("cpu", "memory")  # cores and GiB; of others nothing is said
    seconds: float = 3600.0  # that a pod runs of which nobody tells

    def told(self, amounts: Amounts) -> dict[str, float]:
        """Return the amounts that are told, in whole thousandths."""
        told = {name: min(amounts.get(name, 0.0), MOST) for name in self.resources}
        return {name: round(amount * THOUSANDTHS) / THOUSANDTHS for name, amount in told.items()}


def state_of(
    nodes: Sequence[Node],
    pods: Iterable[Pod],
    waiting: Sequence[Pod],
    now: float,
    words: Words,
    allowed: frozenset[str],
) -> dict[str, Json]:
    """Return the state of a cluster in which pods hold nodes or are promised one; nodes not allowed are held wholly."""
    left = {node.name: words.told(node.has) for node in nodes}
    running: list[Json] = []
    for pod in pods:
        place = pod.node or pod.promised
        if place not in left:
            continue
        # More than a node has may be held for a moment, as by pods of the node itself: it is told as full.
        held = {name: min(value, left[place][name]) for name, value in words.told(pod.wants).items()}
        left[place] = {name: _less(value, held[name]) for name, value in left[place].items()}
        begun = pod.started or pod.opened or pod.created
        running.append(_job(pod.uid, {"started": min(begun, now), "machines": [place]}, pod, held, words))
    for node in nodes:
        if node.name not in allowed and any(left[node.name].values()):
            running.append(
                {
                    "id": f"closed {node.name}"[:200],
                    "started": now,
                    "duration": FOR_EVER_S,
                    "demand": {**left[node.name]},
                    "machines": [node.name],
                }
            )
    return {
        "now": now,
        "machines": [{"name": node.name, "has": {**words.told(node.has)}} for node in nodes],
        "waiting": [
            _job(pod.uid, {"arrived": min(pod.created, now)}, pod, words.told(pod.wants), words)
            for pod in waiting[:MOST_WAITING]
        ],
        "running": running,
    }


def _job(uid: str, when: dict[str, Json], pod: Pod, demand: dict[str, float], words: Words) -> dict[str, Json]:
    return {"id": uid, **when, "duration": pod.seconds or words.seconds, "demand": {**demand}}


def _less(value: float, taken: float) -> float:
    return round((value - taken) * THOUSANDTHS) / THOUSANDTHS
