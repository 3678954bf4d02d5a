"""A policy that is killed, hangs, refuses or is changed: there is always an answer, and it says who decided."""

import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from live_service import service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.serving.gateway import PolicyGateway
from pipeline.serving.records import Metrics, ServedPolicy
from pipeline.serving.worker import Worker
from pipeline.stages.serve import by_name, heuristic

__all__ = ["quick_workers"]

ONE = {"now": 1, "waiting": [{"id": "a", "arrived": 0, "duration": 3, "demand": {"cpu": 1}}]}


@pytest.fixture(autouse=True)
def watchful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for another champion five times a second."""
    monkeypatch.setattr("pipeline.serving.gateway.CHAMPION_S", 0.2)


HOLDS = """
import numpy as np

from pipeline.core.types import legal_actions
from pipeline.simulation.rollout import choose, sjf


def decide(view, draws):
    holds = (view.load > 100) & np.isfinite(view.to_end) & (view.to_end > 10) & legal_actions(view)[:, -1]
    return choose(np.where(holds[:, None], -np.inf, sjf(view)), view)
"""


def test_states_that_lack_load_and_end_of_arrivals_have_those_of_the_command_line(
    params: Params, tmp_path: Path
) -> None:
    (tmp_path / "holds.py").write_text(HOLDS)
    policy = f"{tmp_path / 'holds.py'}:decide"
    state = ONE | {"waiting": [{"id": "a", "arrived": 0, "duration": 3, "demand": {"cpu": 1, "memory": 1}}]}
    defaults = {"load": 130.0, "arrivals_end": 50}
    with service(params, lambda: by_name(policy, "online"), scenario="online", defaults=defaults) as one:
        for own, begun in (({}, 0), ({"load": 90}, 1), ({"arrivals_end": 5}, 1), ({"load": None}, 1)):
            status, said = one.ask("/v1/decide", state | own)
            assert (status, said["fell_back"], said["why"]) == (200, False, "")
            assert len(said["decision"]["starts"]) == begun, own
        assert one.ask("/v1/decide", [1])[0] == 422
        status, said = one.ask("/v1/decide", state | {"now": 60, "last_arrival": 60})
        assert (status, said["error"]) == (422, "state: top level: arrivals_end is 50, but a job arrived at 60")


def test_a_default_that_states_of_a_scenario_do_not_have_is_refused(params: Params) -> None:
    with pytest.raises(UserError, match=r"^--load: states of scenario 'machines' have no load$"):
        PolicyGateway(params, "machines", lambda: heuristic("sjf"), heuristic("fcfs"), 1.0, Metrics(), {"load": 70.0})


def test_a_policy_that_is_killed_is_stood_in_for_and_begun_again(params: Params) -> None:
    with service(params, lambda: heuristic("sjf")) as one:
        os.kill(one.pid, signal.SIGKILL)
        one.until(lambda: not one.gateway.active.ready)
        status, said = one.ask("/v1/decide", ONE)
        assert (status, said["policy"], said["fell_back"]) == (200, "fcfs", True)
        assert said["digest"] == heuristic("fcfs").digest
        assert said["why"]
        assert said["decision"]["starts"]
        one.until(lambda: one.ask("/v1/decide", ONE)[1]["policy"] == "sjf")
        assert one.ask("/v1/policy")[1]["restarts"] == 1
        assert 'deeprm_decisions_total{by="fallback"}' in one.ask("/metrics")[1]


def test_a_policy_that_hangs_is_stood_in_for_in_time_and_ended(params: Params) -> None:
    with service(params, lambda: heuristic("sjf"), limit_s=0.1) as one:
        hung = one.pid
        os.kill(hung, signal.SIGSTOP)
        status, said = one.ask("/v1/decide", ONE)
        assert (status, said["fell_back"], said["why"]) == (200, True, "no answer within 100 ms")
        one.until(lambda: one.pid != hung and one.gateway.active.ready)
        assert one.ask("/v1/decide", ONE)[1]["policy"] == "sjf"


def test_another_champion_takes_over_and_no_request_is_lost(params: Params) -> None:
    now, answers, stop = [heuristic("sjf")], [], threading.Event()
    with service(params, lambda: now[0]) as one:

        def keep_asking() -> None:
            while not stop.is_set():
                answers.append(one.ask("/v1/decide", ONE))

        threads = [threading.Thread(target=keep_asking) for _ in range(2)]
        for thread in threads:
            thread.start()
        for policy in ("saf", "fcfs", "sjf"):
            now[0] = heuristic(policy)
            asked = len(answers)
            one.until(lambda: sum(said["policy"] == policy for _, said in answers[asked:]) > 30)  # noqa: B023  # at once
        stop.set()
        for thread in threads:
            thread.join(30)
        assert {status for status, _ in answers} == {200}
        assert not any(said["fell_back"] for _, said in answers)
        assert one.ask("/v1/decide", ONE)[1]["policy"] == "sjf"
        assert "deeprm_policy_reloads_total 3.0" in one.ask("/metrics")[1]


def test_a_champion_that_cannot_be_loaded_leaves_the_one_before(params: Params, tmp_path: Path) -> None:
    now = [heuristic("sjf")]
    with service(params, lambda: now[0]) as one:
        now[0] = ServedPolicy("broken", str(tmp_path), "0" * 32)
        one.until(lambda: "not a model directory" in one.gateway.active.said)
        assert one.ask("/v1/decide", ONE)[1]["policy"] == "sjf"


def test_looks_that_fail_end_neither_watch_nor_restarts(params: Params) -> None:
    broken: list[Exception | None] = [None]
    now = [heuristic("sjf")]

    def look() -> ServedPolicy:
        if broken[0] is not None:
            raise broken[0]
        return now[0]

    with service(params, look) as one:
        for error in (OSError(5, "Input/output error"), ValueError("digest"), KeyError("machines")):
            broken[0] = error
            one.until(lambda: type(error).__name__ in one.gateway.active.said)  # noqa: B023  # at once
        assert "deeprm_watch_errors_total 0.0" not in one.ask("/metrics")[1]
        os.kill(one.pid, signal.SIGKILL)
        one.until(lambda: one.gateway.restarts == 1 and one.gateway.active.ready)
        broken[0], now[0] = None, heuristic("saf")
        one.until(lambda: one.ask("/v1/policy")[1]["policy"] == "saf")
        one.until(lambda: one.ask("/v1/policy")[1]["said"] == "")


def test_a_process_that_cannot_be_begun_is_begun_later(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.serving.gateway.AGAIN_S", (0.0, 0.1, 0.2, 30.0))
    with service(params, lambda: heuristic("sjf")) as one:
        failed = []

        def fails(params: Params, scenario: str, named: ServedPolicy) -> Worker:
            if len(failed) < 2:
                failed.append(named)
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return Worker(params, scenario, named)

        monkeypatch.setattr("pipeline.serving.gateway.Worker", fails)
        os.kill(one.pid, signal.SIGKILL)
        one.until(lambda: one.gateway.restarts == 1 and one.gateway.active.ready)
        assert len(failed) == 2


def test_a_dead_process_is_never_called_ready(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.serving.gateway.LOOK_S", 3600.0)  # nothing looks after it
    with service(params, lambda: heuristic("sjf")) as one:
        os.kill(one.pid, signal.SIGKILL)
        one.until(lambda: one.ask("/v1/health")[1] == {"status": "falling back", "policy_ready": False}, 10)
        assert "deeprm_policy_ready 0.0" in one.ask("/metrics")[1]


def test_a_champion_that_is_not_looked_for_is_not_followed(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.serving.app.LATE_S", 1.0)
    hangs = threading.Event()

    def look() -> ServedPolicy:
        if one_is_up.is_set():
            hangs.wait(60)
        return heuristic("sjf")

    one_is_up = threading.Event()
    with service(params, look) as one:
        one_is_up.set()
        one.until(lambda: one.ask("/v1/health")[1] == {"status": "not following", "policy_ready": True})
        assert one.ask("/v1/policy")[1]["looked_s"] >= 1.0
        hung = one.pid
        os.kill(hung, signal.SIGKILL)  # a look that hangs does not keep it from being begun again
        one.until(lambda: one.pid != hung and one.gateway.active.ready)
        hangs.set()
        one.until(lambda: one.ask("/v1/health")[1]["status"] == "ok")


def test_many_clients_are_answered_within_the_limit_or_sent_away(params: Params) -> None:
    """The fallback waits in no longer a line than the limit allows; what is beyond is refused at once."""
    with service(params, lambda: heuristic("sjf"), limit_s=0.2) as one:

        def slowly(state: object) -> object:
            time.sleep(0.05)
            return fallback(state)

        fallback, one.gateway._fallback = one.gateway._fallback, slowly  # type: ignore[assignment]
        os.kill(one.pid, signal.SIGSTOP)
        one.gateway._worker.ready.clear()  # the fallback decides for all
        one.ask("/v1/decide", ONE)
        with ThreadPoolExecutor(40) as callers:
            found = list(callers.map(lambda _: one.ask("/v1/decide", ONE), range(40)))
        assert {status for status, _ in found} == {200, 503}
        assert all("ask again later" in said["error"] for status, said in found if status == 503)


def test_no_more_states_are_taken_than_the_limit_allows(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """States that wait long for their turn lower how many are answered at one time; quick ones raise it."""
    with service(params, lambda: heuristic("sjf"), limit_s=0.5) as one:
        ask = one.gateway._worker.ask

        def behind_others(raw: bytes, limit_s: float) -> "Future[tuple[bytes, bytes]]":
            time.sleep(0.02)  # the event loop is busy with others
            return ask(raw, limit_s)

        def many() -> list[tuple[int, Any]]:
            with ThreadPoolExecutor(60) as callers:
                return list(callers.map(lambda _: one.ask("/v1/decide", ONE), range(60)))

        monkeypatch.setattr(one.gateway._worker, "ask", behind_others)
        for _ in range(3):
            many()
        sent_away = [said["error"] for status, said in many() if status == 503]
        assert any("answered already; ask again later" in line for line in sent_away)
        lowest = one.gateway._most
        assert 1 <= lowest < 40
        monkeypatch.setattr(one.gateway._worker, "ask", ask)
        assert all(one.ask("/v1/decide", ONE)[1]["policy"] == "sjf" for _ in range(20))
        assert one.gateway._most == pytest.approx(lowest + 2)
