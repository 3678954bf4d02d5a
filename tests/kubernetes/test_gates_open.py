"""The controller as a process: it opens gates in the policy's order, and being killed does no harm."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import pytest
from builders import REPOSITORY
from kubernetes_server import Cluster, api_server, node, pod, until
from live_service import HOST, Service, service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.kubernetes import gates
from pipeline.kubernetes.api import Address, AnsweredError, Api
from pipeline.kubernetes.gates import Patience, format_of, open_gates
from pipeline.kubernetes.objects import StateFormat
from pipeline.stages.serve import heuristic

__all__ = ["quick_workers"]


@pytest.fixture(scope="module")
def sjf(params: Params) -> Iterator[Service]:
    with service(params, lambda: heuristic("sjf")) as one:
        yield one


def begun(url: str, one: Service, *more: str) -> subprocess.Popen[bytes]:
    asked = ("--service", f"http://{HOST}:{one.port}", "--api", url, "--every", "0.1", "--held", "1e9", *more)
    return subprocess.Popen([sys.executable, "-m", "pipeline", "open-gates", *asked], cwd=REPOSITORY)


def cluster_of(count: int) -> Cluster:
    """A node with room for one, and pods that each fill it, the last the shortest."""
    cluster = Cluster()
    cluster.put("nodes", node("n", cpu="1"))
    for k in range(count):
        told = pod(f"p{k}", created=k)
        told["metadata"]["annotations"] = {"deeprm/seconds": str(100 - k)}
        cluster.put("pods", told)
    return cluster


def finish(cluster: Cluster, name: str) -> None:
    cluster.bind(name, "n")
    told = cluster.objects["pods"][f"work/{name}"]
    cluster.put("pods", {**told, "status": {"phase": "Succeeded"}})


def test_a_controller_that_is_killed_is_begun_again_where_it_was(sjf: Service) -> None:
    cluster = cluster_of(4)
    with api_server(cluster) as url:
        process = begun(url, sjf)
        until(lambda: cluster.patched == ["p3"], 60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        process = begun(url, sjf)
        until(lambda: any("watch=1" in asked for asked in cluster.asked[-4:]), 60)
        time.sleep(0.5)  # the first is promised the node
        assert cluster.patched == ["p3"]
        for done in ("p3", "p2", "p1"):
            finish(cluster, done)
            until(lambda done=done: cluster.patched[-1] == f"p{int(done[1]) - 1}", 60)  # type: ignore
        process.terminate()
        process.wait(10)
        assert cluster.patched == ["p3", "p2", "p1", "p0"]


def test_all_gates_are_opened_when_it_is_to_be_left(sjf: Service) -> None:
    cluster = cluster_of(3)
    with api_server(cluster) as url:
        assert begun(url, sjf, "--all").wait(60) == 0
        assert cluster.patched == ["p0", "p1", "p2"]


def test_a_server_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "BEGIN_S", 0.3)
    nobody = Address("http://127.0.0.1:1")
    with pytest.raises(UserError, match=r"^http://127.0.0.1:1: .*refused"):
        open_gates(nobody, nobody, StateFormat(), Patience(), 1.0, False)


def test_a_resource_that_is_not_known_is_one_line() -> None:
    assert format_of("cpu,gpu", 5.0) == StateFormat(("cpu", "gpu"), 5.0)
    with pytest.raises(UserError, match="--resources: expected some of cpu, memory, gpu, got 'disk'"):
        format_of("cpu,disk", 5.0)


def test_gates_that_the_server_refuses_to_open_are_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(api: Api, path: str, body: Json) -> Mapping[str, Json]:
        if path.endswith("/p1"):
            raise AnsweredError(403, "pods is forbidden")
        return patched(api, path, body)

    patched = Api.patch
    monkeypatch.setattr(Api, "patch", refused)
    cluster = cluster_of(3)
    with api_server(cluster) as url:
        with pytest.raises(UserError, match=r": 1 gates are still closed, that of work/p1 first; try again$"):
            open_gates(Address(url), Address(url), StateFormat(), Patience(), 1.0, True)
        assert cluster.patched == ["p0", "p2"]
