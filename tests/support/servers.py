"""Servers that each fail in a certain way; each is a real socket."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


@contextmanager
def refusing() -> Iterator[str]:
    """An address on which no server listens."""
    yield f"http://{HOST}:{free_port()}"


@contextmanager
def black_hole() -> Iterator[str]:
    """The queue of connections is full: connecting hangs."""
    with ExitStack() as open_sockets:
        listener = open_sockets.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        for _ in range(8):
            waiting = open_sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://{HOST}:{listener.getsockname()[1]}"


@contextmanager
def silent() -> Iterator[str]:
    """Connections are accepted, but no request is answered."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(64)
        yield f"http://{HOST}:{listener.getsockname()[1]}"


@contextmanager
def falling_silent(server: str, answers: int, pattern: str = "") -> Iterator[str]:
    """A proxy of a real server that answers a number of requests, and then no more.

    Args:
        server: host and port.
        answers: number of answered requests whose path contains the pattern; other requests are always answered.
        pattern: part of a path.
    """
    over, counted, lock = threading.Event(), [0], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                counted[0] += pattern in self.path
                hang = counted[0] > answers
            if hang:
                over.wait()
                return
            there = http.client.HTTPConnection(server)
            there.request(self.command, self.path, body, dict(self.headers))
            answer = there.getresponse()
            said = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type") or "")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            there.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((HOST, 0), Handler) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{proxy.server_port}"
        over.set()
        proxy.shutdown()
