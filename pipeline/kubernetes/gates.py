"""Controller of gated pods: pods are created with a gate, which is opened when the policy would start them.

The controller only removes the gate and never adds one; Kubernetes' own scheduler chooses the node. All that it must
remember is in annotations of the pods, so that a killed or a second controller does no harm. No pod is held forever,
even if the service is gone or the policy never starts the pod. `python -m pipeline open-gates` runs the controller.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote

from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.kubernetes.api import Address, AnsweredError, Api, UnreachableError
from pipeline.kubernetes.objects import GATE, OPENED, PROMISED, UNITS, Pod, StateFormat, get, mapping, pod_of, state_of
from pipeline.kubernetes.view import View
from pipeline.progress import say

TRIES = 5  # to open the gate of a pod that others change at the same time
CONFLICT, NOT_FOUND = 409, 404
BEGIN_S = 30.0  # limit of the API server's first answer
LOOK_S = 0.1

Ask = Callable[[Json], Mapping[str, Json]]  # a state -> the service's answer


@dataclass(frozen=True)
class Patience:
    """Limits of waiting, in seconds."""

    service: float = 60.0  # for the service; after that all gates are opened, the oldest first
    promise: float = 30.0  # for an opened pod to get a node; after that its place is free for others
    held: float = 3600.0  # for the policy; after that a gate is opened without it


@dataclass
class Gates:
    """Controller of gated pods."""

    api: Api
    view: View
    ask: Ask
    say: Callable[[str], None]
    form: StateFormat = field(default_factory=StateFormat)
    patience: Patience = field(default_factory=Patience)
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._silent_since: float | None = None
        self._mine: dict[str, Pod] = {}  # patched pods, until the view shows the change

    def tick(self) -> bool:
        """Look once, and open gates; return whether to look again at once."""
        if not self.view.synced:
            return False
        now, pods = self.clock(), self._pods()
        waiting = sorted((pod for pod in pods if pod.waits), key=lambda pod: (pod.created, pod.uid))
        if not waiting:
            return False
        late = [pod for pod in waiting if now - pod.created > self.patience.held]
        if late:
            self._open_all(late, f"held for more than {self.patience.held:g} s")
            return False
        try:
            answer = self.ask(self._state(pods, waiting, now))
        except (UnreachableError, AnsweredError, UserError) as error:  # UserError: its token cannot be read
            if self._silent_since is None:
                self._silent_since = now
                self.say(f"no decision: {error}")
            if now - self._silent_since > self.patience.service:
                self._open_all(waiting, f"no decision for {self.patience.service:g} s")
            return False
        self._silent_since = None
        return self._follow(answer, {pod.uid: pod for pod in waiting})

    def open_all(self) -> int:
        """Open every gate, the oldest pod's first; return how many the server confirmed."""
        gated = self.gated()
        for pod in sorted(gated, key=lambda pod: (pod.created, pod.uid)):
            self._open(pod, "")
        return sum(pod.uid in self._mine for pod in gated)

    def gated(self) -> list[Pod]:
        """Return the pods whose gate is closed, as far as known."""
        return [pod for pod in self._pods() if GATE in pod.gates]

    def _pods(self) -> list[Pod]:
        """Return the pods, including this controller's changes that the view does not show yet.

        If the view lacks a change for longer than a promise lasts, the server has lost it.
        """
        shown, late = self.view.pods.all(), self.clock() - self.patience.promise
        gated = {pod.uid for pod in shown if GATE in pod.gates}
        self._mine = {uid: pod for uid, pod in self._mine.items() if uid in gated and (pod.opened or 0.0) >= late}
        return [self._mine.get(pod.uid, pod) for pod in shown]

    def _state(self, pods: Sequence[Pod], waiting: Sequence[Pod], now: float) -> Json:
        nodes = self.view.nodes.all()

        def promised(pod: Pod) -> bool:
            fresh = pod.opened is not None and abs(now - pod.opened) <= self.patience.promise
            return fresh and not pod.gates and not pod.node and bool(pod.promised) and pod.phase == "Pending"

        held = [pod for pod in pods if pod.holds or promised(pod)]
        allowed = frozenset(node.name for node in nodes if node.ready)
        return state_of(nodes, held, waiting, now, self.form, allowed)

    def _follow(self, answer: Mapping[str, Json], waiting: Mapping[str, Pod]) -> bool:
        decision = mapping(answer.get("decision"))
        never, starts = decision.get("never"), decision.get("starts")
        for uid in never if isinstance(never, Sequence) else ():
            if uid in waiting:  # Kubernetes reports why it cannot run, or adds a node
                self._open(waiting[str(uid)], "")
        for start in starts if isinstance(starts, Sequence) else ():
            job, places = str(get(start, "job")), get(start, "machines")
            place = str(places[0]) if isinstance(places, Sequence) and places else ""
            if job in waiting and not self._open(waiting[job], place):
                return False  # later pods wait, too, to keep the order
        return bool(decision.get("more"))

    def _open_all(self, pods: Sequence[Pod], why: str) -> None:
        self.say(f"{why}: opening {len(pods)} gates")
        for pod in pods:
            if not self._open(pod, ""):
                return

    def _open(self, pod: Pod, place: str) -> bool:
        """Open a pod's gate; return False if the server could not be reached."""
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
        for _ in range(TRIES):
            notes: Json = {OPENED: f"{self.clock():.3f}", PROMISED: place or None}
            left: list[Json] = [{"name": name} for name in pod.gates if name != GATE]
            about: Json = {"resourceVersion": pod.version, "uid": pod.uid, "annotations": notes}
            try:
                changed = pod_of(self.api.patch(path, {"metadata": about, "spec": {"schedulingGates": left or None}}))
            except (UnreachableError, UserError) as error:
                self.say(f"{pod.namespace}/{pod.name}: {error}")
                return False
            except AnsweredError as error:
                again = self._gated_now(pod, path) if error.status == CONFLICT else None
                if error.status not in (CONFLICT, NOT_FOUND):
                    self.say(f"{pod.namespace}/{pod.name}: {error}")
                if again is None:
                    return True  # gone, open or denied: no reason for the next pod to wait
                pod = again
                continue
            if GATE in changed.gates:
                self.say(f"{pod.namespace}/{pod.name}: the server answered, and left its gate closed")
            else:
                self._mine[pod.uid] = changed
            return True
        return True

    def _gated_now(self, pod: Pod, path: str) -> Pod | None:
        """Return the present version of a pod; None if it is gone or its gate is open."""
        try:
            found = pod_of(self.api.get(path))
        except (UnreachableError, AnsweredError, ValueError):
            return None
        return found if found.uid == pod.uid and GATE in found.gates else None


def format_of(resources: str, seconds: float) -> StateFormat:
    """Return the format of states: their resources, and the run time of pods without one."""
    named, known = tuple(resources.split(",")), [name for name, _ in UNITS.values()]
    for name in named:
        if name not in known:
            raise UserError(f"--resources: expected some of {', '.join(known)}, got '{name}'")
    return StateFormat(named, seconds)


def open_gates(
    service: Address, server: Address, form: StateFormat, patience: Patience, every_s: float, all_and_end: bool
) -> None:
    """Open gates in the policy's order, with a look at the cluster every `every_s` seconds, until the process ends.

    All state is in the pods, so a restart loses nothing. With `all_and_end`, open every gate and return.
    """
    api = Api(server)
    with View(api) as view:
        until = time.monotonic() + BEGIN_S
        while not view.synced:
            if time.monotonic() > until:
                raise UserError(f"{server.url}: {view.said or 'no answer'}")
            time.sleep(LOOK_S)
        gates = Gates(api, view, partial(Api(service).post, "/v1/decide"), say, form, patience)
        if all_and_end:
            say(f"open-gates: {gates.open_all()} opened")
            if left := gates.gated():
                first = f"{left[0].namespace}/{left[0].name}"
                raise UserError(f"{server.url}: {len(left)} gates are still closed, that of {first} first; try again")
            return
        known = f"{len(view.nodes.all())} nodes, {len(view.pods.all())} pods"
        say(f"open-gates: {known} of {server.url}; asking {service.url}")
        while True:
            if not gates.tick():
                time.sleep(every_s)
