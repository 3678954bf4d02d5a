"""Access to the service: sockets on loopback, or elsewhere with a token; time limits; and the guard of every endpoint.

The guard may refuse a request for its headers, size or speed before anything else reads it.
"""

import asyncio
import hmac
import ipaddress
import socket
from collections import Counter
from typing import NamedTuple
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.errors import UserError
from pipeline.serving.records import Metrics

AT_ONCE = 256  # connections; if all of them are being answered, others get a 503
REQUEST_S, IDLE_S = 10, 30  # from the first byte of a request, or the connection, to its last byte; between requests
LATE_S = 2  # after REQUEST_S, in which a refusal can be sent
SHORTEST_TOKEN, MOST_TOKEN = 16, 4096  # characters; all headers of a request have 16 KB
FREE = ("/v1/health",)  # needs no token: it does not mention jobs or policies
MOST_HELD = 256_000_000  # bytes of all requests that are answered at one time
# A browser sends neither JSON nor a body without a type across sites. The third is what `curl -d` states for any text.
TYPES = ("application/json", "", "application/x-www-form-urlencoded")


class Size(NamedTuple):
    """Limits of a body. The number of values bounds the memory that JSON takes when it is read."""

    bytes: int
    values: int


STATES = Size(4_000_000, 250_000)
SCHEDULERS = Size(64_000_000, 2_000_000)  # 5,000 nodes as objects
SCHEDULERS_AT = ("/kubernetes/", "/volcano/")


class _RefusedError(Exception):
    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status


class Guard:
    """Refuses requests without the token or, if there is no token, those whose Host is not a loopback address.

    A page in a browser can send requests to loopback and, under a host name of its own (DNS rebinding), read answers.
    """

    def __init__(self, app: ASGIApp, token: str | None, metrics: Metrics) -> None:
        self._app, self._token, self._metrics, self._held = app, token, metrics, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http" or scope["path"] in FREE:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            self._admit(scope["method"], Headers(scope=scope))
            if scope["method"] not in ("GET", "HEAD"):
                await self._read(scope, receive, body)
            await self._app(scope, _first(bytes(body), receive), send)
        except _RefusedError as no:
            await refusal(self._metrics, no.status, str(no))(scope, receive, send)
        finally:
            self._held -= len(body)

    def _admit(self, method: str, headers: Headers) -> None:
        name, site = headers.get("host", ""), headers.get("sec-fetch-site", "none")
        if self._token is None and not is_loopback(_called(name)):
            line = f"expected a loopback address as Host, got '{_called(name)}'; elsewhere --token-file is needed"
            raise _RefusedError(403, line)
        if self._token is not None and not hmac.compare_digest(
            headers.get("authorization", "").encode(), f"Bearer {self._token}".encode()
        ):
            raise _RefusedError(401, "expected 'Authorization: Bearer <token>' with the token of --token-file")
        follows = method == "GET" and headers.get("sec-fetch-mode") == "navigate"  # a link: its site reads nothing
        foreign = [one for one in headers.getlist("origin") if one.lower() not in (f"http://{name}", f"https://{name}")]
        if foreign or (site not in ("none", "same-origin") and not follows):
            raise _RefusedError(403, f"expected no request of another site, got one of '{(foreign or [site])[0]}'")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method not in ("GET", "HEAD") and kind not in TYPES:
            raise _RefusedError(415, f"expected Content-Type: application/json, got '{kind}'")

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> None:
        """Read a body up to its limits, whatever its headers say."""
        most = SCHEDULERS if scope["path"].startswith(SCHEDULERS_AT) else STATES
        size, values, more = int(Headers(scope=scope).get("content-length", 0)), 0, True
        try:
            async with asyncio.timeout(REQUEST_S):
                while more and size <= most.bytes and values <= most.values:
                    message = await receive()
                    part, more = message.get("body", b""), message.get("more_body", False)
                    if message["type"] == "http.disconnect":
                        raise _RefusedError(400, "the connection was cut")
                    body += part
                    self._held += len(part)
                    size, values = max(size, len(body)), values + part.count(b",")
                    if self._held > MOST_HELD:
                        raise _RefusedError(503, "too many large requests at one time")
        except TimeoutError:
            raise _RefusedError(408, f"expected the whole request within {REQUEST_S} s") from None
        if size > most.bytes:
            raise _RefusedError(413, f"expected at most {most.bytes} bytes")
        if values > most.values:
            raise _RefusedError(413, f"expected at most {most.values} values")


def refusal(metrics: Metrics, status: int, line: str) -> JSONResponse:
    """Return, and count, a one-line refusal."""
    metrics.count_refusal(status)
    headers = {503: {"Retry-After": "1"}, 408: {"Connection": "close"}}.get(status)
    return JSONResponse({"error": " ".join(line.split())[:500]}, status, headers)


def _first(raw: bytes, receive: Receive) -> Receive:
    """Return a receiver of the body that was read, and then of later messages."""
    due: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

    async def received() -> Message:
        return due.pop() if due else await receive()

    return received


def _called(host: str) -> str:
    """Return the host name in a Host header.

    >>> [_called(host) for host in ("localhost:80", "[::1]:80", "evil.example", "[", "")]
    ['localhost', '::1', 'evil.example', '', '']
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def token_for(host: str, text: str | None, where: str) -> str | None:
    """Return the token that callers must present; on loopback there may be none."""
    token = None if text is None else text.strip()
    if token is None and not is_loopback(host):
        raise UserError(f"--host {host}: beyond loopback expected --token-file, whose token callers must show")
    if token is not None and not (len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()):
        raise UserError(f"{where}: expected one line of at least {SHORTEST_TOKEN} ASCII characters")
    return token


def is_loopback(host: str) -> bool:
    """Return whether an address cannot be reached from other machines.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "node7")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=512)
        # Connections inherit this; else the body of an answer waits 40 ms for its headers to be acknowledged.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        raise UserError(f"--host {host} --port {port}: {error.strerror or error}") from error


class Connection(H11Protocol):
    """A connection that is cut when its caller takes too long, or when another caller needs the room."""

    since, begun = 0.0, True  # time of its first byte or last answer; is a request under way?

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room if needed: of connections that await no answer, the caller with the most loses its oldest."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._look()
        if len(self.connections) > AT_ONCE:
            others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
            many = Counter(one.client and one.client[0] for one in others)
            idle = [one for one in others if not one.is_answered]
            for one in sorted(idle, key=lambda one: (-many[one.client and one.client[0]], one.since))[:1]:
                one.cut()

    @property
    def is_answered(self) -> bool:
        """Whether a whole request waits for its answer."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if not self.begun:
            self.since, self.begun = self.loop.time(), True
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.since, self.begun = self.loop.time(), False
        super().on_response_complete()

    def cut(self) -> None:
        """Close the connection immediately; unsent data is lost."""
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        left = self.since + (REQUEST_S + LATE_S if self.begun else IDLE_S) - self.loop.time()
        if self in self.connections and left <= 0 and not self.is_answered:
            self.cut()
        elif self in self.connections:
            self.loop.call_later(1.0, self._look)


def server_of(app: FastAPI) -> uvicorn.Server:
    """Return the server of a service; before it ends, it answers the requests in progress."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=Connection,
        ws="none",
        limit_concurrency=AT_ONCE + 1,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)
