"""A real service on loopback in this process; as always, its policy runs in a separate process."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import Any

from fastapi import APIRouter

from pipeline.core.config import Params
from pipeline.problems import problem_of
from pipeline.serving.app import application
from pipeline.serving.gateway import PolicyGateway
from pipeline.serving.guard import bound, server_of
from pipeline.serving.records import Metrics, ServedPolicy
from pipeline.stages.serve import heuristic

HOST = "127.0.0.1"


class Service:
    """A running service and requests to it."""

    def __init__(self, gateway: PolicyGateway, port: int) -> None:
        self.gateway, self.port = gateway, port

    @property
    def pid(self) -> int:
        """Id of the policy's process."""
        return self.gateway._worker._process.pid or 0

    def ask(self, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Send one request; a body that is not bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=30)) as connection:
            connection.request("GET" if body is None else "POST", path, None if body is None else raw, headers)
            answer = connection.getresponse()
            text = answer.read()
        return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    def until(self, found: Callable[[], object], most_s: float = 60.0) -> None:
        """Wait until a condition is true."""
        end = time.monotonic() + most_s
        while not found():
            assert time.monotonic() < end
            time.sleep(0.05)


@contextmanager
def service(
    params: Params,
    look: Callable[[], ServedPolicy],
    token: str | None = None,
    limit_s: float = 5.0,
    scenario: str = "machines",
    more: Callable[[PolicyGateway], Sequence[APIRouter]] = lambda gateway: (),
    defaults: Mapping[str, float] = MappingProxyType({}),
) -> Iterator[Service]:
    """Run a service on a free port."""
    found = Metrics()
    fallback = heuristic(problem_of(params, scenario).live.fallback)
    gateway = PolicyGateway(params, scenario, look, fallback, limit_s, found, defaults)
    gateway.wait()
    where = bound(HOST, 0)
    server = server_of(application(gateway, found, token, more(gateway)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [where]}, daemon=True)
    thread.start()
    one = Service(gateway, where.getsockname()[1])
    one.until(lambda: server.started)
    try:
        yield one
    finally:
        server.should_exit = True
        thread.join(20)
        where.close()
