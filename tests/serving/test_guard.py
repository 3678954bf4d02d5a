"""What is too large, too slow or of another site is refused by its first bytes, and others are answered meanwhile."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from live_service import HOST, Service, service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.problems import problem_of
from pipeline.serving import guard
from pipeline.serving.guard import STATES
from pipeline.stages.serve import heuristic

__all__ = ["quick_workers"]

ONE = {"now": 1, "waiting": [{"id": "a", "arrived": 0, "duration": 3, "demand": {"cpu": 1}}]}


@pytest.fixture(scope="module")
def sjf(params: Params) -> Iterator[Service]:
    with service(params, lambda: heuristic("sjf")) as one:
        yield one


def raw(one: Service, text: bytes, wait_s: float = 20.0) -> bytes:
    """What is answered to bytes of a request, until the connection ends or nothing comes for a while."""
    with socket.create_connection((HOST, one.port), timeout=wait_s) as connection:
        connection.sendall(text)
        return connection.recv(4096)


def many(item: bytes, size: int) -> bytes:
    return b'{"now": 1, "waiting": [' + b",".join([item] * (size // (len(item) + 1))) + b"]}"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (many(b"{}", 3_900_000), 413),
        (many(b"{}", 700_000), 422),
        (many(json.dumps(ONE["waiting"][0]).encode(), 3_900_000), 422),  # type: ignore[index]
        (many(b"[" * 100, 3_900_000), 422),
        (b"{" + b",".join(b'"key%06d":1' % k for k in range(250_000)) + b"}", 422),
        (b'{"now": 1, "waiting": [{"demand": {%s}}]}' % b",".join(b'"K%06d":-1' % k for k in range(250_000)), 422),
        (b'{"now": ' + b"9" * 3_900_000 + b"}", 422),
        (b'{"now": 1e999, "waiting": []}', 422),
        (b'{"now": "' + b"x" * 3_900_000 + b'"}', 422),
    ],
    ids=["empty", "fewer", "valid", "deep", "keys", "demand", "digits", "infinite", "text"],
)
def test_a_body_that_is_wrong_in_many_places_holds_nobody_up(sjf: Service, body: bytes, status: int) -> None:
    said: list[object] = []
    thread = threading.Thread(target=lambda: said.append(sjf.ask("/v1/decide", body)))
    began, waits = time.monotonic(), [0.0]  # a short body may be answered before this thread runs again
    thread.start()
    while thread.is_alive():
        asked = time.monotonic()
        assert sjf.ask("/v1/health")[0] == 200
        waits.append(time.monotonic() - asked)
    assert said[0][0] == status  # type: ignore[index]
    assert time.monotonic() - began < 10  # 140 s before; on a machine with nothing else to do it is below 1 s
    assert max(waits) < 5


@pytest.mark.parametrize("scenario", ["machines", "online", "shares"])
def test_a_state_is_read_to_its_first_mistake(params: Params, scenario: str) -> None:
    live = problem_of(params, scenario).live
    example = dict(live.example(params, scenario))
    lists = [name for name, value in example.items() if isinstance(value, list | tuple)]
    assert "waiting" in lists
    for name in lists:
        with pytest.raises(ValueError, match="validation error") as found:
            live.state.model_validate(example | {name: [{}] * 1000})
        assert found.value.error_count() <= 10  # type: ignore[attr-defined]  # a record's missing keys


def test_what_is_said_to_be_too_large_is_not_waited_for(sjf: Service) -> None:
    head = f"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: {STATES.bytes + 1}\r\n\r\n"
    assert b"413" in raw(sjf, head.encode())


def test_what_comes_in_chunks_is_counted(sjf: Service) -> None:
    with closing(http.client.HTTPConnection(HOST, sjf.port, timeout=30)) as connection:
        parts = [b" " * 1_000_000] * 5
        connection.request(
            "POST", "/v1/decide", iter(parts), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
        )
        assert connection.getresponse().status == 413


def test_values_are_counted(sjf: Service) -> None:
    line = {"error": f"expected at most {STATES.values} values"}
    assert sjf.ask("/v1/decide", b"[" + b"0," * (STATES.values + 1) + b"0]") == (413, line)


def test_a_body_that_does_not_come_is_given_up(sjf: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "REQUEST_S", 0.2)
    head = b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    assert b"408" in raw(sjf, head)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000", "Host": "localhost:8765"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_a_page_of_another_site_is_refused(sjf: Service, headers: dict[str, str]) -> None:
    status, said = sjf.ask("/v1/decide", ONE, **headers)
    assert (status, said["error"].partition(",")[0]) == (403, "expected no request of another site")


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "text/plain;charset=UTF-8"])
def test_what_a_form_can_send_is_refused(sjf: Service, kind: str) -> None:
    assert sjf.ask("/v1/decide", ONE, **{"Content-Type": kind})[0] == 415


def test_the_page_and_its_own_site_may_ask(sjf: Service) -> None:
    own = {"Host": "localhost:8765", "Origin": "http://localhost:8765", "Sec-Fetch-Site": "same-origin"}
    assert sjf.ask("/v1/decide", ONE, **own, **{"Content-Type": "application/json; charset=utf-8"})[0] == 200
    follows = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert sjf.ask("/", **follows)[0] == 200


def test_requests_that_come_together_are_answered_in_order(sjf: Service) -> None:
    with socket.create_connection((HOST, sjf.port), timeout=20) as connection:
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        said = b""
        while said.count(b'"policy_ready"') < 3:
            said += connection.recv(4096)
        assert said.count(b"200 OK") == 3


def test_headers_without_end_are_refused(sjf: Service) -> None:
    assert b"400" in raw(sjf, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)


def test_without_the_token_nobody_is_answered(params: Params) -> None:
    token = "a-token-of-some-length"
    with service(params, lambda: heuristic("sjf"), token) as one:
        for headers in ({}, {"Authorization": "Bearer a-token-of-some-lengt"}, {"Authorization": token}):
            for path, body in (("/v1/decide", ONE), ("/v1/policy", None), ("/metrics", None), ("/openapi.json", None)):
                assert one.ask(path, body, **headers)[0] == 401
        assert one.ask("/v1/decide", ONE, Authorization=f"Bearer {token}")[0] == 200
        assert one.ask("/v1/health")[0] == 200
