"""Volcano's requests are answered by its published types, which are written out here by hand."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from extending import extender_of
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes_server import Cluster, node, pod
from live_service import Service
from quick_workers import quick_workers

from pipeline.core.config import Params

__all__ = ["quick_workers"]

RESPONSE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["nodeScore", "errorMessage"],
    "properties": {
        "nodeScore": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
        "errorMessage": {"type": "string"},
    },
}


@pytest.fixture(scope="module")
def asked(params: Params) -> Iterator[Service]:
    """A cluster of two nodes that the service follows; n2 has a pod, n3 none."""
    cluster = Cluster()
    for name in ("n2", "n3"):
        cluster.put("nodes", node(name))
    cluster.put("pods", pod("part", cpu="1", gated=False, nodeName="n2"))
    with extender_of(params, cluster) as one:
        yield one


def task(told: dict[str, Any]) -> dict[str, Any]:
    """A TaskInfo, as Go writes it: of an embedded TransactionContext the fields, of a Resource its own."""
    return {
        "UID": told["metadata"]["uid"],
        "Job": "work/job-1",
        "Name": told["metadata"]["name"],
        "Namespace": "work",
        "Resreq": {"MilliCPU": 2000, "Memory": 2**30, "ScalarResources": None, "MaxTaskNum": 0},
        "NodeName": "",
        "Status": 1,
        "Priority": 1,
        "Pod": told,
    }


def info(name: str, *put: dict[str, Any]) -> dict[str, Any]:
    """A NodeInfo, with tasks that the scheduler put on it."""
    tasks = {f"work/{told['metadata']['name']}": task(told) for told in put}
    return {"Name": name, "Node": node(name), "State": {"Phase": 1, "Reason": ""}, "Tasks": tasks, "Others": None}


def request(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"task": task(pod("new", cpu="2", gated=False)), "nodes": list(nodes)}


def test_the_policys_node_has_a_hundred(asked: Service) -> None:
    status, said = asked.ask("/volcano/prioritize", request(info("n2"), info("n3")))
    jsonschema.validate(said, RESPONSE)
    assert (status, said) == (200, {"nodeScore": {"n2": 100.0, "n3": 0.0}, "errorMessage": ""})  # the fuller one


def test_what_was_put_on_a_node_in_this_session_is_held(asked: Service) -> None:
    now = pod("put", cpu="3", gated=False)
    _, said = asked.ask("/volcano/prioritize", request(info("n2", now), info("n3")))
    assert said["nodeScore"] == {"n2": 0.0, "n3": 100.0}
    _, said = asked.ask("/volcano/prioritize", request(info("n2", now), info("n3", pod("too", cpu="3", gated=False))))
    assert said["nodeScore"] == {"n2": 0.0, "n3": 0.0}


@pytest.mark.parametrize(
    "sent", [b"", b"[]", b"{}", {"task": {}, "nodes": []}, {"task": task(pod("a")), "nodes": [{}]}]
)
def test_what_volcano_never_sends_is_refused_in_one_line(asked: Service, sent: object) -> None:
    status, said = asked.ask("/volcano/prioritize", sent)
    jsonschema.validate(said, RESPONSE)
    assert status == 200
    assert said["nodeScore"] is None  # an error for Volcano, whatever the message
    assert said["errorMessage"].startswith("expected PrioritizeRequest with task and nodes: ")


NONSENSE = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["task", "nodes", "Pod", "Node", "Tasks", "metadata", "name", "spec"]), inner, max_size=4
        )
    ),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(sent=NONSENSE, at=st.sampled_from(["task", "nodes", "Tasks", ""]))
def test_anything_is_refused_or_answered(asked: Service, sent: Any, at: str) -> None:
    whole = request(info("n2"), info("n3"))
    if at == "Tasks":
        whole["nodes"][0]["Tasks"] = sent
    elif at:
        whole[at] = sent
    status, said = asked.ask("/volcano/prioritize", json.dumps(whole if at else sent).encode())
    jsonschema.validate(said, RESPONSE)
    assert status == 200
