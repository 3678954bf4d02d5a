"""Copy of an API server's objects: listed once, then watched; listed again when a watch has lost its place."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.kubernetes.api import AnsweredError, Api, UnreachableError
from pipeline.kubernetes.objects import Node, Pod, get, mapping, node_of, pod_of

PAGE = 500  # objects of one answer
AGAIN_S = (0.1, 0.5, 2.0, 5.0)  # pause before the next attempt: first, second, ...
MOST_CUT = 2  # consecutive cut watches, after which the copy is no longer trusted

Kept = TypeVar("Kept", Pod, Node)


class WatchedObjects(Generic[Kept]):
    """All objects of one kind."""

    def __init__(self, api: Api, path: str, read: Callable[[Json], Kept]) -> None:
        self._api, self._path = api, path
        self._read: Callable[[Json], Kept] = read
        self._kept: dict[str, Kept] = {}
        self._lock, self.stop = threading.Lock(), threading.Event()
        self.synced = threading.Event()  # set while the copy is complete and followed
        self.said = ""  # last error

    def all(self) -> list[Kept]:
        """Return the objects in the order of their names."""
        with self._lock:
            return [self._kept[key] for key in sorted(self._kept)]

    def _store(self, obj: Json, there: bool = True) -> None:
        """Store the present version of an object; forget one that is gone or invalid."""
        about, found = mapping(get(obj, "metadata")), None
        if there:
            with suppress(ValueError):
                found = self._read(obj)
        with self._lock:
            key = f"{about.get('namespace', '')}/{about.get('name', '')}"  # nodes have no namespace
            self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found

    def follow(self) -> None:
        """Follow the objects until `stop` is set, which counts with the next event."""
        failed = 0
        while not self.stop.is_set():
            try:
                place = self._list()
                self.synced.set()
                failed = 0
                cut = 0
                while place and cut <= MOST_CUT and not self.stop.is_set():
                    place, whole = self._watch(place)
                    cut = 0 if whole else cut + 1
                    self.stop.wait(AGAIN_S[cut - 1] if cut else 0.0)
            except Exception as error:  # whatever a server sends, it is still followed
                expected = isinstance(error, UnreachableError | AnsweredError | UserError)
                self.said = str(error) if expected else f"{type(error).__name__}: {error}"
            self.synced.clear()
            self.stop.wait(AGAIN_S[min(failed, len(AGAIN_S) - 1)])
            failed += 1

    def _list(self) -> str:
        """Read all objects again; return the place from which to watch."""
        found: list[Json] = []
        query: dict[str, str | int] = {"limit": PAGE}
        while True:
            page = self._api.get(self._path, **query)
            items, about = page.get("items"), mapping(page.get("metadata"))
            found += items if isinstance(items, list) else []
            if not about.get("continue"):
                break
            query = {"limit": PAGE, "continue": str(about["continue"])}
        with self._lock:
            self._kept.clear()
        for obj in found:
            self._store(obj)
        return str(about.get("resourceVersion", ""))

    def _watch(self, place: str) -> tuple[str, bool]:
        """Follow the events after a place.

        Returns where the watch ended, or "" if all must be listed again; and whether it ended normally. For a forgotten
        place the server sends an ERROR or 410: then all is listed again.
        """
        try:
            for event in self._api.watch(self._path, resourceVersion=place):
                obj = event.get("object")
                if event.get("type") == "ERROR":
                    return "", True
                if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):
                    self._store(obj, there=event["type"] != "DELETED")
                place = str(get(get(obj, "metadata"), "resourceVersion") or "") or place
                if self.stop.is_set():
                    break
        except UnreachableError as error:  # the connection was cut: the copy is still valid
            self.said = str(error)
            return place, False
        return place, True


class View:
    """Copies of pods and nodes, kept up to date within a `with` block."""

    def __init__(self, api: Api) -> None:
        self.pods = WatchedObjects(api, "/api/v1/pods", pod_of)
        self.nodes = WatchedObjects(api, "/api/v1/nodes", node_of)

    def __enter__(self) -> "View":
        for kind in (self.pods, self.nodes):
            threading.Thread(target=kind.follow, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pods.stop.set()
        self.nodes.stop.set()

    @property
    def synced(self) -> bool:
        """Whether the lists of pods and nodes are both complete."""
        return self.pods.synced.is_set() and self.nodes.synced.is_set()

    @property
    def said(self) -> str:
        """Last error."""
        return self.pods.said or self.nodes.said
