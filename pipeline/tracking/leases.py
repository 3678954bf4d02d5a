"""Leases: among clones that share a store, only one at a time checks whether an entry is missing and adds it.

File locks work only within one clone. MLflow has no locks, and its runs have no unique names; registered models have.
So a lease is a registered model without versions, which exists while the lease is held. Its holder renews it every few
seconds. A lease that was not renewed for three minutes belongs to a dead process: it is put aside by renaming it, which
only one process can do.
"""

import threading
import time
from collections.abc import Iterator
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
FAILED_S = 2.0  # longest wait for releasing the lease after a failure; otherwise it expires
DEAD_S = 180.0  # without renewal, by the waiting process's clock; a few seconds mean nothing on a busy machine
SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.1, 5.0
TAKEN, GONE = "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"


@contextmanager
def lease(client: "MlflowClient", what: str, wait_s: float) -> Iterator[None]:
    """Hold the lease on something while the body runs; OSError if another process holds it for too long.

    `what` must be the same in every clone. `wait_s` is the longest wait for other holders; the lease of a dead one is
    put aside if `wait_s` is longer than `DEAD_S`.
    """
    name, owner = name_of(what), uuid4().hex
    aside = _take(client, name, owner, what, wait_s)
    over = threading.Event()
    renewing = threading.Thread(target=_renew, args=(client, name, what, over), daemon=True)
    renewing.start()

    def release() -> None:
        over.set()
        renewing.join()
        if (held := _held(client, name)) is not None and held.tags.get(OWNER) == owner:
            _remove(client, name)
        if aside:
            _remove(client, aside)

    def release_quietly() -> None:
        with suppress(Exception):
            release()

    try:
        yield
    except BaseException:
        trying = threading.Thread(target=release_quietly, daemon=True)
        trying.start()
        trying.join(FAILED_S)  # a silent server was already waited for once
        raise
    release()


def name_of(what: str) -> str:
    """Return the name of the registered model, by digest: MLflow restricts names."""
    return f"{PREFIX}{md5_of(what.encode())[:16]}"


def _take(client: "MlflowClient", name: str, owner: str, what: str, wait_s: float) -> str:
    """Take a lease, and return the name of the dead one that was put aside, if any."""
    begun = renewed_at = time.monotonic()
    renewed, aside, pause = -1, "", SHORTEST_LOOK_S
    while (held := _create(client, name, owner, what)) is not None:
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
    return aside


def _create(client: "MlflowClient", name: str, owner: str, what: str) -> "RegisteredModel | None":
    """Try to take a lease; return the one that another process holds, if any."""
    while (held := _held(client, name)) is None:
        with _ignored(TAKEN, GONE):  # gone: removed before the server read its owner
            client.create_registered_model(name, tags={OWNER: owner}, description=f"Held: {what}")
            return None
    return None if held.tags.get(OWNER) == owner else held  # ours: from a request that was repeated


def _put_aside(client: "MlflowClient", held: "RegisteredModel") -> str:
    """Add a dead lease's creation time to its name and return that; "" if another process was first."""
    aside = f"{held.name}-{held.creation_timestamp}"
    with _ignored(TAKEN, GONE):
        client.rename_registered_model(held.name, aside)
        return aside
    return ""


def _renew(client: "MlflowClient", name: str, what: str, over: threading.Event) -> None:
    while not over.wait(RENEW_S):
        with suppress(Exception):  # the next attempt may succeed; if the thread ended, the lease would be lost
            client.update_registered_model(name, f"Held: {what}")


def _held(client: "MlflowClient", name: str) -> "RegisteredModel | None":
    with _ignored(GONE):
        return client.get_registered_model(name)
    return None


def _remove(client: "MlflowClient", name: str) -> None:
    with _ignored(GONE):  # it was put aside
        client.delete_registered_model(name)


@contextmanager
def _ignored(*codes: str) -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code not in codes:
            raise
