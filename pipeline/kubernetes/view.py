"""What an API server has, kept up to date: listed once, then watched; listed again where a watch has lost its place."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.kubernetes.api import AnsweredError, Api, UnreachableError
from pipeline.kubernetes.objects import Node, Pod, get, mapping, node_of, pod_of

PAGE = 500  # objects of one answer
AGAIN_S = (0.1, 0.5, 2.0, 5.0)  # before the server is asked again: first, second, ...
MOST_CUT = 2  # watches in a row that are cut, before what is kept is not trusted any more

Kept = TypeVar("Kept", Pod, Node)


class Watched(Generic[Kept]):
    """All objects of one kind."""

    def __init__(self, api: Api, path: str, read: Callable[[Json], Kept]) -> None:
        self._api, self._path = api, path
        self._read: Callable[[Json], Kept] = read
        self._kept: dict[str, Kept] = {}
        self._alone, self._stop = threading.Lock(), threading.Event()
        self.synced = threading.Event()  # is it known, and followed?
        self.said = ""  # what went wrong last
        self.unread = 0  # objects that are none

    def begin(self) -> None:
        """Follow in a thread."""
        threading.Thread(target=self._follow, daemon=True).start()

    def end(self) -> None:
        """Follow no more, from the next event on."""
        self._stop.set()

    def all(self) -> list[Kept]:
        """Return the objects in order of their names."""
        with self._alone:
            return [self._kept[key] for key in sorted(self._kept)]

    def put(self, told: Json) -> None:
        """Keep an object as it is told now."""
        key = key_of(told)
        try:
            found = self._read(told)
        except ValueError:
            self.unread += 1
            self.drop(told)
            return
        with self._alone:
            self._kept[key] = found

    def drop(self, told: Json) -> None:
        """Forget an object."""
        with self._alone:
            self._kept.pop(key_of(told), None)

    def _follow(self) -> None:
        failed = 0
        while not self._stop.is_set():
            try:
                place = self._list()
                self.synced.set()
                failed = 0
                cut = 0
                while place and cut <= MOST_CUT and not self._stop.is_set():
                    place, whole = self._watch(place)
                    cut = 0 if whole else cut + 1
                    self._stop.wait(AGAIN_S[cut - 1] if cut else 0.0)
            except Exception as error:  # whatever a server sends, it is followed on
                expected = isinstance(error, UnreachableError | AnsweredError | UserError)
                self.said = str(error) if expected else f"{type(error).__name__}: {error}"
            self.synced.clear()
            self._stop.wait(AGAIN_S[min(failed, len(AGAIN_S) - 1)])
            failed += 1

    def _list(self) -> str:
        """Read all anew; return the place from which to watch."""
        found: list[Json] = []
        query: dict[str, str | int] = {"limit": PAGE}
        while True:
            page = self._api.get(self._path, **query)
            items, about = page.get("items"), mapping(page.get("metadata"))
            found += items if isinstance(items, list) else []
            if not about.get("continue"):
                break
            query = {"limit": PAGE, "continue": str(about["continue"])}
        with self._alone:
            self._kept.clear()
        for told in found:
            self.put(told)
        return str(about.get("resourceVersion", ""))

    def _watch(self, place: str) -> tuple[str, bool]:
        """Follow what happens from a place on.

        Returns where it ended, or nothing where all must be listed again; and whether it ended as it should. A place
        that is forgotten is told as an ERROR or as 410: either way all is listed again.
        """
        try:
            for event in self._api.watch(self._path, resourceVersion=place):
                told = event.get("object")
                if event.get("type") == "ERROR":
                    return "", True
                if event.get("type") in ("ADDED", "MODIFIED"):
                    self.put(told)
                elif event.get("type") == "DELETED":
                    self.drop(told)
                place = str(get(get(told, "metadata"), "resourceVersion") or "") or place
                if self._stop.is_set():
                    break
        except UnreachableError as error:  # the connection was cut: what is kept still stands
            self.said = str(error)
            return place, False
        return place, True


class View:
    """Pods and nodes."""

    def __init__(self, api: Api) -> None:
        self.pods = Watched(api, "/api/v1/pods", pod_of)
        self.nodes = Watched(api, "/api/v1/nodes", node_of)

    def begin(self) -> None:
        """Follow both."""
        self.pods.begin()
        self.nodes.begin()

    def end(self) -> None:
        """Follow no more."""
        self.pods.end()
        self.nodes.end()

    @property
    def synced(self) -> bool:
        """Return whether both are known."""
        return self.pods.synced.is_set() and self.nodes.synced.is_set()

    @property
    def said(self) -> str:
        """Return what went wrong last."""
        return self.pods.said or self.nodes.said


def key_of(told: Json) -> str:
    """Return what an object is called: namespace/name, or its name alone."""
    about = mapping(get(told, "metadata"))
    return f"{about.get('namespace', '')}/{about.get('name', '')}"
