"""Pods and nodes, as far as anybody here looks at them; what they are called and labelled is text and nothing else."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.core import Json

# Amounts as Kubernetes writes them, 100m, 2, 1.5, 64Mi, 1e3:
# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
SUFFIXES = {
    **{"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0},
    **{suffix: 1000.0**power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 1024.0**power for power, suffix in enumerate("KMGTPE", start=1)},
}
WRITTEN = re.compile(r"\+?(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:([eE][+-]?\d{1,3})|([numkMGTPE]i?|Ki)?)")
GATE = "deeprm/order"  # of pods that wait for the policy
SECONDS = "deeprm/seconds"  # annotation: how long a pod will run, as far as its owner knows
OPENED, PROMISED = "deeprm/opened", "deeprm/node"  # annotations: when its gate was opened, and for which node
OVER = ("Succeeded", "Failed")  # phases
GIB = 2.0**30
# Kubernetes' resources, what they are called in the state that a service is asked about, and how many make one of its
# units. Kinds of accelerators are added: which of them a pod gets, Kubernetes says.
UNITS = {
    r"cpu": ("cpu", 1.0),
    r"memory": ("memory", GIB),
    r"nvidia\.com/(gpu(\.shared)?|mig-.+)|amd\.com/gpu|gpu\.intel\.com/(i915|xe)": ("gpu", 1.0),
}
OF_A_POD = ("cpu", "memory")  # that a pod may ask for as a whole, in spec.resources

Amounts = Mapping[str, float]


def amount(text: object) -> float:
    """Return an amount in whole units: cores, bytes, pieces.

    Raises:
        ValueError: it is none, or below 0.

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
    version: str  # of the object, by which a change of it by others is noticed
    created: float  # seconds since 1970
    started: float | None
    gates: tuple[str, ...]
    node: str  # "": none yet
    phase: str
    wants: Amounts
    seconds: float | None  # that it will run, as far as one is told
    opened: float | None  # when its gate was opened
    promised: str  # the node that it was opened for
    leaves: bool = False  # it is being deleted; until it is gone it holds what it has

    @property
    def waits(self) -> bool:
        """Return whether our gate is all that holds it."""
        return self.gates == (GATE,) and self.phase not in OVER and not self.leaves

    @property
    def holds(self) -> bool:
        """Return whether it holds a part of a node."""
        return bool(self.node) and self.phase not in OVER


@dataclass(frozen=True)
class Node:
    """A node."""

    name: str
    has: Amounts
    ready: bool  # may pods be put on it?


def pod_of(told: Json) -> Pod:
    """Return a pod of an API server's object; raise ValueError where it is none."""
    whole, about, spec = mapping(told), mapping(get(told, "metadata")), mapping(get(told, "spec"))
    notes, status = mapping(about.get("annotations")), mapping(whole.get("status"))
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


def node_of(told: Json) -> Node:
    """Return a node of an API server's object; raise ValueError where it is none."""
    about, spec, status = (mapping(get(told, key)) for key in ("metadata", "spec", "status"))
    conditions = [mapping(one) for one in _list(status.get("conditions"))]
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    has = units_of(status.get("allocatable") or status.get("capacity"))
    return Node(_text(about, "name"), has, ready and not spec.get("unschedulable"))


def units_of(told: Json) -> dict[str, float]:
    """Return amounts of the resources that are known here; of others nothing is said."""
    found: dict[str, float] = {}
    for key, value in mapping(told).items():
        for pattern, (name, unit) in UNITS.items():
            if re.fullmatch(pattern, key):
                found[name] = found.get(name, 0.0) + amount(value) / unit
    return found


def wanted(spec: Mapping[str, Json], status: Mapping[str, Json] | None = None) -> dict[str, float]:
    """Return what a pod requests, as the scheduler counts it (k8s.io/component-helpers/resource/helpers.go).

    That is its containers together or the largest before them, unless the pod asks as a whole. What is held while a
    resize is under way counts where it is more; a resize that its node can never do does not count.
    """
    status = status or {}
    resizes = [one for one in _list(status.get("conditions")) if get(one, "type") == "PodResizePending"]
    never = any(get(one, "reason") == "Infeasible" for one in resizes)
    statuses = (*_list(status.get("containerStatuses")), *_list(status.get("initContainerStatuses")))
    held = {str(get(one, "name")): one for one in statuses}

    def resized(told: Json) -> dict[str, float]:
        return _resized(_requests(told), held.get(str(get(told, "name"))), never)

    total: dict[str, float] = {}  # first of sidecars: init containers that stay
    largest: dict[str, float] = {}
    for told in _list(spec.get("initContainers")):
        stays = get(told, "restartPolicy") == "Always"
        total = _added(total, resized(told)) if stays else total
        largest = _most(largest, total if stays else _added(total, _requests(told)))
    for told in _list(spec.get("containers")):
        total = _added(total, resized(told))
    whole = mapping(spec.get("resources"))
    asked = units_of(whole.get("requests"))
    found = _of_a_pod(units_of(whole.get("limits"))) | _most(total, largest)
    if asked:
        found |= _of_a_pod(_resized(asked, status, never))
    return _added(found, units_of(spec.get("overhead")))


def _requests(container: Json) -> dict[str, float]:
    """Return what a container requests; what it only limits, it requests as much of."""
    told = mapping(get(container, "resources"))
    return units_of(told.get("limits")) | units_of(told.get("requests"))


def _resized(asked: dict[str, float], status: Json, never: bool) -> dict[str, float]:
    """Return what is asked for, or what is held meanwhile if that is more."""
    kept = _most(units_of(get(get(status, "resources"), "requests")), units_of(get(status, "allocatedResources")))
    return kept if kept and never else _most(asked, kept)


def _of_a_pod(amounts: Amounts) -> dict[str, float]:
    return {name: amounts[name] for name in OF_A_POD if name in amounts}


def _added(one: Amounts, other: Amounts) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in (*one, *other)}


def _most(one: Amounts, other: Amounts) -> dict[str, float]:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in (*one, *other)}


def mapping(told: Json) -> Mapping[str, Json]:
    """Return a mapping of keys; of anything else, an empty one."""
    return told if isinstance(told, Mapping) else {}


def _list(told: Json) -> Sequence[Json]:
    return told if isinstance(told, Sequence) and not isinstance(told, str) else ()


def get(told: Json, key: str) -> Json:
    """Return the value of a key; of what is no mapping, nothing."""
    return mapping(told).get(key)


def _text(told: Mapping[str, Json], key: str) -> str:
    found = told.get(key)
    if not isinstance(found, str) or not found:
        raise ValueError(f"an object without {key}")
    return found


def _time(told: Json) -> float | None:
    try:
        return datetime.fromisoformat(told).timestamp() if isinstance(told, str) else None
    except (ValueError, OverflowError):
        return None


def _positive(told: Json) -> float | None:
    """Return a number above 0 and below 10^12; of anything else nothing."""
    try:
        value = float(str(told)) if told is not None else math.nan
    except ValueError:
        return None
    return value if 0 < value < 1e12 else None
