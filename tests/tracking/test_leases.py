"""One writer at a time: what a lease lets through, and what becomes of one whose holder died."""

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from laid_out import LaidOut
from mlflow import MlflowClient
from tracking_records import Records

from pipeline.tracking import leases
from pipeline.tracking.leases import lease
from pipeline.tracking.publish import publish


@pytest.fixture
def client(root: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{root / 'mlflow.db'}")


def held(client: MlflowClient) -> list[str]:
    return [one.name for one in client.search_registered_models()]


def at_once(times: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(times)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def test_one_at_a_time_and_nothing_is_left(client: MlflowClient) -> None:
    inside, most = [], []

    def work() -> None:
        with lease(client, "a thing", 60):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    at_once(4, work)
    assert most == [1, 1, 1, 1]
    assert held(client) == []


def test_what_is_held_is_refused_after_the_wait_and_other_things_are_not(client: MlflowClient) -> None:
    with lease(client, "a thing", 0):
        with (
            pytest.raises(OSError, match=r"^another clone is at a thing, and was not done within 0 s$"),
            lease(client, "a thing", 0),
        ):
            pass
        with lease(client, "another", 0):
            assert len(held(client)) == 2
    assert held(client) == []


def test_it_is_let_go_when_the_body_fails(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "FAILED_S", 60.0)
    with pytest.raises(ValueError, match="fails"), lease(client, "a thing", 0):
        raise ValueError("fails")
    assert held(client) == []


def test_what_failed_waits_no_second_time_for_a_server_that_is_silent(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "FAILED_S", 0.05)
    answers, ask = threading.Event(), leases._held

    def asked(client: MlflowClient, name: str) -> object:
        answers.wait(30)
        return ask(client, name)

    def falls_silent() -> None:
        monkeypatch.setattr(leases, "_held", asked)
        raise ValueError("fails")

    with pytest.raises(ValueError, match="fails"), lease(client, "a thing", 0):
        falls_silent()
    assert held(client) == [leases.name_of("a thing")]
    answers.set()
    until = time.monotonic() + 60
    while held(client) and time.monotonic() < until:
        time.sleep(0.05)
    assert held(client) == []


def test_one_that_a_killed_process_left_is_put_aside(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    leases._take(client, leases.name_of("a thing"), "killed", "a thing", 0)  # and nobody renews it
    monkeypatch.setattr(leases, "DEAD_S", 0.5)
    with lease(client, "a thing", 60):
        assert len(held(client)) == 2  # ours, and the other one until we are done
    assert held(client) == []


def test_of_those_who_wait_one_puts_it_aside_and_the_next_holder_is_safe(client: MlflowClient) -> None:
    name = leases.name_of("a thing")
    leases._take(client, name, "killed", "a thing", 0)
    left = client.get_registered_model(name)
    aside = leases._put_aside(client, left)
    assert held(client) == [aside]
    assert leases._put_aside(client, left) == ""
    leases._take(client, name, "the next", "a thing", 0)
    assert leases._put_aside(client, left) == ""  # by one who looked long ago
    assert client.get_registered_model(name).tags == {leases.OWNER: "the next"}


def test_one_that_is_renewed_is_never_put_aside(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(step=int(leases.DEAD_S) + 1)
    monkeypatch.setattr(leases, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None))
    renewed = count()
    other = SimpleNamespace(tags={leases.OWNER: "other"}, name="lease", creation_timestamp=0)
    monkeypatch.setattr(
        leases, "_held", lambda *_: SimpleNamespace(last_updated_timestamp=next(renewed), **vars(other))
    )
    with pytest.raises(OSError, match=r"^another clone is at a thing, and was not done within 9999 s$"):
        leases._take(client, "lease", "me", "a thing", 9999)


def test_a_holder_renews(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_S", 0.05)
    with lease(client, "a thing", 0):
        begun = client.get_registered_model(leases.name_of("a thing")).last_updated_timestamp
        until = time.monotonic() + 60
        while client.get_registered_model(leases.name_of("a thing")).last_updated_timestamp == begun:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_an_answer_that_was_lost_is_no_other_holder(client: MlflowClient) -> None:
    name = leases.name_of("a thing")
    client.create_registered_model(name, tags={leases.OWNER: "me"})  # the request came, its answer did not
    assert leases._take(client, name, "me", "a thing", 0) == ""


def test_a_database_of_ones_own_needs_none(laid: LaidOut, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    laid.lock("finetune@deeprm")
    monkeypatch.setattr("pipeline.tracking.store.lease", lambda client, what, wait_s: taken.append(what))
    list(publish([], everything=False))
    assert taken == []
    assert len(Records(laid.root).runs()) == 1


def test_a_renewal_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_S", 0.01)
    tries, over = [], threading.Event()

    def update(name: str, description: str) -> None:
        tries.append(name)
        if len(tries) == 3:
            over.set()
        raise ConnectionError("no exception of MLflow's")

    leases._renew(SimpleNamespace(update_registered_model=update), "lease-x", "a run", over)  # type: ignore[arg-type]
    assert tries == ["lease-x"] * 3
