"""A door for Volcano's scheduler: its plugin `extender` asks how good each node is for a task.

Names are those of volcano.sh/volcano/pkg/scheduler/plugins/extender/argument.go, and of TaskInfo and NodeInfo in
pkg/scheduler/api (Go, most without JSON tags): PrioritizeRequest in, PrioritizeResponse out. Volcano adds the scores of
all its plugins, each up to 100 times a weight; it waits for 1 s, and goes on without if it is told that the extender
may be ignored. Only `prioritize` is answered: the other verbs are asked one node at a time, or for what no policy here
decides.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fastapi import APIRouter, Request, Response
from pydantic_core import from_json

from pipeline.core import Json
from pipeline.kubernetes.extender import Args, Extender, UnreadableError, answer_of
from pipeline.kubernetes.objects import Pod, node_of, pod_of

BEST = 100.0  # MaxNodeScore of Kubernetes' scheduling framework, which Volcano's own plugins keep to


def args_of(raw: bytes) -> Args:
    """Return what Volcano sends."""
    try:
        told = from_json(raw)
        objects = [node["Node"] for node in told["nodes"]]
        names = tuple(node_of(node).name for node in objects)
        placed = [pod for node, name in zip(told["nodes"], names, strict=True) for pod in _placed(node, name)]
        return Args(pod_of(told["task"]["Pod"]), names, objects, placed)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        line = " ".join(f"{error}".split())[:200]
        raise UnreadableError(f"expected PrioritizeRequest with task and nodes: {line}") from error


def _placed(node: Mapping[str, Json], name: str) -> Iterator[Pod]:
    """Return the pods of a node, also those that were put there a moment ago, in this session of the scheduler."""
    tasks = node.get("Tasks")
    for task in (tasks if isinstance(tasks, Mapping) else {}).values():
        if isinstance(task, Mapping):
            yield replace(pod_of(task.get("Pod")), node=name)


async def scored(extender: Extender, args: Args) -> dict[str, Json]:
    """Return what each node is worth: the one that the policy would take the most, the others nothing."""
    place = await extender.wanted(args)
    return {"nodeScore": {name: BEST if name == place else 0.0 for name in args.names}, "errorMessage": ""}


def doors(extender: Extender) -> APIRouter:
    """Return the door /volcano/prioritize."""
    router = APIRouter(prefix="/volcano")

    @router.post("/prioritize", summary="How good is each node for a task? (PrioritizeRequest -> PrioritizeResponse)")
    async def prioritize(request: Request) -> Response:
        raw = await request.body()
        try:
            return answer_of(await scored(extender, await asyncio.to_thread(args_of, raw)))
        except UnreadableError as error:
            return answer_of({"nodeScore": None, "errorMessage": str(error)})

    return router
