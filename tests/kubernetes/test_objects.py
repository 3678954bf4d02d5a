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


POD_LEVEL = {"requests": {"cpu": "10", "memory": "4Gi"}}


@pytest.mark.parametrize(
    ("spec", "status", "wants"),
    [
        # By hand from resourcehelper.PodRequests and the API server's defaults.
        ({"resources": POD_LEVEL, "containers": [{"name": "c"}]}, {}, {"cpu": 10.0, "memory": 4.0}),
        ({"resources": {"requests": {"cpu": "7"}}, "containers": [asks("1"), asks("2")]}, {}, {"cpu": 7.0}),
        # Memory is not asked for by the pod: what its containers ask together counts, 1 + 2 GiB.
        (
            {
                "resources": {"requests": {"cpu": "7"}},
                "containers": [{"resources": {"requests": {"memory": f"{k}Gi"}}} for k in (1, 2)],
            },
            {},
            {"cpu": 7.0, "memory": 3.0},
        ),
        # A pod's limits count where neither it nor a container requests anything.
        ({"resources": {"limits": {"cpu": "8"}}, "containers": [{}]}, {}, {"cpu": 8.0}),
        ({"resources": {"limits": {"cpu": "8"}}, "containers": [asks("1")]}, {}, {"cpu": 1.0}),
        # An init container and a sidecar are part of a pod's own amount; its overhead is not.
        (
            {
                "resources": {"requests": {"cpu": "3"}},
                "initContainers": [asks("2"), asks("1", restartPolicy="Always")],
                "containers": [asks("0.5")],
                "overhead": {"cpu": "250m"},
            },
            {},
            {"cpu": 3.25},
        ),
        # Accelerators are no resource of a whole pod: the container's 2 count, the pod's 5 do not.
        (
            {
                "resources": {"requests": {"nvidia.com/gpu": "5"}},
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}],
            },
            {},
            {"gpu": 2.0},
        ),
        ({"containers": [{"resources": {"limits": {"cpu": "2", "amd.com/gpu": 1}}}]}, {}, {"cpu": 2.0, "gpu": 1.0}),
        (
            {"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}}]},
            {},
            {"cpu": 0.5},
        ),
        ({"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.5gb": 3}}}]}, {}, {"gpu": 3.0}),
        ({"containers": [asks("1")], "ephemeralContainers": [asks("9")]}, {}, {"cpu": 1.0}),
        # Resized from 4 to 1: 4 are held until the node has taken them back.
        (
            {"containers": [asks("1", name="c")]},
            {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "4"}}]},
            {"cpu": 4.0},
        ),
        # To 9, which is under way; and to 9, which the node can never give.
        (
            {"containers": [asks("9", name="c")]},
            {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
            {"cpu": 9.0},
        ),
        (
            {"containers": [asks("9", name="c")]},
            {
                "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
            },
            {"cpu": 2.0},
        ),
        (
            {"initContainers": [asks("1", name="s", restartPolicy="Always")], "containers": [asks("1", name="c")]},
            {"initContainerStatuses": [{"name": "s", "allocatedResources": {"cpu": "3"}}]},
            {"cpu": 4.0},
        ),
    ],
)
def test_a_pod_wants_what_the_scheduler_counts(
    spec: dict[str, Any], status: dict[str, Any], wants: dict[str, float]
) -> None:
    assert wanted(spec, status) == wants


def test_a_pod_that_is_being_deleted_holds_its_node_and_waits_no_more() -> None:
    told = pod("a")
    told["metadata"]["deletionTimestamp"] = told["metadata"]["creationTimestamp"]
    assert not pod_of(told).waits
    told["spec"]["nodeName"] = "n"
    assert pod_of(told).holds


def test_a_node_without_allocatable_has_its_capacity() -> None:
    told = node("n")
    told["status"]["capacity"] = told["status"].pop("allocatable") | {"amd.com/gpu": "8"}
    assert node_of(told).has == {"cpu": 4.0, "memory": 64.0, "gpu": 8.0}
