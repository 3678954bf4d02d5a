"""Beyond loopback there is a token; and who sends nothing keeps no place."""

import socket
import time
from contextlib import ExitStack

import pytest
from live_service import HOST, Service, service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.serving import guard
from pipeline.serving.guard import bound, token_for
from pipeline.stages.serve import heuristic

__all__ = ["quick_workers"]


def test_on_loopback_there_may_be_no_token() -> None:
    assert token_for("127.0.0.1", None, "t") is None
    assert token_for("localhost", "a-token-of-some-length\n", "t") == "a-token-of-some-length"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "head.node"])
def test_beyond_loopback_there_is_one(host: str) -> None:
    with pytest.raises(UserError, match="beyond loopback expected --token-file"):
        token_for(host, None, "t")
    assert token_for(host, "a-token-of-some-length", "t") == "a-token-of-some-length"


@pytest.mark.parametrize("token", ["", "short", "two lines of\nsome length", "ünguessable-and-long"])
def test_a_token_is_not_easily_guessed(token: str) -> None:
    with pytest.raises(UserError, match="t: expected one line of at least 16 ASCII characters"):
        token_for("127.0.0.1", token, "t")


def test_a_port_that_is_taken_is_one_line() -> None:
    with bound("127.0.0.1", 0) as taken, pytest.raises(UserError, match="--port "):
        bound("127.0.0.1", taken.getsockname()[1])


def answered(one: Service) -> int:
    return int(one.ask("/v1/health")[0])


def test_connections_that_ask_nothing_leave_room_for_others(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "AT_ONCE", 8)
    parts = (b"", b"GET / HT", b"POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    with service(params, lambda: heuristic("sjf")) as one, ExitStack() as open_ones:
        for k in range(40):
            idle = open_ones.enter_context(socket.create_connection((HOST, one.port)))
            idle.sendall(parts[k % 3])
            assert answered(one) == 200


def test_a_request_that_comes_slowly_is_cut(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "REQUEST_S", 0.2)
    monkeypatch.setattr(guard, "LATE_S", 0.2)
    with service(params, lambda: heuristic("sjf")) as one:
        for part in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
            with socket.create_connection((HOST, one.port), timeout=20) as slow:
                slow.sendall(part)
                began, cut = time.monotonic(), False
                while not cut and time.monotonic() - began < 15:  # a byte now and then does not keep it
                    try:
                        slow.sendall(part and b"a")
                        time.sleep(0.1)
                        slow.settimeout(0.05)
                        cut = slow.recv(1) == b""
                    except TimeoutError:
                        continue
                    except OSError:
                        cut = True
                assert cut
        assert answered(one) == 200
