"""The guard around policies that were made elsewhere: what it refuses, and what it passes on."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from builders import many, observation
from group_builders import CLUSTER, observed

from pipeline.core.types import keys, uniform
from pipeline.external import guard
from pipeline.external.guard import Guard, PolicyError, located

DRAWS = np.array([0.25, 0.75])
TWO = many(observation([3, 0], fits_now=[True, False]), 2)  # a job in the first of two slots; void, 2, is illegal


def answering(answer: Any, **more: Any) -> Guard:
    return Guard("mine.py:choose", lambda view, draws: answer, **more)


def said(policy: Guard, view: Any = TWO) -> str:
    with pytest.raises(PolicyError) as caught:
        policy(view, DRAWS)
    return str(caught.value)


def test_legal_actions_of_any_whole_type_are_passed_on() -> None:
    for answer in ([0, 0], np.zeros(2, dtype=np.uint8), (0, 0)):
        actions = answering(answer)(TWO, DRAWS)
        assert (actions.tolist(), actions.dtype) == ([0, 0], np.int64)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([0.0, 0.0], r"returned \[0.0, 0.0\] of shape (2,), float64; expected actions of shape (2,), whole numbers"),
        (np.array([0, np.nan]), r"returned [ 0. nan] of shape (2,), float64; expected actions"),
        (np.array([True, True]), "of shape (2,), bool; expected actions"),
        (0, "returned 0 of shape (), int64; expected actions of shape (2,)"),
        ([[0], [0]], "of shape (2, 1), int64; expected actions of shape (2,)"),
        (None, "returned None of shape (), object; expected actions"),
        ("ab", "returned ab of shape (), <U2; expected actions"),
        ([[0], [0, 1]], "returned no array: ValueError"),
        ([0, 3], "returned 3; expected 0 to 2 (void)"),
        ([-1, 0], "returned -1; expected 0 to 2 (void)"),
        ([0, 1], "returned 1; it is illegal here"),
        ([0, 2], "returned 2; it is illegal here"),
    ],
)
def test_what_is_no_action_is_named_with_its_policy_and_call(answer: Any, why: str) -> None:
    line = said(answering(answer))
    assert line.startswith("mine.py:choose: call 1: ")
    assert why.replace("\\", "") in line
    assert "\n" not in line


def test_an_error_of_a_policy_is_one_line_with_its_type() -> None:
    def fails(view: Any, draws: Any) -> Any:
        raise KeyError("no\nidea")

    def leaves(view: Any, draws: Any) -> Any:
        raise SystemExit(3)

    assert said(Guard("m:f", fails)) == r"m:f: call 1: raised KeyError: 'no\nidea'"
    assert said(Guard("m:f", leaves)) == "m:f: call 1: raised SystemExit: 3"


def test_a_policy_cannot_change_what_it_sees() -> None:
    def changes(view: Any, draws: Any) -> Any:
        view.legal[:] = True

    assert "read-only" in said(Guard("m:f", changes))
    assert TWO.legal[0].tolist() == [[True], [False]]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([[[1], [1]]], "expected (share, order)"),
        (([[[1.0], [1.0]]], [[0, 0]]), "expected share of shape (1, 2, 1), whole numbers"),
        (([[[-1], [1]]], [[0, 0]]), "expected no share below 0"),
        (([[[1], [1]]], [[0, 2]]), "expected orders from 0 to 1"),
    ],
)
def test_what_is_no_setting_of_groups_is_refused(answer: Any, why: str) -> None:
    view = observed(CLUSTER)
    assert why in said(answering(answer, orders=2), view)
    share, order = answering(([[[3], [1]]], [[0, 1]]), orders=2)(view, DRAWS[:1])
    assert (share.tolist(), order.tolist()) == ([[[3], [1]]], [[0, 1]])


def test_a_policy_is_too_slow_by_the_mean_of_its_decisions_without_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "GRACE_S", 0.03)
    clock = iter([0.0, 9.0, 10.0, 10.02, 20.0, 20.02, 30.0, 30.01])  # each call begins and ends
    monkeypatch.setattr(guard.time, "perf_counter", lambda: next(clock))
    policy = answering([0, 0], limit_ms=8.0)
    policy(TWO, DRAWS)  # 9 s: it may load
    policy(TWO, DRAWS)  # 20 ms of 2 decisions, within the grace
    assert said(policy) == "mine.py:choose: call 3: took 10 ms a decision, the mean of 4; the limit is 8 ms"


def test_a_policy_that_hangs_is_ended_in_the_first_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HANG_S", 0.05)
    policy = Guard("m:f", lambda view, draws: time.sleep(30), limit_ms=1.0)
    begun = time.monotonic()
    assert said(policy) == "m:f: call 1: raised TimeoutError: no answer within 0 s"
    assert time.monotonic() - begun < 10
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(answering([0, 0])(TWO, DRAWS)))
    thread.start()
    thread.join()
    assert len(found) == 1


def test_a_draw_tells_its_episode_and_decision() -> None:
    key = keys(1, np.arange(40), np.zeros(40, dtype=np.int64))
    draws = uniform(key, np.full(40, 17))
    assert [located(float(draw), key) for draw in draws[[0, 39]]] == [(0, 17), (39, 17)]
    assert located(0.5, key[:1]) is None
