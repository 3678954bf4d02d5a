"""A controller's shares are answered, and what cannot be set is none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from group_models import write_controller
from group_rows import shared

from pipeline.errors import UserError
from pipeline.interactive.groups.live import SharesState, decider
from pipeline.interactive.live.deciding import RefusedError
from pipeline.problems import problem_of
from pipeline.problems.groups.env.nouns import Setting
from pipeline.problems.groups.heuristics.names import REFERENCES, RULES

PARAMS = shared()
STATE = SharesState.model_validate(problem_of(PARAMS, "shared").live.example(PARAMS, "shared"))


@pytest.mark.parametrize("rule", sorted(set(RULES) - set(REFERENCES)))
def test_every_rule_shares_the_whole_cluster(rule: str) -> None:
    found = decider(PARAMS, "shared", rule, {})(STATE)
    for name, units in {"cpu": 8, "memory": 6}.items():
        assert sum(share.units[name] for share in found.shares) == units
    assert found.until == STATE.now + 5.0


def test_weights_are_those_that_were_tuned() -> None:
    found = decider(PARAMS, "shared", "fixed", {"fixed_0": 0.75, "fixed_1": 0.25, "fixed_order": 1.0})(STATE)
    assert [share.units["cpu"] for share in found.shares] == [6, 2]
    assert found.shares[0].order == ("long", "short")


def test_a_network_answers(tmp_path: Path) -> None:
    write_controller(PARAMS, tmp_path / "policy")
    found = decider(PARAMS, "shared", str(tmp_path / "policy"), {})(STATE)
    assert len(found.shares) == len(found.memory) == 2


@pytest.mark.parametrize("rule", REFERENCES)
def test_a_reference_is_not_served(rule: str) -> None:
    with pytest.raises(UserError, match=f"^policy '{rule}' is not served"):
        decider(PARAMS, "shared", rule, {})


def test_an_unknown_rule_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^unknown policy 'drff'"):
        decider(PARAMS, "shared", "drff", {})


@pytest.mark.parametrize(("units", "order"), [(9, 0), (-1, 0), (1, 2), (1, -1)])
def test_shares_that_there_are_not_are_no_answer(units: int, order: int) -> None:
    setting = Setting(np.full((1, 2, 2), units), np.full((1, 2), order))
    decide = replace(decider(PARAMS, "shared", "equal", {}), act=lambda groups, rows, view, draws: setting)
    with pytest.raises(RefusedError, match="shares that"):
        decide(STATE)
