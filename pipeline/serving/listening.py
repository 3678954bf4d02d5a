"""Where the service listens: on loopback, unless told otherwise and shown a token."""

import ipaddress
import socket

import uvicorn
from fastapi import FastAPI

from pipeline.errors import UserError

AT_ONCE = 256  # requests; more are told to come again (503)
SHORTEST_TOKEN = 16  # characters


def token_for(host: str, text: str | None, where: str) -> str | None:
    """Return the token that must be shown; on loopback there may be none.

    Raises:
        UserError: there is none beyond loopback, or it is easily guessed.
    """
    token = None if text is None else text.strip()
    if token is None and not is_loopback(host):
        raise UserError(f"--host {host}: beyond loopback expected --token-file, whose token callers must show")
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UserError(f"{where}: expected one line of at least {SHORTEST_TOKEN} ASCII characters")
    return token


def is_loopback(host: str) -> bool:
    """Return whether nobody outside of this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "node7")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        UserError: the address is not this machine's, or taken.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=512)
        # Connections inherit it; else the body of an answer waits 40 ms for its headers to be acknowledged.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        raise UserError(f"--host {host} --port {port}: {error.strerror or error}") from error


def server_of(app: FastAPI) -> uvicorn.Server:
    """Return what answers for a service; when it is told to end, it answers what is under way first."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=AT_ONCE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)
