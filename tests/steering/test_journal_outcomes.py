"""What became of jobs, from reading to reading."""

from slurm_said import SUBMIT, squeue

from pipeline.steering.journal import OutcomeTracker
from pipeline.steering.rows import Reading, jobs_in

NOW = float(SUBMIT) + 100


def reading(now: float, *lines: str) -> Reading:
    return Reading(now, jobs_in("\n".join(lines)), [], {})


def test_a_job_that_is_gone_between_two_readings_could_have_run_unless_something_held_it() -> None:
    outcomes = OutcomeTracker(str)
    waits = [
        squeue(JobID=2),
        squeue(JobID=3, Reason="JobHeldUser"),
        squeue(JobID=4, Dependency="afterok:1"),
        squeue(JobID=5, EligibleTime=int(NOW) + 60),
        squeue(JobID=6, Reason="JobHeldUser", EligibleTime="N/A"),
    ]
    assert list(outcomes.update(reading(NOW, *waits), {6})) == []
    gone = list(outcomes.update(reading(NOW + 5), {6}))
    assert [(kind, row["job"], row["could_start"]) for kind, row in gone] == [
        ("left", 2, True),
        ("left", 3, False),
        ("left", 4, False),
        ("left", 5, False),
        ("left", 6, True),
    ]


def test_the_first_arrival_that_is_still_there_is_told_and_one_of_days_ago_is_not() -> None:
    outcomes = OutcomeTracker(str)
    ends = squeue(JobID=2, StateCompact="R", StartTime=SUBMIT)
    old = squeue(JobID=3, EligibleTime=int(NOW) - 90_000)
    still = [squeue(JobID=4, EligibleTime=int(SUBMIT) + 7), squeue(JobID=5, EligibleTime=int(SUBMIT) + 3)]
    held = squeue(JobID=6, EligibleTime=int(SUBMIT) + 1, Reason="JobHeldUser")
    list(outcomes.update(reading(NOW, ends, old, held, *still)))
    ((kind, row),) = outcomes.update(reading(NOW + 5, old, held, *still))
    assert (kind, row["open"]) == ("ran", float(SUBMIT) + 3)
