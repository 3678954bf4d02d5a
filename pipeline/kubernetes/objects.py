"""Pods and nodes, as far as they matter here, and the state that POST /v1/decide takes.

Names and labels are plain text. In a state, a pod is a job on one machine, named by its uid; times are seconds since
1970.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.core.types import THOUSANDTHS, Json

# Amounts as Kubernetes writes them, 100m, 2, 1.5, 64Mi, 1e3:
# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
SUFFIXES = {
    **{"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0},
    **{suffix: 1000.0**power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 1024.0**power for power, suffix in enumerate("KMGTPE", start=1)},
}
WRITTEN = re.compile(r"\+?(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:([eE][+-]?\d{1,3})|([numkMGTPE]i?|Ki)?)")
GATE = "deeprm/order"  # of pods that wait for the policy
SECONDS = "deeprm/seconds"  # annotation: expected run time of a pod
OPENED, PROMISED = "deeprm/opened", "deeprm/node"  # annotations: when its gate was opened, and for which node
FOR_EVER_S = 1e9
MOST, MOST_WAITING = 1e6, 2000  # of a resource, and pods of one state: one pod must not get a whole state refused
OVER = ("Succeeded", "Failed")  # phases
GIB = 2.0**30
# Kubernetes' resources, their names in states, and how many make one unit there. Kinds of accelerators are added up:
# Kubernetes decides which of them a pod gets.
UNITS = {
    r"cpu": ("cpu", 1.0),
    r"memory": ("memory", GIB),
    r"nvidia\.com/(gpu(\.shared)?|mig-.+)|amd\.com/gpu|gpu\.intel\.com/(i915|xe)": ("gpu", 1.0),
}
OF_A_POD = ("cpu", "memory")  # that a whole pod may request, in spec.resources

Amounts = Mapping[str, float]


def amount(text: object) -> float:
    """Return an amount in whole units (cores, bytes, pieces); ValueError if the text is not one, or below 0.

    >>> [amount(text) for text in ("100m", "2", "1.5", "64Mi", "1e3", 3)]
    [0.1, 2.0, 1.5, 67108864.0, 1000.0, 3.0]
    """
    found = WRITTEN.fullmatch(str(text))
    if found is None or found[3] not in (None, *SUFFIXES):
        raise ValueError(f"expected an amount as 100m or 64Mi, got '{str(text)[:40]}'")
    value = float(found[1] + (found[2] or "")) * SUFFIXES[found[3] or ""]
    if not math.isfinite(value):
        raise ValueError(f"expected an amount, got '{str(text)[:40]}'")
    return value


@dataclass(frozen=True)
class Pod:
    """A pod."""

    namespace: str
    name: str
    uid: str
    version: str  # of the object, to notice changes by others
    created: float  # seconds since 1970
    started: float | None
    gates: tuple[str, ...]
    node: str  # "": none yet
    phase: str
    wants: Amounts
    seconds: float | None  # expected run time, if known
    opened: float | None  # when its gate was opened
    promised: str  # the node that it was opened for
    leaves: bool = False  # it is being deleted; until it is gone, it holds its resources

    @property
    def waits(self) -> bool:
        """Whether the pod waits only for the policy's gate."""
        return self.gates == (GATE,) and self.phase not in OVER and not self.leaves

    @property
    def holds(self) -> bool:
        """Whether the pod holds a part of a node."""
        return bool(self.node) and self.phase not in OVER


@dataclass(frozen=True)
class Node:
    """A node."""

    name: str
    has: Amounts
    ready: bool  # accepts pods


def pod_of(obj: Json) -> Pod:
    """Parse a pod; raise ValueError if it is not one."""
    about, spec, status = (mapping(get(obj, key)) for key in ("metadata", "spec", "status"))
    notes = mapping(about.get("annotations"))
    created = _time(about.get("creationTimestamp"))
    if created is None:
        raise ValueError("a pod without creationTimestamp")
    return Pod(
        _text(about, "namespace"),
        _text(about, "name"),
        _text(about, "uid"),
        str(about.get("resourceVersion", "")),
        created,
        _time(status.get("startTime")),
        tuple(str(mapping(gate).get("name")) for gate in _list(spec.get("schedulingGates"))),
        str(spec.get("nodeName") or ""),
        str(status.get("phase") or ""),
        wanted(spec, status),
        _positive(notes.get(SECONDS)) or _positive(spec.get("activeDeadlineSeconds")),
        _positive(notes.get(OPENED)),
        str(notes.get(PROMISED) or ""),
        about.get("deletionTimestamp") is not None,
    )


def node_of(obj: Json) -> Node:
    """Parse a node; raise ValueError if it is not one."""
    about, spec, status = (mapping(get(obj, key)) for key in ("metadata", "spec", "status"))
    conditions = [mapping(one) for one in _list(status.get("conditions"))]
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    has = units_of(status.get("allocatable") or status.get("capacity"))
    return Node(_text(about, "name"), has, ready and not spec.get("unschedulable"))


def units_of(value: Json) -> dict[str, float]:
    """Return amounts of known resources, without others."""
    found: dict[str, float] = {}
    for key, one in mapping(value).items():
        for pattern, (name, unit) in UNITS.items():
            if re.fullmatch(pattern, key):
                found[name] = found.get(name, 0.0) + amount(one) / unit
    return found


def wanted(spec: Mapping[str, Json], status: Mapping[str, Json] | None = None) -> dict[str, float]:
    """Return the request of a pod, by the scheduler's rules (k8s.io/component-helpers/resource/helpers.go).

    That is the sum of its containers or the largest init container, unless the pod has a request as a whole. During a
    resize the larger amount counts; a resize that the node can never do does not count.
    """
    status = status or {}
    resizes = [one for one in _list(status.get("conditions")) if get(one, "type") == "PodResizePending"]
    never = any(get(one, "reason") == "Infeasible" for one in resizes)
    statuses = (*_list(status.get("containerStatuses")), *_list(status.get("initContainerStatuses")))
    held = {str(get(one, "name")): one for one in statuses}

    def resized(container: Json) -> dict[str, float]:
        return _resized(_requests(container), held.get(str(get(container, "name"))), never)

    total: dict[str, float] = {}  # at first that of sidecars: init containers that stay
    largest: dict[str, float] = {}
    for one in _list(spec.get("initContainers")):
        stays = get(one, "restartPolicy") == "Always"
        total = _added(total, resized(one)) if stays else total
        largest = _most(largest, total if stays else _added(total, _requests(one)))
    for one in _list(spec.get("containers")):
        total = _added(total, resized(one))
    whole = mapping(spec.get("resources"))
    asked = units_of(whole.get("requests"))
    found = _of_a_pod(units_of(whole.get("limits"))) | _most(total, largest)
    if asked:
        found |= _of_a_pod(_resized(asked, status, never))
    return _added(found, units_of(spec.get("overhead")))


def _requests(container: Json) -> dict[str, float]:
    """Return the requests of a container; a limit without request is the request."""
    resources = mapping(get(container, "resources"))
    return units_of(resources.get("limits")) | units_of(resources.get("requests"))


def _resized(asked: dict[str, float], status: Json, never: bool) -> dict[str, float]:
    """Return the request, or the amount held during a resize if that is more."""
    kept = _most(units_of(get(get(status, "resources"), "requests")), units_of(get(status, "allocatedResources")))
    return kept if kept and never else _most(asked, kept)


def _of_a_pod(amounts: Amounts) -> dict[str, float]:
    return {name: amounts[name] for name in OF_A_POD if name in amounts}


def _added(one: Amounts, other: Amounts) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in (*one, *other)}


def _most(one: Amounts, other: Amounts) -> dict[str, float]:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in (*one, *other)}


def mapping(value: Json) -> Mapping[str, Json]:
    """Return a mapping; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def get(value: Json, key: str) -> Json:
    """Return the value of a key; None for anything but a mapping."""
    return mapping(value).get(key)


def _text(about: Mapping[str, Json], key: str) -> str:
    found = about.get(key)
    if not isinstance(found, str) or not found:
        raise ValueError(f"an object without {key}")
    return found


def _time(value: Json) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _positive(value: Json) -> float | None:
    """Return a number above 0 and below 10^12; None for anything else."""
    try:
        found = float(str(value)) if value is not None else math.nan
    except ValueError:
        return None
    return found if 0 < found < 1e12 else None


@dataclass(frozen=True)
class StateFormat:
    """Contents of a state."""

    resources: tuple[str, ...] = ("cpu", "memory")  # cores and GiB; others are left out
    seconds: float = 3600.0  # run time of pods without one

    def amounts(self, amounts: Amounts) -> dict[str, float]:
        """Return the amounts of the resources, in whole thousandths."""
        found = {name: min(amounts.get(name, 0.0), MOST) for name in self.resources}
        return {name: round(value * THOUSANDTHS) / THOUSANDTHS for name, value in found.items()}


def state_of(
    nodes: Sequence[Node],
    pods: Iterable[Pod],
    waiting: Sequence[Pod],
    now: float,
    form: StateFormat,
    allowed: frozenset[str],
) -> dict[str, Json]:
    """Return a state in which pods hold nodes or are promised one; nodes that are not allowed appear as fully held."""

    def job(pod: Pod, when: dict[str, Json], demand: dict[str, float]) -> dict[str, Json]:
        return {"id": pod.uid, **when, "duration": pod.seconds or form.seconds, "demand": {**demand}}

    left = {node.name: form.amounts(node.has) for node in nodes}
    running: list[Json] = []
    for pod in pods:
        place = pod.node or pod.promised
        if place not in left:
            continue
        # More than a node has may be held for a moment, as by pods that the node itself starts: it then counts as full.
        held = {name: min(value, left[place][name]) for name, value in form.amounts(pod.wants).items()}
        left[place] = {
            name: round((value - held[name]) * THOUSANDTHS) / THOUSANDTHS for name, value in left[place].items()
        }
        begun = pod.started or pod.opened or pod.created
        running.append(job(pod, {"started": min(begun, now), "machines": [place]}, held))
    for node in nodes:
        if node.name not in allowed and any(left[node.name].values()):
            closed: dict[str, Json] = {"id": f"closed {node.name}"[:200], "started": now, "duration": FOR_EVER_S}
            running.append(closed | {"demand": {**left[node.name]}, "machines": [node.name]})
    return {
        "now": now,
        "machines": [{"name": node.name, "has": {**form.amounts(node.has)}} for node in nodes],
        "waiting": [
            job(pod, {"arrived": min(pod.created, now)}, form.amounts(pod.wants)) for pod in waiting[:MOST_WAITING]
        ],
        "running": running,
    }
