"""A real Slurm cluster runs jobs, and the import finds each of them with the times that Slurm reports."""

from datetime import UTC, datetime

import pytest
from slurm_imports import Imported

from benchmarks.slurm.loopback import LoopbackSlurm, slurm, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def played(cluster: LoopbackSlurm) -> dict[str, str]:
    """Run some twenty short jobs of every kind to their end; return the ids of those that the test checks."""
    submit = cluster.submit
    first = submit("sleep 1", "--array=0-4")
    before = submit("sleep 1", "--time=5", "--ntasks=2")
    after = submit("true", f"--dependency=afterok:{before}")
    stopped = submit("sleep 60", "--ntasks=4", "--time=1-02:00:00")
    again = submit('[ "$SLURM_RESTART_COUNT" ] || sleep 60; sleep 1', "--requeue")
    held = submit("true", "--hold")
    wide = submit("srun sleep 1", "--nodes=2", "--ntasks-per-node=2", "--mem-per-cpu=50M", "--job-name=a b JobState=X")
    begins = submit("sleep 1", "--begin=now+3")
    failed = submit("exit 3", "--exclusive")
    of_others = [submit("sleep 1", "--uid=nobody") for _ in range(2)]
    singles = [submit("sleep 1", "--mem=200M") for _ in range(6)]
    cluster.ask("scancel", held)
    cluster.until(lambda: [cluster.states().get(job) for job in (stopped, again)] == ["R", "R"], "both run")
    cluster.ask("scancel", stopped)
    first_run = cluster.jobs()[again]["StartTime"]
    cluster.ask("scontrol", "requeue", again)
    cluster.until(lambda: cluster.jobs()[again]["JobState"] == "PENDING", "it is requeued")
    cluster.ask("scontrol", "update", f"jobid={again}", "StartTime=now")  # otherwise it waits for two minutes
    cluster.until(lambda: not cluster.states(), "all jobs end")
    assert len({first, *of_others, *singles}) == 9
    return {
        **{"after": after, "again": again, "held": held, "wide": wide, "begins": begins, "failed": failed},
        **{"stopped": stopped, "before": before, "first run": first_run},
    }


def test_every_job_of_a_real_slurm_is_found_with_its_times(imported: Imported) -> None:
    with slurm() as cluster:
        ids = played(cluster)
        told = cluster.jobs()
        assert len(cluster.processes()) >= 6  # otherwise the check below could not fail
        imported.run(cluster.jobcomp)
    assert cluster.processes() == []
    jobs, log = imported.table("jobs.csv").set_index("job"), imported.swf()
    again = ids["again"]
    assert set(jobs.index) == set(told) - {ids["held"]} | {f"{again}-2"}
    assert len(told) == 21
    origin = float(imported.header("UnixStartTime"))
    begun = origin + log[2] + log[3]
    for job, row in told.items():
        if job == ids["held"]:
            continue
        name = f"{job}-2" if job == again else job
        start, end = seconds(row["StartTime"]), seconds(row["EndTime"])
        assert begun[name] == start
        assert log.loc[name, 4] == jobs.loc[name, "duration"] == max(end - start, 1)
        assert origin + jobs.loc[name, "arrival"] == seconds(row["EligibleTime"])
        assert log.loc[name, 5] == int(row["NumCPUs"])
        assert jobs.loc[name, "nodes"] == int(row["NumNodes"])
    assert begun[again] == seconds(ids["first run"])
    assert imported.counts("dropped") == {"ended before it started, as when cancelled": 1}
    fixed = imported.counts("fixed")
    assert fixed["task of an array: a job of its own"] == 5
    assert fixed["ran again after a requeue: each run is a job"] == 1
    later = [job for job, row in told.items() if job != ids["held"] and row["EligibleTime"] > row["SubmitTime"]]
    assert {ids["after"], ids["begins"]} <= set(later)  # a dependency and a begin time
    assert fixed["eligible after its submission (dependency, begin time, hold): arrives when eligible"] == len(later)
    assert jobs.loc[ids["stopped"], "estimate"] == 26 * 3600
    assert jobs.loc[ids["before"], "estimate"] == 300
    assert jobs.loc[ids["wide"]].to_list()[2:] == [31536000, 2, 2, 100 / 1024]
    assert log.loc[ids["failed"], 11] == 0
    assert log.loc[ids["stopped"], 11] == 5
    assert log[12].nunique() == 2
