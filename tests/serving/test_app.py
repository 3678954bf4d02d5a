"""The doors, asked over a real socket: a valid answer, or one line that says what is wrong."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_service import Service, service

from pipeline.core.config import Params
from pipeline.problems import problem_of
from pipeline.serving.guard import STATES
from pipeline.stages.serve import heuristic

ONE = {"now": 1, "waiting": [{"id": "a", "arrived": 0, "duration": 3, "demand": {"cpu": 1}}]}


@pytest.fixture(scope="module")
def sjf(params: Params) -> Iterator[Service]:
    with service(params, lambda: heuristic("sjf")) as one:
        yield one


def test_a_state_is_decided(sjf: Service) -> None:
    status, said = sjf.ask("/v1/decide", ONE)
    assert status == 200
    assert (said["policy"], said["fell_back"], said["why"]) == ("sjf", False, "")
    assert said["digest"] == heuristic("sjf").digest
    assert said["decision"]["starts"] == [{"job": "a", "machines": ["0"]}]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", "state: top level: Invalid JSON: EOF while parsing a value at line 1 column 0, got b''"),
        (b"\xff{", "state: top level: Invalid JSON: expected value at line 1 column 1, got b'\\xff{'"),
        (b"[" * 100_000, "state: top level: Invalid JSON: "),
        ({}, "state: now: missing key (and 1 more)"),
        (ONE | {"noww": 1}, "state: noww: unknown key"),
        (ONE | {"version": 2}, "state: version: expected 1, got 2"),
        (ONE | {"now": -1}, "state: top level: waiting job 'a' arrives at 0, after now, -1"),
        (ONE | {"waiting": ONE["waiting"] * 2}, "state: top level: job 'a' is there 2 times"),  # type: ignore[operator]
        (ONE | {"now": float("nan")}, "state: "),
        (
            ONE | {"running": [{"id": "b", "started": 0, "duration": 3, "demand": {"cpu": 11}, "machines": ["0"]}]},
            "state: machine '0': running jobs hold 11 of cpu; it has 10",
        ),
    ],
)
def test_a_state_that_is_none_is_refused_in_one_line(sjf: Service, body: object, line: str) -> None:
    status, said = sjf.ask("/v1/decide", body)
    assert status == 422
    assert said["error"].startswith(line)
    assert "\n" not in said["error"]
    assert len(said["error"]) <= 500


def test_a_state_beyond_the_limit_is_not_read(sjf: Service) -> None:
    line = {"error": f"expected at most {STATES.bytes} bytes"}
    assert sjf.ask("/v1/decide", b" " * (STATES.bytes + 1)) == (413, line)


def test_what_a_job_is_called_is_text(sjf: Service) -> None:
    name = "$(touch /tmp/x); <script>alert(1)</script> '; DROP\n\u202e"
    _, said = sjf.ask("/v1/decide", {"now": 1, "waiting": [ONE["waiting"][0] | {"id": name}]})  # type: ignore[index]
    assert said["decision"]["starts"][0]["job"] == name


def test_the_service_says_who_decides(sjf: Service) -> None:
    assert sjf.ask("/v1/health") == (200, {"status": "ok", "policy_ready": True})
    status, said = sjf.ask("/v1/policy")
    assert (status, said["policy"], said["fallback"], said["said"]) == (200, "sjf", "fcfs", "")
    _, text = sjf.ask("/metrics")
    assert "deeprm_policy_ready 1.0" in text


def test_openapi_has_an_example_that_is_decided(sjf: Service, params: Params) -> None:
    _, said = sjf.ask("/openapi.json")
    asked = said["paths"]["/v1/decide"]["post"]["requestBody"]["content"]["application/json"]
    assert sjf.ask("/v1/decide", asked["example"])[0] == 200
    named = asked["schema"]["$ref"].rpartition("/")[2]
    assert set(said["components"]["schemas"][named]["properties"]) == set(
        problem_of(params, "machines").live.state.model_fields
    )
    whole = json.dumps(said)
    assert [name for name in said["components"]["schemas"] if f'"#/components/schemas/{name}"' not in whole] == []


@settings(max_examples=100)
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_refused(sjf: Service, raw: bytes) -> None:
    status, said = sjf.ask("/v1/decide", raw)
    assert status == 422
    assert said["error"]


def test_without_a_token_it_is_called_by_a_name_of_loopback(sjf: Service) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        assert sjf.ask("/v1/decide", ONE, Host=host)[0] == 403
    for host in ("localhost", "127.0.0.1:1", "[::1]:9"):
        assert sjf.ask("/v1/decide", ONE, Host=host)[0] == 200


def test_the_page_shows_who_decides_and_what_was_decided_last(sjf: Service) -> None:
    sjf.ask("/v1/decide", {"now": 1, "waiting": [ONE["waiting"][0] | {"id": "<script>alert(1)</script>"}]})  # type: ignore[index]
    status, said = sjf.ask("/")
    assert status == 200
    assert "<script" not in said
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in said
    assert "sjf" in said
