"""A cluster of pods and nodes is told as a state that policies of machines answer."""

from kubernetes_server import BEGIN, node, pod

from pipeline.core.config import Params
from pipeline.kubernetes.objects import StateFormat, node_of, pod_of, state_of
from pipeline.problems import problem_of

NODES = [node_of(node("a")), node_of(node("b"))]


def test_a_cluster_is_told_and_answered(params: Params) -> None:
    runs = pod_of({**pod("r", cpu="3", gated=False, nodeName="a"), "status": {"phase": "Running"}})
    waits = pod_of(pod("w", cpu="2", created=3))
    told = state_of(NODES, [runs], [waits], BEGIN + 10.0, StateFormat(), frozenset({"a", "b"}))
    assert told == {
        "now": BEGIN + 10.0,
        "machines": [{"name": "a", "has": {"cpu": 4, "memory": 64}}, {"name": "b", "has": {"cpu": 4, "memory": 64}}],
        "waiting": [{"id": "uid-w", "arrived": BEGIN + 3.0, "duration": 3600, "demand": {"cpu": 2, "memory": 1}}],
        "running": [
            {"id": "uid-r", "started": BEGIN, "duration": 3600, "demand": {"cpu": 3, "memory": 1}, "machines": ["a"]}
        ],
    }
    live = problem_of(params, "machines").live
    found = live.decider(params, "machines", "sjf", {})(live.state.model_validate(told)).model_dump()
    assert found["starts"] == ({"job": "uid-w", "machines": ("b",)},)


def test_a_node_that_is_not_allowed_is_held_wholly(params: Params) -> None:
    told = state_of(NODES, [], [pod_of(pod("w"))], BEGIN + 10.0, StateFormat(), frozenset({"b"}))
    live = problem_of(params, "machines").live
    found = live.decider(params, "machines", "sjf", {})(live.state.model_validate(told)).model_dump()
    assert found["starts"] == ({"job": "uid-w", "machines": ("b",)},)


def test_more_than_there_is_may_be_held_for_a_moment(params: Params) -> None:
    runs = [pod_of(pod(name, cpu="3", gated=False, nodeName="a")) for name in ("r", "s")]
    told = state_of(NODES, runs, [], BEGIN + 10.0, StateFormat(), frozenset({"a", "b"}))
    live = problem_of(params, "machines").live
    assert live.decider(params, "machines", "sjf", {})(live.state.model_validate(told))


def test_a_pod_on_a_node_that_is_gone_holds_nothing() -> None:
    runs = pod_of(pod("r", gated=False, nodeName="z"))
    assert state_of(NODES, [runs], [], BEGIN + 10.0, StateFormat(), frozenset({"a", "b"}))["running"] == []


def test_a_pod_that_asks_for_absurdly_much_and_pods_without_end_leave_the_others_in_order(params: Params) -> None:
    waits = [pod_of(pod("huge", cpu="2000000")), *(pod_of(pod(f"w{k}", cpu="1", created=k)) for k in range(2100))]
    told = state_of(NODES, [], waits, BEGIN + 5000.0, StateFormat(), frozenset({"a", "b"}))
    live = problem_of(params, "machines").live
    found = live.decider(params, "machines", "sjf", {})(live.state.model_validate(told)).model_dump()
    assert found["never"] == ("uid-huge",)
    assert [start["job"] for start in found["starts"]][:2] == ["uid-w0", "uid-w1"]
