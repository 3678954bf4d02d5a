"""What is kept is what the server has, through cuts, lost places and times without an answer."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kubernetes_server import Cluster, api_server, node, pod, until

from pipeline.kubernetes import view as viewing
from pipeline.kubernetes.api import Address, Api, UnreachableError
from pipeline.kubernetes.view import View


@contextmanager
def followed(cluster: Cluster) -> Iterator[View]:
    with api_server(cluster) as url, View(Api(Address(url))) as view:
        until(lambda: view.synced)
        yield view


def names(view: View) -> list[str]:
    return [one.name for one in view.pods.all()]


def test_what_comes_changes_and_goes_is_followed() -> None:
    cluster = Cluster()
    cluster.put("pods", pod("a"))
    cluster.put("nodes", node("n"))
    with followed(cluster) as view:
        assert names(view) == ["a"]
        cluster.put("pods", pod("b"))
        until(lambda: names(view) == ["a", "b"])
        cluster.put("nodes", node("n", unschedulable=True))
        until(lambda: not view.nodes.all()[0].ready)
        cluster.remove("pods", "work/a")
        until(lambda: names(view) == ["b"])


def test_whoever_follows_and_asks_beside_it_is_not_warned(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    with api_server(cluster) as url:
        asked = Api(Address(url))
        with View(asked) as view:
            until(lambda: view.synced)
            watching = asked.watch("/api/v1/pods", resourceVersion=cluster.version)
            cluster.put("pods", pod("a"))
            next(watching)
            assert asked.get("/api/v1/pods")["items"]
    with pytest.raises(UnreachableError):
        next(watching)
    assert [one.getMessage() for one in caplog.records] == []


def test_a_list_comes_in_pages() -> None:
    cluster = Cluster()
    for k in range(viewing.PAGE + 3):
        cluster.put("pods", pod(f"p{k:04}"))
    with followed(cluster) as view:
        assert len(view.pods.all()) == viewing.PAGE + 3
    assert any("continue=" in asked for asked in cluster.asked)


def test_a_watch_that_is_cut_goes_on_where_it_was() -> None:
    cluster = Cluster()
    with followed(cluster) as view:
        lists = sum("limit=" in asked for asked in cluster.asked)
        cluster.cut = 2
        for name in ("a", "b", "c", "d"):
            cluster.put("pods", pod(name))
        until(lambda: names(view) == ["a", "b", "c", "d"])
        assert cluster.cut == 0
        assert sum("limit=" in asked for asked in cluster.asked) == lists


def test_a_place_that_is_forgotten_is_listed_again() -> None:
    cluster = Cluster()
    cluster.put("pods", pod("a"))
    with followed(cluster) as view:
        with cluster.changed:  # it goes while nobody may be told
            del cluster.objects["pods"]["work/a"]
        cluster.forget()
        until(lambda: names(view) == [])
        cluster.put("pods", pod("b"))
        until(lambda: names(view) == ["b"])
        cluster.cut, cluster.oldest = 1, cluster.version + 1  # the next watch is answered 410
        cluster.put("pods", pod("c"))
        cluster.put("pods", pod("d"))
        until(lambda: names(view) == ["b", "c", "d"])


def test_a_server_that_is_gone_is_noticed_and_found_again() -> None:
    cluster = Cluster()
    cluster.put("pods", pod("a"))
    with followed(cluster) as view:
        cluster.fail()
        until(lambda: not view.synced)
        assert view.said
        cluster.put("pods", pod("b"))
        cluster.down = False
        until(lambda: view.synced and names(view) == ["a", "b"])


def test_what_is_no_pod_is_left_out() -> None:
    cluster = Cluster()
    cluster.put("pods", pod("a"))
    cluster.put("pods", pod("b", cpu="much"))
    with followed(cluster) as view:
        assert names(view) == ["a"]


def test_an_error_that_is_not_foreseen_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, tries = Cluster(), []
    get = Api.get

    def fails(api: Api, path: str, **query: str | int) -> object:
        tries.append(path)
        if len(tries) < 4:
            raise RuntimeError("not foreseen")
        return get(api, path, **query)

    monkeypatch.setattr(Api, "get", fails)
    cluster.put("pods", pod("a"))
    with followed(cluster) as view:
        assert names(view) == ["a"]
        assert "RuntimeError: not foreseen" in view.said
