"""Leases: of several clones that share a store, one at a time looks for something and adds it.

A lock on a file holds within one clone. MLflow has nothing to lock, and its runs have no names that can be taken once;
registered models have. So a lease is a registered model without versions, which is there while somebody holds it. Its
holder renews it every few seconds; one that nobody renewed for three minutes was left by a process that died, and is
put aside by renaming it, which one process can do.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import random
from typing import TYPE_CHECKING
from uuid import uuid4

from pipeline.tracking.digests import md5_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import RegisteredModel

PREFIX = "lease-"
OWNER = "owner"  # tag
RENEW_S = 10.0
FAILED_S = 2.0  # longest wait for giving back the lease of what failed; it is put aside at last
DEAD_S = 180.0  # not renewed for so long, by the clock of whoever waits; on a busy machine seconds are nothing
SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.1, 5.0
TAKEN, GONE = "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"


@contextmanager
def lease(client: "MlflowClient", what: str, wait_s: float) -> Iterator[None]:
    """Hold the lease on something while the body runs.

    Args:
        client: of the store that is shared.
        what: the same words in every clone.
        wait_s: longest wait for others, in seconds; one that died is put aside if this is longer than `DEAD_S`.

    Raises:
        OSError: somebody else holds it.
    """
    name, owner = name_of(what), uuid4().hex
    aside = _take(client, name, owner, what, wait_s)
    over = threading.Event()
    renewing = threading.Thread(target=_renew, args=(client, name, what, over), daemon=True)
    renewing.start()

    def give_back() -> None:
        over.set()
        renewing.join()
        if (held := _held(client, name)) is not None and held.tags.get(OWNER) == owner:
            _remove(client, name)
        if aside:
            _remove(client, aside)

    try:
        yield
    except BaseException:
        _try_for(FAILED_S, give_back)  # if the server has fallen silent, somebody has waited for it once
        raise
    give_back()


def _try_for(at_most_s: float, act: Callable[[], None]) -> None:
    """Do something if it can be done soon; what it raises is of no interest beside what has failed already."""

    def quietly() -> None:
        with suppress(Exception):
            act()

    trying = threading.Thread(target=quietly, daemon=True)
    trying.start()
    trying.join(at_most_s)


def name_of(what: str) -> str:
    """Return the name of the registered model: words may hold what MLflow takes in no name."""
    return f"{PREFIX}{md5_of(what.encode())[:16]}"


def _take(client: "MlflowClient", name: str, owner: str, what: str, wait_s: float) -> str:
    """Take a lease, and return the name of the one that was put aside for it."""
    begun = renewed_at = time.monotonic()
    renewed, aside, pause = -1, "", SHORTEST_LOOK_S
    while True:
        held = _created(client, name, owner, what)
        if held is None:
            return aside
        now = time.monotonic()
        if held.last_updated_timestamp != renewed:
            renewed, renewed_at = held.last_updated_timestamp, now
        elif now - renewed_at >= DEAD_S:
            aside = _put_aside(client, held)
            continue
        if now - begun >= wait_s:
            raise OSError(f"another clone is at {what}, and was not done within {wait_s:g} s")
        time.sleep(pause * (0.5 + random()))  # many may wait, and the server has other work
        pause = min(2 * pause, LONGEST_LOOK_S)


def _created(client: "MlflowClient", name: str, owner: str, what: str) -> "RegisteredModel | None":
    """Try to take a lease, and return the one that somebody else holds."""
    while (held := _held(client, name)) is None:
        with _ignored(TAKEN, GONE):  # gone: it was there, and no more when the server looked whose
            client.create_registered_model(name, tags={OWNER: owner}, description=f"Held: {what}")
            return None
    return None if held.tags.get(OWNER) == owner else held  # ours: of a request that was sent again


def _put_aside(client: "MlflowClient", held: "RegisteredModel") -> str:
    """Rename a lease that was left; nothing where another process was first, for the new name is of when it began."""
    aside = f"{held.name}-{held.creation_timestamp}"
    with _ignored(TAKEN, GONE):
        client.rename_registered_model(held.name, aside)
        return aside
    return ""


def _renew(client: "MlflowClient", name: str, what: str, over: threading.Event) -> None:
    """Say now and then that the holder lives; a server that does not answer is noticed by what is done under it."""
    while not over.wait(RENEW_S):
        with suppress(Exception):  # whatever it is, the next time may succeed; a thread that ends loses the lease
            client.update_registered_model(name, f"Held: {what}")


def _held(client: "MlflowClient", name: str) -> "RegisteredModel | None":
    with _ignored(GONE):
        return client.get_registered_model(name)
    return None


def _remove(client: "MlflowClient", name: str) -> None:
    with _ignored(GONE):  # somebody has put it aside
        client.delete_registered_model(name)


@contextmanager
def _ignored(*codes: str) -> Iterator[None]:
    """Ignore some of MLflow's errors."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code not in codes:
            raise
