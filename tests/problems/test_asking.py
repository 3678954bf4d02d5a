"""A policy that was made elsewhere decides for a live cluster of any problem."""

from pathlib import Path

import pytest
from elsewhere import POLICIES

from pipeline.config import Params
from pipeline.external.guard import PolicyError
from pipeline.problems.asking import live_of

FILE = "elsewhere_policies.py"


@pytest.mark.parametrize(
    ("scenario", "name", "rule"), [("online", "sjf", "sjf"), ("machines", "sjf", "sjf"), ("shares", "equal", "equal")]
)
def test_it_decides_as_the_same_rule_of_this_project_and_one_that_fails_is_named(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, name: str, rule: str
) -> None:
    (tmp_path / FILE).write_text(POLICIES)
    monkeypatch.chdir(tmp_path)
    live = live_of(params, scenario)
    state = live.state.model_validate(live.example(params, scenario))
    ours, theirs = (live.decider(params, scenario, word, {})(state) for word in (rule, f"{FILE}:{name}"))
    assert theirs.model_dump(exclude={"order"}) == ours.model_dump(exclude={"order"})
    if scenario != "shares":
        assert theirs.model_dump()["starts"]
        first = theirs.model_dump()["starts"][0]["job"]
        assert theirs.model_dump()["order"][0]["job"] == first
    with pytest.raises(PolicyError, match=rf"^{FILE}:raising: call 1: raised ValueError: no idea$"):
        live.decider(params, scenario, f"{FILE}:raising", {})(state)
