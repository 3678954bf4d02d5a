"""What people see of a farm."""

import pytest

from pipeline.farming import farm
from pipeline.farming.farm import Plan

NEEDS = {"draw": frozenset[str](), "learn": frozenset({"draw"}), "judge": frozenset({"learn"})}


def at_work(**seconds: float) -> Plan:
    plan = Plan(NEEDS, NEEDS, seconds)
    assert plan.begin(0.0) == "draw"
    plan.end("draw", well=True)
    assert plan.begin(100.0) == "learn"
    return plan


def test_the_status_says_what_runs_and_how_sure_the_time_left_is() -> None:
    head = "farm: 1 of 3 done; learn 20 s; "
    assert farm.status(at_work(learn=60.0, judge=5.0), 2, 120.0) == head + "about 45 s left"
    assert farm.status(at_work(learn=60.0), 2, 120.0) == head + "at least 40 s left"
    assert farm.status(at_work(), 2, 120.0) == head + "time left unknown"


def test_a_failure_names_what_waits_for_it() -> None:
    plan = at_work()
    plan.end("learn", well=False)
    wanted = "farm: learn failed; 1 wait for it: judge; the others are kept: put it right and run again"
    assert farm.failure(plan) == wanted


def test_a_line_stands_under_its_stage(capsys: pytest.CaptureFixture[str]) -> None:
    farm.show("learn", "learn: 1 of 2, cost 3")
    farm.show("learn", "Running stage 'learn':")
    assert capsys.readouterr().err == "learn | learn: 1 of 2, cost 3\n"


def test_the_summary_counts_what_dvc_did() -> None:
    fates = {"draw": "ran", "learn": "ran", "judge": "unchanged"}
    assert farm.summary(fates.values(), 7.4, 12.0) == "farm: 2 ran, 1 unchanged; 7 s, of stages 12 s"
