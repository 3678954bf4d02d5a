"""Client of an API server: lists, watches and patches over HTTP, with the token of a pod."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from pipeline.core.types import Json
from pipeline.errors import UserError

CONNECT_S, ANSWER_S = 3.0, 10.0
AT_ONCE = 4  # open connections: two watches, other requests, and one to spare
WATCH_S = 60  # after which the server ends a watch, and it is restarted
MOST_TOKEN = 16_000  # characters
MOST_BYTES = 64_000_000  # of an answer, and of a line of a watch
MERGE = "application/merge-patch+json"
SECRETS = Path("/var/run/secrets/kubernetes.io/serviceaccount")  # in every pod
PROXY = "http://127.0.0.1:8001"  # that of `kubectl proxy`


class UnreachableError(Exception):
    """The server does not answer, or its answer is cut."""


class AnsweredError(Exception):
    """The server refuses a request."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(f"{status}: {line}")
        self.status = status


@dataclass(frozen=True)
class Address:
    """Address and credentials of a server."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None

    @classmethod
    def found(cls, url: str | None, token_file: Path | None = None, ca_file: Path | None = None) -> "Address":
        """Return the given address; else that of this pod's cluster, else that of `kubectl proxy`."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if url is None and host:
            host = f"[{host}]" if ":" in host else host
            return cls(f"https://{host}:{port}", token_file or SECRETS / "token", ca_file or SECRETS / "ca.crt")
        url = (url or PROXY).rstrip("/")
        if not url.startswith(("http://", "https://")):
            raise UserError(f"expected an address as {PROXY}, got '{url}'")
        return cls(url, token_file, ca_file)


class Api:
    """One server; every answer is JSON."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pool = urllib3.PoolManager(
            maxsize=AT_ONCE,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S),
            ca_certs=None if address.ca_file is None else str(address.ca_file),
        )

    def get(self, path: str, **query: str | int) -> Mapping[str, Json]:
        """Return an object, or a list of them."""
        return self._request("GET", path, fields=query)

    def post(self, path: str, body: Json) -> Mapping[str, Json]:
        """Send a body, and return the answer."""
        return self._request("POST", path, "application/json", body=json.dumps(body).encode())

    def patch(self, path: str, body: Json) -> Mapping[str, Json]:
        """Change an object, and return it."""
        return self._request("PATCH", path, MERGE, body=json.dumps(body).encode())

    def watch(self, path: str, **query: str | int) -> Iterator[Mapping[str, Json]]:
        """Yield events until the server ends the watch; a cut connection or a long silence is an UnreachableError."""
        timeout = urllib3.Timeout(connect=CONNECT_S, read=WATCH_S + ANSWER_S)
        query |= {"watch": 1, "timeoutSeconds": WATCH_S, "allowWatchBookmarks": "true"}
        with self._open("GET", path, fields=query, timeout=timeout) as answer:
            if answer.status != 200:
                raise AnsweredError(answer.status, _line(answer.read(10_000)))
            rest = b""
            while part := answer.read1(1 << 16):
                *whole, rest = (rest + part).split(b"\n")
                if len(rest) > MOST_BYTES:
                    raise UnreachableError(f"a line of more than {MOST_BYTES} bytes")
                yield from (_object(line) for line in whole if line.strip())

    def _request(self, method: str, path: str, kind: str = "", **content: Any) -> Mapping[str, Json]:
        with self._open(method, path, kind, **content) as answer:
            raw = answer.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise UnreachableError(f"an answer of more than {MOST_BYTES} bytes")
        if not 200 <= answer.status < 300:
            raise AnsweredError(answer.status, _line(raw))
        return _object(raw)

    @contextmanager
    def _open(self, method: str, path: str, kind: str = "", **more: Any) -> Iterator[urllib3.BaseHTTPResponse]:
        """Yield an unread answer; any failure of the connection is an UnreachableError."""
        headers = self._headers() | ({"Content-Type": kind} if kind else {})
        try:
            answer = self._pool.request(method, self.address.url + path, headers=headers, preload_content=False, **more)
            try:
                yield answer
            finally:
                answer.close()
        except HTTPError as error:
            raise UnreachableError(_line(str(error))) from error

    def _headers(self) -> dict[str, str]:
        if self.address.token_file is None:
            return {}
        try:  # read each time, since the token changes every hour
            with self.address.token_file.open(encoding="ascii") as stream:
                token = stream.read(MOST_TOKEN + 1).strip()
        except (OSError, UnicodeError) as error:
            raise UserError(f"{self.address.token_file}: cannot be read") from error
        if not token.isprintable() or not 0 < len(token) <= MOST_TOKEN:
            raise UserError(f"{self.address.token_file}: expected one line of at most {MOST_TOKEN} characters")
        return {"Authorization": f"Bearer {token}"}


def _object(raw: bytes) -> Mapping[str, Json]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreachableError("an answer that is no JSON") from error
    if not isinstance(found, dict):
        raise UnreachableError("an answer that is no object")
    return found


def _line(said: bytes | str) -> str:
    """Return an error as one line: the message of a Kubernetes status or of a service's `Mistake`, or the text."""
    try:
        found = json.loads(said)
        text = str(found.get("message") or found.get("error") or found) if isinstance(found, dict) else str(found)
    except (ValueError, RecursionError):
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]
