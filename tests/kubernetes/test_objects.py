"""Pods and nodes are read as far as they are looked at."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_server import BEGIN, node, pod

from pipeline.kubernetes.objects import Node, Pod, node_of, pod_of, wanted


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_a_pod_that_waits() -> None:
    told = pod("a", cpu="1500m", created=5, activeDeadlineSeconds=60)
    told["metadata"]["resourceVersion"] = "7"
    wants = {"cpu": 1.5, "memory": 1.0}
    assert pod_of(told) == Pod(
        "work", "a", "uid-a", "7", BEGIN + 5.0, None, ("deeprm/order",), "", "Pending", wants, 60.0, None, ""
    )
    assert pod_of(told).waits


def test_a_pod_with_another_gate_is_not_ours_to_let_go() -> None:
    told = pod("a", schedulingGates=[{"name": "deeprm/order"}, {"name": "quota"}])
    assert not pod_of(told).waits


@pytest.mark.parametrize(
    ("said", "seconds"), [("90", 90.0), ("-1", None), ("soon", None), ("nan", None), ("1e99", None)]
)
def test_how_long_a_pod_runs_is_a_number_or_nothing(said: str, seconds: float | None) -> None:
    told = pod("a")
    told["metadata"]["annotations"] = {"deeprm/seconds": said}
    assert pod_of(told).seconds == seconds


def test_a_pod_wants_its_containers_or_the_largest_before_them() -> None:
    # https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers: by hand, in cores
    containers = [asks("1"), asks("0.5")]
    assert wanted({"containers": containers}) == {"cpu": 1.5}
    assert wanted({"containers": containers, "initContainers": [asks("1"), asks("2")]}) == {"cpu": 2.0}
    sidecar = asks("0.25", restartPolicy="Always")
    assert wanted({"containers": containers, "initContainers": [sidecar, asks("2")]}) == {"cpu": 2.25}
    assert wanted({"containers": containers, "initContainers": [asks("1"), sidecar]}) == {"cpu": 1.75}
    assert wanted({"containers": containers, "overhead": {"cpu": "100m"}}) == {"cpu": 1.6}


def test_a_node_is_ready_or_not() -> None:
    assert node_of(node("n")) == Node("n", {"cpu": 4.0, "memory": 64.0}, ready=True)
    assert not node_of(node("n", ready=False)).ready
    assert not node_of(node("n", unschedulable=True)).ready


WORDS = (
    "metadata spec status name namespace uid creationTimestamp containers resources requests cpu schedulingGates "
    "annotations allocatable conditions overhead"
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=5),
    max_leaves=20,
)


@given(ANYTHING)
def test_any_object_is_read_or_refused(told: Any) -> None:
    for read in (pod_of, node_of):
        with suppress(ValueError):
            assert read(told).name
