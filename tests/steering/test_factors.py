"""Jobs whose factor does not take, that others set, or that are gone."""

from pathlib import Path

from slurm_said import SUBMIT, sinfo, squeue

from pipeline.steering.factors import PoolDecision, changed_factors, skipped_jobs, update_ledger
from pipeline.steering.ledger import SAVED_S, Ledger
from pipeline.steering.rows import Reading, factors_in, jobs_in, nodes_in
from pipeline.steering.states import Pool


def reading(factors: str, *jobs: str, now: float = 2e9) -> Reading:
    return Reading(now, jobs_in("\n".join(jobs)), nodes_in(sinfo("n1")), factors_in(factors))


def test_a_job_is_frozen_when_setting_it_twice_did_nothing(tmp_path: Path) -> None:
    ledger, now = Ledger(tmp_path), reading("2|0", squeue(JobID=2))
    for found in ([], [2], []):
        ledger.record_intent({2: 50}, {2: float(SUBMIT)})
        ledger.jobs[2].confirmed = True
        assert update_ledger(ledger, now) == found
    assert skipped_jobs(ledger, now) == {2: "frozen"}
    used_again = reading("2|0", squeue(JobID=2, SubmitTime=1))
    update_ledger(ledger, used_again)
    assert skipped_jobs(ledger, used_again) == {}


def test_what_slurmctld_lost_when_it_died_is_no_sign_of_a_frozen_job(tmp_path: Path) -> None:
    ledger, now = Ledger(tmp_path), reading("2|0", squeue(JobID=2))
    for _ in range(4):
        ledger.record_intent({2: 50}, {2: float(SUBMIT)})
        ledger.jobs[2].confirmed = True
        ledger.mark_uncertain()
        assert update_ledger(ledger, now) == []
    assert skipped_jobs(ledger, now) == {}


def test_what_others_set_is_theirs(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record_intent({2: 50}, {2: float(SUBMIT)})
    now = reading("2|51\n3|4\n4|0", *(squeue(JobID=k) for k in (2, 3, 4)))
    assert skipped_jobs(ledger, now) == {2: "set by others", 3: "set by others"}


def test_jobs_that_are_gone_for_long_are_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.record_intent({2: 50, 3: 40, 4: 30}, dict.fromkeys((2, 3, 4), float(SUBMIT)))
    there = ("3|40", squeue(JobID=3), squeue(JobID=9, ArrayJobID=4, StateCompact="R"))
    update_ledger(ledger, reading(*there))
    update_ledger(ledger, reading(*there, now=2e9 + SAVED_S))
    assert set(ledger.jobs) == {2, 3, 4}
    update_ledger(ledger, reading(*there, now=2e9 + SAVED_S + 1))
    assert set(ledger.jobs) == {3, 4}


def test_a_job_that_comes_back_is_known_by_what_was_set(tmp_path: Path) -> None:
    """Slurmctld was killed before it had saved that the job ended."""
    ledger, again = Ledger(tmp_path), reading("2|50", squeue(JobID=2), now=2e9 + 9)
    ledger.record_intent({2: 50}, {2: float(SUBMIT)})
    update_ledger(ledger, reading(""))
    update_ledger(ledger, again)
    assert skipped_jobs(ledger, again) == {}
    update_ledger(ledger, reading("", now=2e9 + SAVED_S + 5))  # it has ended once more, just now
    assert set(ledger.jobs) == {2}


def test_without_an_answer_slurms_own_order_stands() -> None:
    pool = Pool(("work",), [], jobs_in("\n".join(squeue(JobID=k) for k in (2, 3))), [])
    assert changed_factors(PoolDecision(pool, None, "", "", "slow"), {2: 50, 3: 0}, 5000) == {2: 0}
    assert changed_factors(PoolDecision(pool, [3, 2], "", "", ""), {2: 50, 3: 0}, 5000) == {3: 2525}
    assert changed_factors(PoolDecision(pool, [3], "", "", ""), {2: 50, 3: 60}, 5000) == {2: 0}
