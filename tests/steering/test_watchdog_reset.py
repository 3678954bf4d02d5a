"""What was set is taken back, what others set is not, and what a killed slurmctld brings back is found again."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.steering.ledger import Ledger
from pipeline.steering.rows import OddError
from pipeline.steering.slurm import AwayError, Slurm
from pipeline.steering.watchdog import reset, retry_undo, undo_all


class Remembered(Slurm):
    """A Slurm cluster that has nothing but factors."""

    def __init__(self, factors: Mapping[int, int]) -> None:
        super().__init__({})
        self.now, self.hidden, self.away, self.told = dict(factors), set[int](), 0, list[dict[int, int]]()

    def factors(self) -> dict[int, int]:
        if self.away:
            self.away -= 1
            raise AwayError("sprio: unable to contact slurm controller")
        return {number: factor for number, factor in self.now.items() if number not in self.hidden}

    def set(self, factors: Mapping[int, int]) -> str:
        self.told.append(dict(factors))
        self.now |= factors
        return ""


def book_of(folder: Path, factors: Mapping[int, int]) -> Ledger:
    ledger = Ledger(folder)
    ledger.record_intent(factors, dict.fromkeys(factors, 1.0))
    return ledger


def test_ours_are_taken_back_and_those_of_others_stay(tmp_path: Path) -> None:
    slurm = Remembered({1: 50, 2: 7, 3: 9, 4: 0})
    assert reset(slurm, book_of(tmp_path, {1: 50, 2: 40, 4: 30})) == 1
    assert slurm.now == {1: 0, 2: 7, 3: 9, 4: 0}


def test_a_job_that_runs_is_not_shown_and_is_reset_all_the_same(tmp_path: Path) -> None:
    slurm = Remembered({1: 50})
    slurm.hidden = {1}
    assert reset(slurm, book_of(tmp_path, {1: 50})) == 1
    assert slurm.now == {1: 0}


class Forgetful(Remembered):
    """A slurmctld that was killed before it had saved a job."""

    def set(self, factors: Mapping[int, int]) -> str:
        self.told.append(dict(factors))
        return "".join(f"Invalid job id specified for job {number}\n" for number in factors)


def test_what_slurmctld_does_not_know_is_taken_back_once(tmp_path: Path) -> None:
    slurm = Forgetful({})
    assert reset(slurm, book_of(tmp_path, {1: 50, 2: 40})) == 2
    assert reset(slurm, Ledger(tmp_path)) == 0
    assert slurm.told == [{1: 0, 2: 0}]


@pytest.mark.parametrize("hidden", [set[int](), {1}])
def test_a_job_that_is_gone_is_reset_for_it_may_be_back_and_not_counted(tmp_path: Path, hidden: set[int]) -> None:
    """One that slurmctld forgot to have ended comes back with what was set, and waits or runs."""
    ledger = book_of(tmp_path, {1: 50, 2: 40})
    ledger.update_present({2}, 1.0)
    slurm = Remembered({1: 50, 2: 40})
    slurm.hidden = hidden
    assert reset(slurm, ledger) == 1
    assert slurm.now == {1: 0, 2: 0}


def test_nothing_is_told_twice(tmp_path: Path) -> None:
    slurm = Remembered({1: 50})
    slurm.hidden = {1}
    reset(slurm, book_of(tmp_path, {1: 50}))
    assert reset(slurm, Ledger(tmp_path)) == 0
    assert len(slurm.told) == 1


def test_what_a_killed_slurmctld_brings_back_is_known(tmp_path: Path) -> None:
    slurm = Remembered({1: 50})
    reset(slurm, book_of(tmp_path, {1: 50}))
    slurm.now[1] = 50
    assert reset(slurm, Ledger(tmp_path)) == 1
    assert slurm.now == {1: 0}


def test_a_slurm_that_does_not_do_it_is_not_taken_for_one_that_did(tmp_path: Path) -> None:
    slurm = Remembered({1: 50})
    slurm.set = lambda factors: ""  # type: ignore[method-assign]
    ledger = book_of(tmp_path, {1: 50})
    with pytest.raises(OddError, match="1 jobs keep their SiteFactor, job 1 first"):
        reset(slurm, ledger)
    assert Ledger(tmp_path).jobs[1].factor == 50


def test_it_waits_until_slurmctld_is_back_and_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slurm = Remembered({1: 50})
    slurm.away = 3
    assert retry_undo(slurm, book_of(tmp_path, {1: 50}), 0.0, 60.0)
    assert capsys.readouterr().err.splitlines() == [
        "steer: what was set is not taken back yet: sprio: unable to contact slurm controller",
        "steer: SiteFactor of 1 jobs taken back",
    ]


def test_it_is_given_up_behind_a_time_and_says_what_to_do_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = Remembered({1: 50})
    slurm.away = 1000
    assert not retry_undo(slurm, book_of(tmp_path, {1: 50}), 0.01, 0.05)
    first, last = capsys.readouterr().err.splitlines()
    assert first == "steer: what was set is not taken back yet: sprio: unable to contact slurm controller"
    assert last.startswith("steer: given up after 1.38889e-05 h; when Slurm is back: ")
    assert last.endswith(f"python -m pipeline steer slurm --reset --folder {tmp_path}")
    slurm.away = 0
    assert reset(slurm, Ledger(tmp_path)) == 1


def test_a_job_that_runs_is_not_taken_for_reset_when_scontrol_failed(tmp_path: Path) -> None:
    """sprio does not show it, so the answer of scontrol is all there is."""
    slurm = Remembered({1: 50})
    slurm.hidden = {1}
    slurm.set = lambda factors: "slurm_update error: Zero Bytes were transmitted or received"  # type: ignore[method-assign]
    reset(slurm, book_of(tmp_path, {1: 50}))
    del slurm.set
    reset(slurm, Ledger(tmp_path))
    assert slurm.now == {1: 0}


def test_a_factor_that_stays_does_not_keep_jobs_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go: list[Ledger] = []
    slurm = Remembered({1: 50})
    slurm.set = lambda factors: "Access denied for job 1"  # type: ignore[method-assign]
    monkeypatch.setattr("pipeline.steering.watchdog.release_all", lambda slurm, ledger: let_go.append(ledger) or 0)
    with pytest.raises(OddError, match="1 jobs keep their SiteFactor, job 1 first: Access denied for job 1"):
        undo_all(slurm, book_of(tmp_path, {1: 50}))
    assert len(let_go) == 1
