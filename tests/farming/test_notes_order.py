"""The order of stages in dvc.lock."""

from pipeline.farming.notes import ordered, stages_of

LOCK = """schema: '2.0'
stages:
  quick:
    cmd: q
    outs:
    - path: q
  'odd: name':
    cmd: o
  slow:
    cmd: s
"""


def test_the_stages_of_a_lock_are_named_in_their_order() -> None:
    assert stages_of(LOCK) == ["quick", "odd: name", "slow"]
    assert stages_of("") == []


def test_stages_that_were_there_keep_their_place_and_new_ones_follow_as_they_are_made() -> None:
    put = ordered(LOCK, ["slow", "gone"], ["odd: name", "quick", "slow"])
    assert stages_of(put) == ["slow", "odd: name", "quick"]
    assert sorted(put.splitlines()) == sorted(LOCK.splitlines())
    assert put.startswith("schema: '2.0'\nstages:\n  slow:\n    cmd: s\n")


def test_a_lock_in_order_stays_as_it_is() -> None:
    assert ordered(LOCK, stages_of(LOCK), ["slow", "quick"]) == LOCK
