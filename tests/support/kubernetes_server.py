"""An API server of pods and nodes on loopback: it lists, watches, merges patches, and fails on request.

It follows Kubernetes' docs/reference/using-api/api-concepts: lists come in pages and have a resourceVersion. A watch
continues from a version, and gets 410 if that is too old. A patch with another resourceVersion than the object's is a
conflict, 409.
"""

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
GATE = "deeprm/order"


def pod(name: str, cpu: str = "1", created: int = 0, gated: bool = True, **spec: Any) -> dict[str, Any]:
    """A pod as a user creates it, a number of seconds into the year 2026."""
    about = {"namespace": "work", "name": name, "uid": f"uid-{name}", "creationTimestamp": stamp(created)}
    gates = {"schedulingGates": [{"name": GATE}]} if gated else {}
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    return {"metadata": about, "spec": {"containers": containers, **gates, **spec}, "status": {"phase": "Pending"}}


def stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN + second))


BEGIN = 1767225600  # 2026-01-01


def node(name: str, cpu: str = "4", ready: bool = True, **spec: Any) -> dict[str, Any]:
    """A node."""
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    has = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": has, "conditions": [condition]}}


class Cluster:
    """State of the server, and the faults to produce."""

    def __init__(self) -> None:
        self.version, self.oldest = 1, 0
        self.objects: dict[str, dict[str, dict[str, Any]]] = {"pods": {}, "nodes": {}}
        self.events: list[tuple[int, str, str, dict[str, Any]]] = []
        self.changed = threading.Condition()
        self.patched: list[str] = []  # names, in order
        self.asked: list[str] = []  # method and path
        self.meddle = 0  # number of patches before which another client changes the pod
        self.cut = 0  # number of watches to cut after their first line
        self.dropped = 0  # number of patches to drop with their connection
        self.down = False
        self.connections: set[Any] = set()

    def put(self, kind: str, told: dict[str, Any]) -> None:
        """Create or change an object."""
        with self.changed:
            key = f"{told['metadata'].get('namespace', '')}/{told['metadata']['name']}"
            self.version += 1
            known = key in self.objects[kind]
            told = copy.deepcopy(told)
            told["metadata"]["resourceVersion"] = str(self.version)
            self.objects[kind][key] = told
            self.events.append((self.version, kind, "MODIFIED" if known else "ADDED", told))
            self.changed.notify_all()

    def remove(self, kind: str, key: str) -> None:
        """Delete an object."""
        with self.changed:
            self.version += 1
            told = copy.deepcopy(self.objects[kind].pop(key))
            told["metadata"]["resourceVersion"] = str(self.version)
            self.events.append((self.version, kind, "DELETED", told))
            self.changed.notify_all()

    def bind(self, name: str, to: str) -> None:
        """Put a pod on a node, as Kubernetes' scheduler does."""
        told = copy.deepcopy(self.objects["pods"][f"work/{name}"])
        told["spec"]["nodeName"], told["status"]["phase"] = to, "Running"
        self.put("pods", told)

    def forget(self) -> None:
        """Forget past events: watches must start again with a list."""
        with self.changed:
            self.events.clear()
            self.version += 5
            self.oldest = self.version
            self.changed.notify_all()

    def fail(self) -> None:
        """Stop answering, and cut all connections."""
        self.down = True
        with self.changed:
            self.changed.notify_all()

    def gated(self) -> list[str]:
        """Names of the pods that still have their gate."""
        return sorted(
            one["metadata"]["name"] for one in self.objects["pods"].values() if one["spec"].get("schedulingGates")
        )


def merged(told: Any, change: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(change, dict):
        return change
    found = dict(told) if isinstance(told, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


class Handler(BaseHTTPRequestHandler):
    """HTTP handler for a cluster."""

    cluster: Cluster
    ended: threading.Event  # set when this server ends; another may then answer for the same cluster

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, told: dict[str, Any]) -> None:
        raw = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def refuse(self, status: int, line: str) -> None:
        self.answer(status, {"kind": "Status", "code": status, "message": line})

    @property
    def silent(self) -> bool:
        return self.cluster.down or self.ended.is_set()

    def is_down(self) -> bool:
        self.cluster.asked.append(f"{self.command} {self.path}")
        if self.silent:
            self.close_connection = True
        return self.silent

    def do_GET(self) -> None:
        if self.is_down():
            return None
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        parts = url.path.removeprefix("/api/v1/").split("/")
        if len(parts) > 1:
            found = self.cluster.objects["pods"].get(f"{parts[1]}/{parts[3]}")
            return self.answer(200, found) if found else self.refuse(404, f'pods "{parts[3]}" not found')
        if query.get("watch"):
            return self.watch(parts[0], int(query["resourceVersion"]), float(query["timeoutSeconds"]))
        return self.page(parts[0], int(query.get("limit", 10**6)), query.get("continue", ""))

    def page(self, kind: str, limit: int, behind: str) -> None:
        with self.cluster.changed:
            rest = [key for key in sorted(self.cluster.objects[kind]) if key > behind]
            items = [self.cluster.objects[kind][key] for key in rest[:limit]]
            about = {"resourceVersion": str(self.cluster.version)}
            if len(rest) > limit:
                about["continue"] = rest[limit - 1]
        self.answer(200, {"kind": "List", "metadata": about, "items": items})

    def watch(self, kind: str, place: int, seconds: float) -> None:
        if place < self.cluster.oldest:
            return self.refuse(410, "too old resource version")
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end, sent = time.monotonic() + seconds, 0
        while time.monotonic() < end and not self.silent:
            with self.cluster.changed:
                due = [event for event in self.cluster.events if event[0] > place and event[1] == kind]
                if not due:
                    self.cluster.changed.wait(0.2)
                    if place < self.cluster.oldest:
                        due = [(self.cluster.oldest, kind, "ERROR", {"kind": "Status", "code": 410})]
            for version, _, what, told in due:
                place = version
                self.chunk(json.dumps({"type": what, "object": told}).encode() + b"\n")
                sent += 1
                if self.cluster.cut and sent:
                    self.cluster.cut -= 1
                    return self.drop()
        if self.silent:
            return self.drop()
        return self.chunk(b"")

    def chunk(self, raw: bytes) -> None:
        self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
        self.wfile.flush()

    def drop(self) -> None:
        self.close_connection = True

    def do_PATCH(self) -> None:
        change = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.is_down():
            return None
        if self.cluster.dropped:
            self.cluster.dropped -= 1
            return self.drop()
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        parts = self.path.removeprefix("/api/v1/").split("/")
        key = f"{parts[1]}/{parts[3]}"
        if self.cluster.meddle:
            self.cluster.meddle -= 1
            self.cluster.put("pods", merged(self.cluster.objects["pods"][key], {"metadata": {"labels": {"x": "y"}}}))
        return self.patch(key, change)

    def patch(self, key: str, change: dict[str, Any]) -> None:
        found = self.cluster.objects["pods"].get(key)
        if found is None:
            return self.refuse(404, f"pods {key} not found")
        if change["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return self.refuse(409, "the object has been modified; please apply your changes to the latest version")
        if change["metadata"]["uid"] != found["metadata"]["uid"]:
            return self.refuse(409, "Precondition failed: UID in precondition")
        self.cluster.patched.append(found["metadata"]["name"])
        self.cluster.put("pods", merged(found, change))
        return self.answer(200, self.cluster.objects["pods"][key])


@contextmanager
def api_server(cluster: Cluster) -> Iterator[str]:
    """Provide the address of a running server. The cluster outlives it unchanged, for another server."""
    ended = threading.Event()
    server = ThreadingHTTPServer((HOST, 0), type("Bound", (Handler,), {"cluster": cluster, "ended": ended}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        ended.set()
        with cluster.changed:
            cluster.changed.notify_all()
        server.shutdown()
        server.server_close()
        thread.join(5)


def until(found: Callable[[], object], most_s: float = 60.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + most_s
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)
