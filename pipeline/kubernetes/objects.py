"""Pods and nodes, as far as anybody here looks at them; what they are called and labelled is text and nothing else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.core import Json
from pipeline.kubernetes.quantities import amount

GATE = "deeprm/order"  # of pods that wait for the policy
SECONDS = "deeprm/seconds"  # annotation: how long a pod will run, as far as its owner knows
OPENED, PROMISED = "deeprm/opened", "deeprm/node"  # annotations: when its gate was opened, and for which node
OVER = ("Succeeded", "Failed")  # phases
GIB = 2.0**30
# What resources are called in the state that a service is asked about, and how many make one of its units.
UNITS = {"cpu": ("cpu", 1.0), "memory": ("memory", GIB), "nvidia.com/gpu": ("gpu", 1.0)}

Amounts = Mapping[str, float]


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

    @property
    def waits(self) -> bool:
        """Return whether our gate is all that holds it."""
        return self.gates == (GATE,) and self.phase not in OVER

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
    """Return a pod of an API server's object.

    Raises:
        ValueError: it is none.
    """
    whole, about, spec = _mapping(told), _mapping(_get(told, "metadata")), _mapping(_get(told, "spec"))
    notes, status = _mapping(about.get("annotations")), _mapping(whole.get("status"))
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
        tuple(str(_mapping(gate).get("name")) for gate in _list(spec.get("schedulingGates"))),
        str(spec.get("nodeName") or ""),
        str(status.get("phase") or ""),
        wanted(spec),
        _positive(notes.get(SECONDS)) or _positive(spec.get("activeDeadlineSeconds")),
        _positive(notes.get(OPENED)),
        str(notes.get(PROMISED) or ""),
    )


def node_of(told: Json) -> Node:
    """Return a node of an API server's object.

    Raises:
        ValueError: it is none.
    """
    about, spec, status = (_mapping(_get(told, key)) for key in ("metadata", "spec", "status"))
    conditions = [_mapping(one) for one in _list(status.get("conditions"))]
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return Node(_text(about, "name"), units_of(status.get("allocatable")), ready and not spec.get("unschedulable"))


def units_of(told: Json) -> dict[str, float]:
    """Return amounts of the resources that are known here; of others nothing is said."""
    amounts = _mapping(told)
    return {name: amount(amounts[key]) / unit for key, (name, unit) in UNITS.items() if key in amounts}


def wanted(spec: Mapping[str, Json]) -> dict[str, float]:
    """Return what a pod requests, as the scheduler counts it: containers together or the largest before them."""
    always: dict[str, float] = {}  # of sidecars: init containers that stay
    largest: dict[str, float] = {}
    for told in _list(spec.get("initContainers")):
        asks = _requests(told)
        if _mapping(told).get("restartPolicy") == "Always":
            always = _added(always, asks)
            asks = {}
        largest = _most(largest, _added(always, asks))
    total = always
    for told in _list(spec.get("containers")):
        total = _added(total, _requests(told))
    return _added(_most(total, largest), units_of(spec.get("overhead")))


def _requests(container: Json) -> dict[str, float]:
    return units_of(_mapping(_mapping(container).get("resources")).get("requests"))


def _added(one: Amounts, other: Amounts) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in (*one, *other)}


def _most(one: Amounts, other: Amounts) -> dict[str, float]:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in (*one, *other)}


def _mapping(told: Json) -> Mapping[str, Json]:
    return told if isinstance(told, Mapping) else {}


def _list(told: Json) -> Sequence[Json]:
    return told if isinstance(told, Sequence) and not isinstance(told, str) else ()


def _get(told: Json, key: str) -> Json:
    return _mapping(told).get(key)


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
