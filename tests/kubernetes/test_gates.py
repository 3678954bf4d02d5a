"""Gates are opened in the policy's order, through conflicts, cuts and silence, and no pod is held for ever."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes_server import BEGIN, GATE, Cluster, api_server, node, pod, until
from live_service import HOST, Service, service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.kubernetes.api import Address, Api, UnreachableError
from pipeline.kubernetes.gates import Ask, Gates, Patience
from pipeline.kubernetes.view import View
from pipeline.stages.serve import heuristic

__all__ = ["quick_workers"]


@pytest.fixture(scope="module")
def sjf(params: Params) -> Iterator[Service]:
    with service(params, lambda: heuristic("sjf")) as one:
        yield one


def asking(one: Service) -> Ask:
    return lambda state: Api(Address(f"http://{HOST}:{one.port}")).post("/v1/decide", state)


class Run:
    """A controller, its cluster, and what it said."""

    def __init__(self, cluster: Cluster, url: str, ask: Ask, patience: Patience) -> None:
        self.cluster, self.said, self.now = cluster, list[str](), BEGIN + 100.0
        api = Api(Address(url))
        self.view = View(api)
        self.gates = Gates(api, self.view, ask, self.said.append, patience=patience, clock=lambda: self.now)

    def shown(self) -> None:
        """Wait until the view has what the cluster has."""
        newest = {one["metadata"]["resourceVersion"] for one in self.cluster.objects["pods"].values()}
        until(lambda: self.view.synced and {one.version for one in self.view.pods.all()} == newest)


@contextmanager
def controlled(cluster: Cluster, ask: Ask, **patience: float) -> Iterator[Run]:
    with api_server(cluster) as url:
        run = Run(cluster, url, ask, Patience(**patience))
        with run.view:
            run.shown()
            yield run


def annotated(told: dict[str, Any], **notes: str) -> dict[str, Any]:
    told["metadata"]["annotations"] = {f"deeprm/{key}": value for key, value in notes.items()}
    return told


def cluster_of(*pods: dict[str, Any], nodes: int = 1) -> Cluster:
    cluster = Cluster()
    for k in range(nodes):
        cluster.put("nodes", node(f"n{k}"))
    for told in pods:
        cluster.put("pods", told)
    return cluster


def jobs() -> list[dict[str, Any]]:
    """Three pods of two cores, the shortest the last to come."""
    return [
        annotated(pod("long", cpu="2", created=0), seconds="900"),
        annotated(pod("middle", cpu="2", created=1), seconds="60"),
        annotated(pod("short", cpu="2", created=2), seconds="5"),
    ]


def test_gates_are_opened_in_the_policys_order_as_far_as_there_is_room(sjf: Service) -> None:
    with controlled(cluster_of(*jobs()), asking(sjf)) as run:
        run.gates.tick()
        assert run.cluster.patched == ["short", "middle"]
        assert run.cluster.gated() == ["long"]
        notes = run.cluster.objects["pods"]["work/short"]["metadata"]["annotations"]
        assert notes == {"deeprm/seconds": "5", "deeprm/opened": f"{run.now:.3f}", "deeprm/node": "n0"}
        run.gates.tick()  # both are promised the node, although nobody has put them there yet
        assert run.cluster.gated() == ["long"]
        for name in ("short", "middle"):
            run.cluster.bind(name, "n0")
        run.shown()
        run.gates.tick()
        assert run.cluster.gated() == ["long"]
        done = run.cluster.objects["pods"]["work/short"]
        run.cluster.put("pods", {**done, "status": {"phase": "Succeeded"}})
        run.shown()
        run.gates.tick()
        assert run.cluster.gated() == []
        assert run.said == []


def test_a_pod_that_is_put_nowhere_loses_its_place_to_others(sjf: Service) -> None:
    with controlled(cluster_of(*jobs()), asking(sjf), promise=30.0) as run:
        run.gates.tick()
        run.shown()
        run.now += 31.0
        run.gates.tick()
        assert run.cluster.gated() == []


def test_a_second_controller_remembers_what_the_first_did(sjf: Service) -> None:
    cluster = cluster_of(*jobs())
    with controlled(cluster, asking(sjf)) as run:
        run.gates.tick()
        run.shown()
        other = Gates(run.gates.api, run.view, run.gates.ask, run.said.append, clock=lambda: run.now)
        other.tick()
        assert cluster.gated() == ["long"]


@pytest.mark.parametrize("conflicts", [1, 4])
def test_a_pod_that_others_change_is_opened_all_the_same(sjf: Service, conflicts: int) -> None:
    with controlled(cluster_of(pod("a")), asking(sjf)) as run:
        run.cluster.meddle = conflicts
        run.gates.tick()
        assert (run.cluster.meddle, run.cluster.patched) == (0, ["a"])
        assert run.cluster.objects["pods"]["work/a"]["metadata"]["labels"] == {"x": "y"}


def test_a_pod_that_is_always_changed_is_left_for_the_next_time(sjf: Service) -> None:
    with controlled(cluster_of(pod("a")), asking(sjf)) as run:
        run.cluster.meddle = 5
        run.gates.tick()
        assert run.cluster.patched == []
        run.shown()
        run.gates.tick()
        assert run.cluster.patched == ["a"]


def test_a_pod_that_is_gone_or_another_is_left_alone() -> None:
    cluster = cluster_of(pod("a"), pod("b"))
    replaced = pod("b")
    replaced["metadata"]["uid"] = "another"

    def ask(state: Json) -> Mapping[str, Json]:
        cluster.remove("pods", "work/a")
        cluster.put("pods", replaced)
        return {"decision": {"starts": [{"job": f"uid-{name}", "machines": ["n0"]} for name in "ab"]}}

    with controlled(cluster, ask) as run:
        run.gates.tick()
        assert cluster.patched == []
        assert run.said == []


def test_the_rest_waits_when_the_server_goes_and_follows_in_order_when_it_is_back(sjf: Service) -> None:
    cluster = cluster_of(*jobs())
    ask = asking(sjf)

    def then_down(state: Json) -> Mapping[str, Json]:
        answer = ask(state)
        cluster.down = True
        return answer

    with controlled(cluster, then_down) as run:
        run.gates.tick()
        assert cluster.patched == []
        assert run.said[0].startswith("work/short: ")
        cluster.down, run.gates.ask = False, ask
        run.shown()
        run.gates.tick()
        assert cluster.patched == ["short", "middle"]


def test_those_behind_a_pod_that_could_not_be_let_go_wait_too(sjf: Service) -> None:
    with controlled(cluster_of(*jobs()), asking(sjf)) as run:
        run.cluster.dropped = 1
        run.gates.tick()
        assert (run.cluster.dropped, run.cluster.patched) == (0, [])
        run.gates.tick()
        assert run.cluster.patched == ["short", "middle"]


def silent(state: Json) -> Mapping[str, Json]:
    raise UnreachableError("nobody answers")


def test_a_service_that_is_gone_holds_nobody_for_long(sjf: Service) -> None:
    with controlled(cluster_of(*jobs()), silent, service=60.0) as run:
        run.gates.tick()
        run.now += 59.0
        run.gates.tick()
        assert run.cluster.patched == []
        run.now += 2.0
        run.gates.tick()
        assert run.cluster.patched == ["long", "middle", "short"]  # as they came
        assert run.said == ["no decision: nobody answers", "no decision for 60 s: opening 3 gates"]


def test_a_policy_that_never_wants_a_pod_holds_it_for_so_long_and_no_longer() -> None:
    def nothing(state: Json) -> Mapping[str, Json]:
        return {"decision": {"starts": [], "never": []}}

    with controlled(cluster_of(pod("old", created=0), pod("new", created=99)), nothing, held=99.0) as run:
        run.gates.tick()
        assert run.cluster.patched == ["old"]


def test_a_pod_that_no_node_could_hold_is_let_go_to_be_told_so(sjf: Service) -> None:
    with controlled(cluster_of(pod("huge", cpu="400")), asking(sjf)) as run:
        run.gates.tick()
        assert run.cluster.patched == ["huge"]


def test_only_our_gate_is_taken_away(sjf: Service) -> None:
    other = pod("a", schedulingGates=[{"name": "quota"}, {"name": GATE}])
    with controlled(cluster_of(other), asking(sjf)) as run:
        run.gates.tick()
        assert run.cluster.patched == []
        assert run.gates.open_all() == 1
        assert run.cluster.objects["pods"]["work/a"]["spec"]["schedulingGates"] == [{"name": "quota"}]


@pytest.mark.parametrize(
    "answer", [{}, {"decision": 3}, {"decision": {"starts": "x", "never": 1}}, {"decision": {"starts": [1]}}]
)
def test_an_answer_that_is_none_opens_nothing(answer: Mapping[str, Json]) -> None:
    with controlled(cluster_of(pod("a")), lambda state: answer) as run:
        run.gates.tick()
        assert run.cluster.patched == []


def test_a_cluster_that_is_not_known_is_left_alone(sjf: Service) -> None:
    asked: list[Json] = []
    with controlled(cluster_of(pod("a")), asking(sjf)) as run:
        run.cluster.fail()
        until(lambda: not run.view.synced)
        run.gates.ask = lambda state: asked.append(state) or {}  # type: ignore
        run.gates.tick()
        assert asked == []


def test_two_controllers_at_once_open_each_gate_once(sjf: Service) -> None:
    import threading

    many = [annotated(pod(f"p{k}", cpu="100m", created=k), seconds=str(1 + k)) for k in range(12)]
    with controlled(cluster_of(*many), asking(sjf)) as run:
        second = Gates(run.gates.api, run.view, run.gates.ask, run.said.append, clock=lambda: run.now)
        ticks: list[Callable[[], bool]] = [run.gates.tick, second.tick]
        threads = [threading.Thread(target=tick) for tick in ticks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert run.cluster.gated() == []
        assert sorted(run.cluster.patched) == sorted({*run.cluster.patched})


def test_a_gate_that_the_server_leaves_closed_is_not_taken_for_open(
    sjf: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an admission webhook may that puts it back; the server answers 200."""
    with controlled(cluster_of(pod("a")), asking(sjf)) as run:
        with monkeypatch.context() as patched:
            patched.setattr(Api, "patch", lambda api, path, body: api.get(path))
            assert run.gates.open_all() == 0
            run.gates.tick()
            assert run.said == ["work/a: the server answered, and left its gate closed"] * 2
        run.gates.tick()
        assert run.cluster.gated() == []


def test_a_change_that_the_server_lost_is_made_again(sjf: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its store was restored from an hour ago; the view shows the gate, and no newer change."""
    with controlled(cluster_of(pod("a")), asking(sjf), promise=30.0) as run:
        gated = run.view.pods.all()
        run.gates.tick()
        monkeypatch.setattr(run.view.pods, "all", lambda: gated)
        assert run.gates.gated() == []
        run.now += 31.0
        assert [one.name for one in run.gates.gated()] == ["a"]


def test_a_token_that_cannot_be_read_holds_no_pod_for_ever(sjf: Service) -> None:
    def unreadable(state: Json) -> Mapping[str, Json]:
        raise UserError("token: cannot be read")

    with controlled(cluster_of(pod("a")), unreadable, service=60.0) as run:
        run.gates.tick()
        run.now += 61.0
        run.gates.tick()
        assert run.cluster.gated() == []
