"""A scheduler's requests are answered by the published contract.

Names and types are those of k8s.io/kube-scheduler/extender/v1/types.go, written out here by hand.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from extending import extender_of
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes_server import Cluster, api_server, node, pod, until
from live_service import Service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.kubernetes.api import Address, Api
from pipeline.kubernetes.extender import Extender, args_of
from pipeline.kubernetes.view import View

__all__ = ["quick_workers"]

TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
FILTERED = {
    "type": "object",
    "additionalProperties": False,
    "required": ["Error"],
    "properties": {
        "Nodes": {"type": ["object", "null"], "required": ["items"]},
        "NodeNames": {"type": ["array", "null"], "items": {"type": "string"}},
        "FailedNodes": TEXTS,
        "FailedAndUnresolvableNodes": TEXTS,
        "Error": {"type": "string"},
    },
}
PRIORITIES = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["Host", "Score"],
        "properties": {"Host": {"type": "string"}, "Score": {"type": "integer", "minimum": 0, "maximum": 10}},
    },
}


class Known:
    """A cluster of three nodes that the service knows: n0 is full, n1 closed, n2 and n3 have room."""

    def __init__(self) -> None:
        self.cluster = cluster = Cluster()
        for name in ("n0", "n2", "n3"):
            cluster.put("nodes", node(name))
        cluster.put("nodes", node("n1", unschedulable=True))
        cluster.put("pods", pod("full", cpu="4", gated=False, nodeName="n0"))
        cluster.put("pods", pod("part", cpu="1", gated=False, nodeName="n2"))


@pytest.fixture(scope="module")
def known() -> Known:
    return Known()


@pytest.fixture(scope="module")
def extending(params: Params, known: Known) -> Iterator[Service]:
    with extender_of(params, known.cluster) as one:
        yield one


NAMES = ["n0", "n1", "n2", "n3", "n9"]


def by_name(names: list[str] = NAMES, **changes: Any) -> dict[str, Any]:
    """What a scheduler sends where nodeCacheCapable is true."""
    return {"Pod": pod("new", cpu="2", gated=False, **changes), "Nodes": None, "NodeNames": names}


def whole(*nodes: dict[str, Any]) -> dict[str, Any]:
    """What it sends where nodeCacheCapable is false."""
    about = {"metadata": {"resourceVersion": "1"}}
    return {"Pod": pod("new", cpu="2", gated=False), "Nodes": {**about, "items": list(nodes)}, "NodeNames": None}


def test_filter_by_name(extending: Service) -> None:
    status, said = extending.ask("/kubernetes/filter", by_name())
    jsonschema.validate(said, FILTERED)
    assert (status, said["Nodes"], said["NodeNames"], said["Error"]) == (200, None, ["n2", "n3"], "")
    assert said["FailedNodes"] == {
        "n0": "0 of cpu is free, 2 is wanted",
        "n1": "the node is not ready",
        "n9": "the policy does not know this node",
    }


def test_filter_by_object_gives_back_what_was_sent(extending: Service) -> None:
    sent = [node("n0"), node("n2", labels="kept"), node("n9")]
    status, said = extending.ask("/kubernetes/filter", whole(*sent))
    jsonschema.validate(said, FILTERED)
    assert (status, said["NodeNames"], said["Error"]) == (200, None, "")
    assert said["Nodes"]["items"] == sent[1:]  # n9 is new, and known by what was sent
    assert set(said["FailedNodes"]) == {"n0"}


@pytest.mark.parametrize("sent", [by_name(["n2", "n3"]), whole(node("n2"), node("n3"))])
def test_prioritize_gives_ten_to_the_policys_node(extending: Service, sent: dict[str, Any]) -> None:
    status, said = extending.ask("/kubernetes/prioritize", sent)
    jsonschema.validate(said, PRIORITIES)
    assert (status, said) == (200, [{"Host": "n2", "Score": 10}, {"Host": "n3", "Score": 0}])  # the fuller one


def test_prioritize_chooses_among_candidates_alone(extending: Service) -> None:
    assert extending.ask("/kubernetes/prioritize", by_name(["n3"]))[1] == [{"Host": "n3", "Score": 10}]


def test_a_pod_whose_gate_was_opened_for_a_node_gets_it(extending: Service) -> None:
    sent = by_name(["n2", "n3"])
    sent["Pod"]["metadata"]["annotations"] = {"deeprm/node": "n3"}
    assert extending.ask("/kubernetes/prioritize", sent)[1] == [{"Host": "n2", "Score": 0}, {"Host": "n3", "Score": 10}]


def test_no_opinion_is_nothing_for_all(extending: Service) -> None:
    assert extending.ask("/kubernetes/prioritize", by_name(["n0", "n1"]))[1] == [
        {"Host": "n0", "Score": 0},
        {"Host": "n1", "Score": 0},
    ]


def test_it_answers_within_five_seconds_for_a_thousand_nodes(extending: Service) -> None:
    sent = whole(*(node(f"m{k:04}") for k in range(990)))
    for door in ("filter", "prioritize"):
        began = time.monotonic()
        status, _ = extending.ask(f"/kubernetes/{door}", sent)
        assert (status, time.monotonic() - began < 5.0) == (200, True)


@pytest.mark.parametrize("sent", [b"", b"[]", b"{}", {"Pod": {}}, {"Pod": pod("a")}, {"Pod": pod("a"), "Nodes": {}}])
def test_what_no_scheduler_sends_is_refused_in_one_line(extending: Service, sent: object) -> None:
    status, said = extending.ask("/kubernetes/filter", sent)
    jsonschema.validate(said, FILTERED)
    assert status == 200
    assert said["Error"].startswith("expected ExtenderArgs with Pod, and Nodes or NodeNames: ")
    assert extending.ask("/kubernetes/prioritize", sent)[0] == 400


NONSENSE = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Pod", "Nodes", "NodeNames", "items", "metadata", "name", "spec", "status"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=150, deadline=None)
@given(sent=NONSENSE)
def test_anything_is_refused_or_answered(extending: Service, sent: Any) -> None:
    status, said = extending.ask("/kubernetes/filter", sent if sent is not None else b"null")
    jsonschema.validate(said, FILTERED)
    assert status == 200


async def refuses(state: bytes) -> bytes:
    raise ValueError("no state")


def test_while_nothing_is_known_of_the_cluster_all_nodes_are_kept() -> None:
    blind = Extender(View(Api(Address("http://127.0.0.1:1"))), refuses)
    args = args_of(json.dumps(by_name()).encode())
    assert blind.filtered(args)["NodeNames"] == NAMES
    assert {one["Score"] for one in asyncio.run(blind.scored(args))} == {0}


def test_a_state_that_is_refused_is_no_opinion(known: Known) -> None:
    with api_server(known.cluster) as url, View(Api(Address(url))) as view:
        until(lambda: view.synced)
        found = asyncio.run(Extender(view, refuses).scored(args_of(json.dumps(by_name(["n2"])).encode())))
        assert found == [{"Host": "n2", "Score": 0}]


def test_a_pod_that_asks_as_a_whole_does_not_fit_a_smaller_node(extending: Service) -> None:
    sent = by_name(["n2", "n3"], resources={"requests": {"cpu": "10", "memory": "4Gi"}})
    _, said = extending.ask("/kubernetes/filter", sent)
    assert said["NodeNames"] == []
    assert said["FailedNodes"]["n3"] == "4 of cpu is free, 10 is wanted"
    _, said = extending.ask("/kubernetes/filter", by_name(["n2", "n3"], resources={"requests": {"cpu": "3001m"}}))
    assert (said["NodeNames"], said["FailedNodes"]) == (["n3"], {"n2": "3 of cpu is free, 3.001 is wanted"})


@pytest.mark.parametrize("number", [b"NaN", b"1e999", b"-Infinity", b"9" * 4000])
def test_what_is_no_number_in_json_is_no_failure(extending: Service, number: bytes) -> None:
    odd = json.dumps(whole(node("n2", labels="odd"))).encode().replace(b'"odd"', number)
    status, said = extending.ask("/kubernetes/filter", odd)
    jsonschema.validate(said, FILTERED)
    assert (status, [one["metadata"]["name"] for one in said["Nodes"]["items"]]) == (200, ["n2"])


def test_a_scheduler_may_send_more_than_a_state_and_no_more_than_its_own_limit(extending: Service) -> None:
    assert extending.ask("/kubernetes/filter", b" " * 5_000_000)[0] == 200  # refused in its own words
    assert extending.ask("/kubernetes/filter", b"[" + b"0," * 2_000_001 + b"0]")[0] == 413
    assert extending.ask("/kubernetes/filter", by_name(), Origin="http://evil.example")[0] == 403


def test_a_node_whose_amounts_cannot_be_read_leaves_the_other_candidates(known: Known) -> None:
    odd = node("n4")
    odd["status"]["allocatable"]["memory"] = "lots"
    sent = {"Pod": pod("new", cpu="2", gated=False), "Nodes": {"items": [odd, node("n2")]}, "NodeNames": None}
    with api_server(known.cluster) as url, View(Api(Address(url))) as view:
        until(lambda: view.synced)
        found = Extender(view, decide=lambda raw: asyncio.sleep(0, raw)).filtered(args_of(json.dumps(sent).encode()))
    assert found["FailedNodes"] == {"n4": "the policy does not know this node"}
    assert [told["metadata"]["name"] for told in found["Nodes"]["items"]] == ["n2"]  # type: ignore[index,call-overload,union-attr]
