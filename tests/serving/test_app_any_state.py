"""Made-up states by the hundred, over a real socket: a clear refusal or a valid answer, never a crash or silence."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import live_machines
import live_pool
import live_shares
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_service import Service, service
from quick_workers import quick_workers

from pipeline.core.config import Params
from pipeline.stages.serve import heuristic

__all__ = ["quick_workers"]


class Asked(NamedTuple):
    """A door, what it is asked, and what is an answer."""

    scenario: str
    policy: str
    door: str
    states: st.SearchStrategy[Any]
    assert_answers: Callable[[Any, Any], None]


EVERY = (
    Asked("machines", "sjf", "/v1/decide", live_machines.STATES, live_machines.assert_answers),
    Asked("online", "easy", "/v1/decide", live_pool.STATES, live_pool.assert_answers),
    Asked("shares", "drf", "/v1/shares", live_shares.STATES, live_shares.assert_answers),
)


@pytest.fixture(scope="module", params=EVERY, ids=lambda one: one.scenario)
def asked(params: Params, request: pytest.FixtureRequest) -> Iterator[tuple[Service, Asked]]:
    what: Asked = request.param
    with service(params, lambda: heuristic(what.policy), scenario=what.scenario) as one:
        yield one, what


def assert_refused_or_answered(asked: tuple[Service, Asked], state: Any) -> bool:
    """Return whether it was answered."""
    one, what = asked
    status, said = one.ask(what.door, json.dumps(state).encode())
    assert status in (200, 422)
    if status == 422:
        assert said["error"]
        assert "\n" not in said["error"]
        return False
    assert not said["fell_back"]
    what.assert_answers(state, said["decision"])
    return True


def try_many(asked: tuple[Service, Asked], most: int, same: bool) -> None:
    """Try states; some must be answered and some refused, or the tries are worth nothing.

    They are the same ones in every run where `same` says so: how many are answered is no matter of luck then.
    """
    answered = []

    @settings(max_examples=most, deadline=None, derandomize=same)
    @given(state=asked[1].states | live_machines.NOTHING_LIKE_IT)
    def each(state: Any) -> None:
        answered.append(assert_refused_or_answered(asked, state))

    each()
    assert 0.02 * most < sum(answered) < len(answered)
    assert asked[0].ask("/v1/policy")[1]["restarts"] == 0


def test_any_state_is_refused_or_answered(asked: tuple[Service, Asked]) -> None:
    try_many(asked, 300, same=True)


@pytest.mark.slow
def test_ten_thousand_states_are_refused_or_answered(asked: tuple[Service, Asked]) -> None:
    try_many(asked, 10_000, same=False)


def test_shares_have_a_door_of_their_own(params: Params) -> None:
    with service(params, lambda: heuristic("drf"), scenario="shares") as one:
        _, said = one.ask("/openapi.json")
        asked = said["paths"]["/v1/shares"]["post"]["requestBody"]["content"]["application/json"]["example"]
        status, said = one.ask("/v1/shares", asked)
        assert (status, said["policy"], len(said["decision"]["shares"])) == (200, "drf", 4)
        assert one.ask("/v1/decide", asked)[0] == 404
        again = asked | {"memory": said["decision"]["memory"], "arrived": []}
        assert one.ask("/v1/shares", again)[1]["decision"]["memory"][3]["recent_jobs"]["short"] == 0.7 * 0.3
