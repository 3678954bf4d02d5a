"""A policy that is killed, hangs, refuses or is changed: there is always an answer, and it says who decided."""

import os
import signal
import threading
from pathlib import Path

from live_service import service

from pipeline.config import Params
from pipeline.serving.named import Named
from pipeline.stages.serve import heuristic

ONE = {"now": 1, "waiting": [{"id": "a", "arrived": 0, "duration": 3, "demand": {"cpu": 1}}]}


def test_a_policy_that_is_killed_is_stood_in_for_and_begun_again(params: Params) -> None:
    with service(params, lambda: heuristic("sjf")) as one:
        os.kill(one.desk.pid, signal.SIGKILL)
        one.until(lambda: not one.desk.standing.ready)
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
        hung = one.desk.pid
        os.kill(hung, signal.SIGSTOP)
        status, said = one.ask("/v1/decide", ONE)
        assert (status, said["fell_back"], said["why"]) == (200, True, "no answer within 100 ms")
        one.until(lambda: one.desk.pid != hung and one.desk.standing.ready)
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
            one.until(lambda: any(said["policy"] == policy for _, said in answers[asked:]))  # noqa: B023  # at once
        stop.set()
        for thread in threads:
            thread.join(30)
        assert {status for status, _ in answers} == {200}
        assert not any(said["fell_back"] for _, said in answers)
        assert len(answers) > 100
        assert one.ask("/v1/decide", ONE)[1]["policy"] == "sjf"
        assert "deeprm_policy_reloads_total 3.0" in one.ask("/metrics")[1]


def test_a_champion_that_cannot_be_loaded_leaves_the_one_before(params: Params, tmp_path: Path) -> None:
    now = [heuristic("sjf")]
    with service(params, lambda: now[0]) as one:
        now[0] = Named("broken", str(tmp_path), "0" * 32)
        one.until(lambda: "not a model directory" in one.desk.standing.said)
        assert one.ask("/v1/decide", ONE)[1]["policy"] == "sjf"
