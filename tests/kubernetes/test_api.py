"""A server is asked over a real socket; what it does not do, and what is cut, is reported as one line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_server import Cluster, api_server, node, pod
from servers import refusing, silent

from pipeline.errors import UserError
from pipeline.kubernetes import api
from pipeline.kubernetes.api import Address, AnsweredError, Api, UnreachableError, _line


def test_the_address_is_that_of_the_cluster_it_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert Address.found(None) == Address("http://127.0.0.1:8001")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    secrets = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    assert Address.found(None) == Address("https://[fd00::1]:6443", secrets / "token", secrets / "ca.crt")
    with pytest.raises(UserError, match="expected an address"):
        Address.found("file:///etc/passwd")


def test_the_token_is_read_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    asked = Api(Address("http://127.0.0.1:1", tmp_path / "token"))
    assert asked._headers() == {"Authorization": "Bearer one"}
    (tmp_path / "token").write_text("two\n")
    assert asked._headers() == {"Authorization": "Bearer two"}
    (tmp_path / "token").unlink()
    with pytest.raises(UserError, match="token: cannot be read"):
        asked.get("/api/v1/pods")


def test_what_a_server_says_is_told() -> None:
    cluster = Cluster()
    cluster.put("nodes", node("n"))
    with api_server(cluster) as url:
        asked = Api(Address(url))
        assert [item["metadata"]["name"] for item in asked.get("/api/v1/nodes")["items"]] == ["n"]  # type: ignore
        with pytest.raises(AnsweredError, match=r'^404: pods "p" not found$'):
            asked.get("/api/v1/namespaces/work/pods/p")
        cluster.down = True
        with pytest.raises(UnreachableError):
            asked.get("/api/v1/nodes")


def test_a_watch_is_read_line_by_line() -> None:
    cluster = Cluster()
    with api_server(cluster) as url:
        cluster.put("pods", pod("a"))
        events = Api(Address(url)).watch("/api/v1/pods", resourceVersion=1)
        assert next(events)["type"] == "ADDED"
        cluster.put("pods", pod("b"))
        assert next(events)["object"]["metadata"]["name"] == "b"  # type: ignore
        cluster.fail()
        with pytest.raises(UnreachableError):
            next(events)


def test_nobody_there_and_nobody_answering_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "ANSWER_S", 0.2)
    with refusing() as url, pytest.raises(UnreachableError):
        Api(Address(url)).get("/api/v1/pods")
    with silent() as url, pytest.raises(UnreachableError):
        Api(Address(url)).get("/api/v1/pods")


@given(st.binary(max_size=60))
def test_whatever_a_server_says_is_one_line(said: bytes) -> None:
    found = _line(said)
    assert found.isprintable() or not found
    assert len(found) <= 300


@pytest.mark.parametrize("token", ["", "two\nlines", "\x00\x01", "x" * 20_000])
def test_a_token_is_one_line_of_some_length(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(UserError, match="token: expected one line of at most 16000 characters"):
        Api(Address("http://127.0.0.1:1", tmp_path / "token")).get("/")


def test_a_token_without_end_is_not_read_to_its_end() -> None:
    with pytest.raises(UserError, match="/dev/zero: expected one line"):
        Api(Address("http://127.0.0.1:1", Path("/dev/zero"))).get("/")
