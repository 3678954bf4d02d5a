"""Which held jobs are the controller's to let go, and which are somebody else's."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from slurm_said import SUBMIT, squeue

from pipeline.errors import UserError
from pipeline.steering.ledger import Ledger
from pipeline.steering.release import (
    check_partitions,
    claim,
    confirm,
    releasable,
    release_all,
    release_lines,
    stuck_jobs,
    update_held,
)
from pipeline.steering.rows import JobRow, OddError, jobs_in
from pipeline.steering.slurm import Slurm

HELD, NOW = ("held",), float(SUBMIT) + 100.0


def job(number: int = 2, hold: str = "JobHeldUser", partition: str = "held", **more: object) -> str:
    return squeue(JobID=number, Reason=hold, Partition=partition, **more)


def after(ledger: Ledger, row: str, now: float = NOW, began: float = 0.0) -> list[int]:
    """The jobs that are ours when a reading shows a job so."""
    rows = jobs_in(row)
    update_held(ledger, rows, HELD, now, lambda: began)
    return [one.number for one in releasable(ledger, rows)]


def let_go(ledger: Ledger) -> None:
    release_lines(ledger, 2, ("n1",), pin=True, now=NOW)


def test_ours_is_what_is_held_in_our_partition_when_it_is_first_seen(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    rows = [job(2), job(3, "Priority"), job(4, partition="work"), job(5, partition="held,work"), job(6, "JobHeldAdmin")]
    assert [number for row in rows for number in after(Ledger(tmp_path), row)] == [2, 6]
    assert after(ledger, job(3, "Priority")) == []
    assert after(ledger, job(3)) == []  # held later, so by somebody else


def test_who_holds_it_otherwise_or_lets_it_go_has_it(tmp_path: Path) -> None:
    for changed in ("JobHeldAdmin", "Priority"):
        ledger = Ledger(tmp_path)
        assert after(ledger, job()) == [2]
        assert after(ledger, job(hold=changed)) == []
        assert after(ledger, job()) == []


def test_who_holds_it_again_behind_its_release_has_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    let_go(ledger)
    assert after(ledger, job(hold="Resources")) == []
    assert after(ledger, job(), NOW + 5) == []
    again = str(int(SUBMIT) + 50)
    assert after(ledger, job(SubmitTime=again, RestartCnt=1), NOW + 60) == []  # requeued, and held by its user


def test_what_a_slurmctld_that_began_since_forgot_is_ours_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    let_go(ledger)
    assert after(ledger, job(hold="Resources"), NOW + 5) == []
    assert after(ledger, job(), NOW + 600, began=NOW + 500) == [2]
    release_lines(ledger, 2, (), pin=True, now=NOW + 600)
    after(ledger, job(hold="Resources"), NOW + 700)  # it has been saved
    assert after(ledger, job(), NOW + 900, began=NOW + 800) == []


def test_a_number_that_a_slurmctld_gives_again_is_another_job_and_ours(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    let_go(ledger)
    again = str(int(SUBMIT) + 50)
    assert after(ledger, job(SubmitTime=again), NOW + 60, began=NOW + 40) == [2]


def test_who_waits_for_its_nodes_for_too_long_or_again_is_stuck(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    let_go(ledger)
    free = jobs_in(job(hold="Resources"))
    assert [stuck_jobs(ledger, free, now, 60.0) for now in (NOW + 60, NOW + 61)] == [[], [2]]
    requeued = job(hold="Priority", SubmitTime=str(int(SUBMIT) + 50), RestartCnt=1)
    after(ledger, requeued, NOW + 50)
    assert stuck_jobs(ledger, jobs_in(requeued), NOW + 51, 60.0) == [2]


def test_only_names_of_nodes_are_told_to_scontrol(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    assert release_lines(ledger, 2, ("n1", "n2"), pin=True, now=NOW) == [
        "update jobid=2 ReqNodeList=n1,n2",
        "release 2",
    ]
    assert release_lines(ledger, 2, ("n1 Priority=9",), pin=True, now=NOW) == ["release 2"]


class Holding(Slurm):
    """A Slurm cluster with held jobs that lets them go when told to, or does not."""

    def __init__(self, numbers: Sequence[int], deaf: bool = False) -> None:
        super().__init__({})
        self.held, self.deaf, self.odd = set(numbers), deaf, False

    def jobs(self) -> list[JobRow]:
        if self.odd:
            raise OddError("squeue, line 1: expected 18 fields, found 1")
        return [row for number in (2, 3, 4) for row in jobs_in(job(number, "JobHeldUser" * (number in self.held)))]

    def update(self, lines: Sequence[str], what: str = "") -> str:
        if not self.deaf:
            self.held -= {int(line.split()[1]) for line in lines if line.startswith("release ")}
        return ""

    def boot_time(self) -> float:
        return NOW + 1e9


def in_charge(folder: Path, slurm: Holding) -> Ledger:
    ledger = Ledger(folder)
    ledger.held_in = HELD
    update_held(ledger, slurm.jobs(), HELD, NOW, slurm.boot_time)
    ledger.save()
    return Ledger(folder)


def test_all_go_and_those_that_came_meanwhile(tmp_path: Path) -> None:
    slurm = Holding([2])
    ledger = in_charge(tmp_path, slurm)
    assert release_all(slurm, ledger) == 1
    slurm.held.add(2)  # it forgot
    assert release_all(slurm, Ledger(tmp_path)) == 1
    assert not slurm.held
    assert release_all(slurm, Ledger(tmp_path)) == 0


def test_jobs_are_released_without_a_wait_before_the_first_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("pipeline.steering.release.sleep", waits.append)
    slurm = Holding([2])
    assert release_all(slurm, in_charge(tmp_path, slurm)) == 1
    assert waits == [0.0]


def test_a_slurm_that_does_not_let_go_is_not_taken_for_one_that_did(tmp_path: Path) -> None:
    slurm = Holding([2, 3], deaf=True)
    with pytest.raises(OddError, match="2 jobs are still held, job 2 first"):
        release_all(slurm, in_charge(tmp_path, slurm))


def test_where_squeue_cannot_be_read_what_the_book_has_is_let_go(tmp_path: Path) -> None:
    slurm = Holding([2, 3])
    ledger = in_charge(tmp_path, slurm)
    slurm.odd = True
    assert release_all(slurm, ledger) == 2
    assert not slurm.held


def test_a_partition_that_there_is_not_is_refused() -> None:
    with pytest.raises(UserError, match="--held-in: unknown partition 'hold': there are held, work"):
        check_partitions(["held", "hold"], {"work", "held"})


def test_a_release_that_nothing_confirms_is_repeated_while_the_job_is_held(tmp_path: Path) -> None:
    """scontrol timed out: the job may have been let go or not."""
    ledger = Ledger(tmp_path)
    after(ledger, job())
    let_go(ledger)
    assert after(ledger, job(), NOW + 5) == [2]
    let_go(ledger)
    assert after(ledger, job(hold="Resources"), NOW + 10) == []  # it was done all the same
    assert after(ledger, job(), NOW + 15) == []  # so this hold is somebody else's


def test_a_release_that_scontrol_confirms_is_not_repeated(tmp_path: Path) -> None:
    complaint = (
        "Job update not available right now for job 3\nslurm_suspend error: Job update not available right now\n"
    )
    for said, left in (("", []), (complaint, []), ("slurm_update error: Zero Bytes were transmitted", [2])):
        ledger = Ledger(tmp_path)
        after(ledger, job())
        let_go(ledger)
        confirm(ledger, [2], [], said)
        assert after(ledger, job(), NOW + 5) == left


def test_what_slurm_could_not_unpin_stays_known_as_pinned(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    let_go(ledger)
    confirm(ledger, [], [2], "slurm_update error: Slurm backup controller in standby mode")
    assert ledger.held[2].pinned
    confirm(ledger, [], [2], "")
    assert not ledger.held[2].pinned


def test_a_full_disk_stops_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = Holding([2, 3])
    ledger = in_charge(tmp_path, slurm)

    def full(stream: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert release_all(slurm, ledger) == 2
    assert not slurm.held


def test_all_that_is_held_in_a_partition_can_be_claimed_whoever_holds_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    after(ledger, job())
    after(ledger, job(hold="JobHeldAdmin"))  # somebody else's, by the ledger
    rows = jobs_in("\n".join([job(hold="JobHeldAdmin"), job(3), job(4, partition="work"), job(5, "Priority")]))
    claim(ledger, rows, HELD)
    assert [one.number for one in releasable(ledger, rows)] == [2, 3]
