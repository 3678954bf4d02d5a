"""Sockets and connections of the service: on loopback, elsewhere only with a token, and with time limits."""

import asyncio
import ipaddress
import socket
from collections import Counter

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipeline.errors import UserError

AT_ONCE = 256  # connections; if all of them are being answered, others get a 503
REQUEST_S, IDLE_S = 10, 30  # from the first byte of a request, or the connection, to its last byte; between requests
LATE_S = 2  # after REQUEST_S, in which a refusal can be sent
SHORTEST_TOKEN, MOST_TOKEN = 16, 4096  # characters; all headers of a request have 16 KB


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
