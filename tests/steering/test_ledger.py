"""What was set is known after a crash, and one controller is at work in a folder at a time."""

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.steering.ledger import SAVED_S, Ledger, lock_folder


def test_what_was_to_be_set_is_known_after_a_crash(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record_intent({7: 50}, {7: 1.0})
    ledger.record_intent({7: 60, 8: 20}, {7: 1.0, 8: 2.0})
    again = Ledger(tmp_path)
    assert [again.owns(7, factor) for factor in (60, 50, 0, 55)] == [True, True, True, False]
    assert again.owns(9, 0)
    assert not again.owns(9, 60)


def test_a_job_of_another_time_with_the_same_number_begins_anew(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record_intent({7: 50}, {7: 1.0})
    ledger.jobs[7].misses = 2
    assert ledger.jobs[7].frozen
    ledger.record_intent({7: 50}, {7: 9.0})
    assert not ledger.jobs[7].frozen


def test_a_missing_job_is_forgotten_once_slurmctld_has_saved_its_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record_intent({7: 50, 8: 20}, {7: 1.0, 8: 2.0})
    ledger.update_present({8}, now=100.0)
    ledger.update_present({8}, now=100.0 + SAVED_S)
    assert set(ledger.jobs) == {7, 8}  # a slurmctld that is killed now may come back with job 7
    ledger.update_present({8}, now=101.0 + SAVED_S)
    assert set(ledger.jobs) == {8}


def test_a_second_controller_is_refused(tmp_path: Path) -> None:
    with (
        lock_folder(tmp_path / "here"),
        pytest.raises(UserError, match=r"here: a controller \(process \d+\) is at work here; expected one at a time"),
    ):
        lock_folder(tmp_path / "here")
    lock_folder(tmp_path / "here").close()
    assert (tmp_path / "here").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", ["", "{", "[]", '{"jobs": {"x": 1}}', '{"version": 1, "jobs": {}, "more": 1}'])
def test_a_book_that_nobody_wrote_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "set.json").write_text(content)
    with pytest.raises(UserError, match=r"set.json: expected what a controller wrote, found something else"):
        Ledger(tmp_path)


def test_each_factor_that_may_be_there_is_known_until_one_is_seen(tmp_path: Path) -> None:
    """The scontrol of 60 and that of 70 timed out: the job may have any of the three."""
    ledger = Ledger(tmp_path)
    for factor in (50, 60, 70):
        ledger.record_intent({7: factor}, {7: 1.0})
    assert [Ledger(tmp_path).owns(7, factor) for factor in (50, 60, 70, 55)] == [True, True, True, False]


def test_a_lock_is_taken_on_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("/dev/full")
    with lock_folder(tmp_path), pytest.raises(UserError, match="at work here; expected one at a time"):
        lock_folder(tmp_path)
