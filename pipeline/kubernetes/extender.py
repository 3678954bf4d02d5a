"""A scheduler extender: it filters and scores the nodes of a pod for Kubernetes' or Volcano's scheduler.

Kubernetes: k8s.io/kube-scheduler/extender/v1 (Go, without JSON tags). ExtenderArgs in, ExtenderFilterResult or a bare
array of HostPriority out; scores from 0 to 10. The scheduler waits for 5 s, and continues without an answer if its
settings make the extender ignorable. The extender does not bind pods.

Volcano: volcano.sh/volcano/pkg/scheduler/plugins/extender/argument.go, TaskInfo and NodeInfo of pkg/scheduler/api (Go,
most without JSON tags). PrioritizeRequest in, PrioritizeResponse out. Volcano adds the scores of all its plugins, each
up to 100 times a weight, and waits for 1 s. Only `prioritize` is supported: the other verbs concern one node at a time,
or matters that no policy here decides.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from fastapi import APIRouter, Request, Response
from pydantic_core import from_json, to_json

from pipeline.core.types import Json
from pipeline.kubernetes.objects import Node, Pod, StateFormat, mapping, node_of, pod_of, state_of
from pipeline.kubernetes.view import View

BEST = 10  # MaxExtenderPriority
VOLCANO_BEST = 100.0  # MaxNodeScore of Kubernetes' scheduling framework, which Volcano's own plugins keep to
FORM = StateFormat()  # the resources and run times of states


class UnreadableError(Exception):
    """Request that does not have the form of a scheduler's request."""


@dataclass(frozen=True)
class Args:
    """Request of a scheduler: candidate nodes as objects, or by name if the extender is declared to know them."""

    pod: Pod
    names: tuple[str, ...]
    objects: Sequence[Json] | None
    placed: Sequence[Pod] = ()  # on candidates, including pods that the API server does not know yet


@dataclass
class Extender:
    """Answers a scheduler."""

    view: View
    decide: Callable[[bytes], Awaitable[bytes]]  # a state -> a reply; may raise

    def filtered(self, args: Args) -> dict[str, Json]:
        """Return the candidates that may hold the pod; all of them until the cluster is known."""
        nodes, held = self._nodes(args), dict[str, list[Pod]]()
        for pod in self.view.pods.all():
            if pod.holds and pod.uid != args.pod.uid:
                held.setdefault(pod.node, []).append(pod)
        asked = args.names if self.view.synced else ()
        reasons = {name: self._why_not(nodes.get(name), held.get(name, ()), args.pod) for name in asked}
        failed = {name: why for name, why in reasons.items() if why}
        kept = [name for name in args.names if name not in failed]
        result: dict[str, Json] = {"FailedNodes": {**failed}, "FailedAndUnresolvableNodes": {}, "Error": ""}
        if args.objects is None:
            return {"Nodes": None, "NodeNames": kept, **result}
        items = [obj for obj, name in zip(args.objects, args.names, strict=True) if name not in failed]
        return {"Nodes": {"metadata": {}, "items": items}, "NodeNames": None, **result}

    async def scored(self, args: Args) -> list[dict[str, Json]]:
        """Return the scores of the candidates: the highest for the policy's choice, 0 for the others."""
        place = await self.wanted(args)
        return [{"Host": name, "Score": BEST if name == place else 0} for name in args.names]

    def _nodes(self, args: Args) -> dict[str, Node]:
        """Return the known nodes, in the request's version if it contains them."""
        known = {node.name: node for node in self.view.nodes.all()}
        for obj in args.objects or ():
            with suppress(ValueError):  # if it is invalid, the view's version counts
                node = node_of(obj)
                known[node.name] = node
        return known

    def _why_not(self, node: Node | None, held: Sequence[Pod], pod: Pod) -> str:
        if node is None:
            return "the policy does not know this node"
        if not node.ready:
            return "the node is not ready"
        for resource, wanted in FORM.amounts(pod.wants).items():
            left = node.has.get(resource, 0.0) - sum(other.wants.get(resource, 0.0) for other in held)
            if wanted > left + 1e-6:
                return f"{left:g} of {resource} is free, {wanted:g} is wanted"
        return ""

    async def wanted(self, args: Args) -> str:
        """Return the policy's node; "" if it has no opinion."""
        if not self.view.synced:
            return ""
        nodes = [node for _, node in sorted(self._nodes(args).items())]
        allowed = frozenset(args.names) & {node.name for node in nodes if node.ready}
        if args.pod.promised in allowed:  # its gate was opened for that node
            return args.pod.promised
        holding = {pod.uid: pod for pod in (*self.view.pods.all(), *args.placed) if pod.holds}
        held = [pod for uid, pod in holding.items() if uid != args.pod.uid]
        state = state_of(nodes, held, [args.pod], time.time(), FORM, allowed)
        try:
            reply = from_json(await self.decide(to_json(state)))
        except Exception:  # whatever the reason, the scheduler continues without an opinion
            return ""
        starts = [] if reply["fell_back"] else reply["decision"]["starts"]
        return str(starts[0]["machines"][0]) if starts else ""


@contextmanager
def _expected(what: str) -> Iterator[None]:
    """Report in one line why a request cannot be read."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableError(f"expected {what}: {' '.join(str(error).split())[:200]}") from error


def args_of(raw: bytes) -> Args:
    """Parse a request of Kubernetes' scheduler."""
    with _expected("ExtenderArgs with Pod, and Nodes or NodeNames"):
        request = from_json(raw)
        pod = pod_of(request["Pod"])
        nodes, names = request.get("Nodes"), request.get("NodeNames")
        if nodes is None:
            return Args(pod, tuple(str(name) for name in names), None)
        return Args(pod, tuple(str(node["metadata"]["name"]) for node in nodes["items"]), nodes["items"])


def volcano_args_of(raw: bytes) -> Args:
    """Parse a request of Volcano."""
    with _expected("PrioritizeRequest with task and nodes"):
        request = from_json(raw)
        objects = [node["Node"] for node in request["nodes"]]
        names = tuple(node_of(node).name for node in objects)
        placed = [  # includes the pods placed in this session of the scheduler
            replace(pod_of(task.get("Pod")), node=name)
            for node, name in zip(request["nodes"], names, strict=True)
            for task in mapping(node.get("Tasks")).values()
            if isinstance(task, Mapping)
        ]
        return Args(pod_of(request["task"]["Pod"]), names, objects, placed)


def answer_of(body: object, status: int = 200) -> Response:
    """Return an answer as JSON, in which infinities (1e999) are null."""
    return Response(to_json(body, inf_nan_mode="null"), status, media_type="application/json")


def router_of(extender: Extender) -> APIRouter:
    """Return the endpoints /kubernetes/filter, /kubernetes/prioritize and /volcano/prioritize."""
    router = APIRouter()

    @router.post("/kubernetes/filter", summary="Which nodes may hold a pod? (ExtenderArgs -> ExtenderFilterResult)")
    async def filter(request: Request) -> Response:
        raw = await request.body()
        try:
            return answer_of(await asyncio.to_thread(lambda: extender.filtered(args_of(raw))))
        except UnreadableError as error:
            return answer_of({"Error": str(error)})

    @router.post(
        "/kubernetes/prioritize", summary="How good is each node for a pod? (ExtenderArgs -> HostPriorityList)"
    )
    async def prioritize(request: Request) -> Response:
        raw = await request.body()
        try:
            return answer_of(await extender.scored(await asyncio.to_thread(args_of, raw)))
        except UnreadableError as error:
            return answer_of({"error": str(error)}, 400)

    about = "How good is each node for a task? (PrioritizeRequest -> PrioritizeResponse)"

    @router.post("/volcano/prioritize", summary=about, name="prioritize")
    async def prioritize_for_volcano(request: Request) -> Response:
        raw = await request.body()
        try:
            args = await asyncio.to_thread(volcano_args_of, raw)
        except UnreadableError as error:
            return answer_of({"nodeScore": None, "errorMessage": str(error)})
        place = await extender.wanted(args)
        scores = {name: VOLCANO_BEST if name == place else 0.0 for name in args.names}
        return answer_of({"nodeScore": scores, "errorMessage": ""})

    return router
