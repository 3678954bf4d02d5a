"""The guard of every endpoint: it may refuse a request for its headers, size or speed before anything else reads it."""

import asyncio
import hmac
from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.serving.listening import REQUEST_S, is_loopback
from pipeline.serving.records import Metrics

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
    """Return, and count, a refusal in one line."""
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
