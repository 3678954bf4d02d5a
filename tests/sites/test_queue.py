"""A log as a queue, and its periods with moved submission times."""

import numpy as np
import pytest
from log_scenarios import log_scenario
from queue_builders import Job, queue

from pipeline.core.config import Backfilling, MachinePark, MachinesScenario, Partition, Site
from pipeline.core.config.evaluation import Quota
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.workload.windows import Fitted
from pipeline.sites.queue import (
    MOVED_S,
    Period,
    last_runs,
    log_of,
    part_of,
    period,
    periods_of,
    queue_of,
    replays_of,
)
from pipeline.sites.quotas import quotas_of
from pipeline.sites.replay import Backfill, Queue

DAY = 86_400.0
CPU, GPU = 1, 2  # bits of the kinds of machines

USERS = np.arange(500) % 3 - 1  # -1: unknown


def whole(jobs: Queue, wait: np.ndarray) -> Period:
    every = np.arange(len(wait))
    return Period(jobs, 0, jobs.submit[None], every[None], wait, USERS[: len(wait)], 10.0 * wait)


def fit(jobs: int = 4) -> Fitted:
    """Jobs, one a day, of users -1, 7, 7 and 3, on two machines of 4 processors and a third one with a GPU."""
    some = np.arange(jobs)
    return Fitted(
        jobs=Jobs(
            arrival=1000.0 + DAY * some,
            duration=np.full(jobs, 60.0),
            estimate=np.full(jobs, 600.0),
            demand=np.column_stack([np.tile([100, 2000], jobs)[:jobs], np.zeros(jobs, dtype=int)]),
            nodes=np.tile([1, 2], jobs)[:jobs],
            kinds=np.tile(np.array([CPU | GPU, CPU, CPU, GPU], dtype=np.uint64), jobs)[:jobs],
        ),
        user=np.tile([-1, 7, 7, 3], jobs)[:jobs],
        wait=5.0 * some,
        partition=np.zeros(jobs, dtype=np.int64),
        partition_names=("",),
        group=np.zeros(jobs, dtype=np.int64),
        group_names=(("", ""),),
        park=MachinePark(
            resources=("cpu", "gpu"),
            capacity=((4000, 0), (4000, 0), (8000, 2000)),
            kind=(0, 0, 1),
            kind_names=("cpu", "gpu"),
            unit=1.0,
        ),
        load={"cpu": 0.5, "gpu": 0.0},
        left_out={},
        capped=0,
        unused=(),
        doubts=(),
    )


def test_a_log_is_a_queue_with_a_partition_for_each_set_of_kinds_of_machines() -> None:
    found = queue_of(fit(), Site())
    assert found.submit.tolist() == [0, DAY, 2 * DAY, 3 * DAY]
    assert (found.run.tolist(), found.limit.tolist()) == ([60.0] * 4, [600.0] * 4)
    assert found.capacity.tolist() == [[4000, 0], [4000, 0], [8000, 2000]]
    runs_on = found.members[found.partition]
    assert runs_on.tolist() == [[True, True, True], [True, True, False], [True, True, False], [False, False, True]]
    assert len(found.tier) == len(found.members) == 3
    assert found.user.tolist() == [0, 2, 2, 1]
    assert found.cpus.tolist() == [1.0, 4.0, 1.0, 4.0]  # 1 * 0.1, at least 1; 2 * 2


def test_partitions_that_share_all_machines_keep_their_tiers_and_factors() -> None:
    """A job of two partitions gets the higher tier and the higher factor; partitions unknown to the site have 1."""
    named = fit()._replace(partition=np.array([0, 1, 2, 1]), partition_names=("work", "urgent", "urgent|work"))
    site = Site(partitions={"work": Partition(factor=5), "urgent": Partition(tier=3, factor=2)})
    found = queue_of(named, site)
    assert found.tier[found.partition].tolist() == [1, 3, 3, 3]
    assert found.factor[found.partition].tolist() == [1.0, 0.4, 1.0, 0.4]
    assert (
        found.members[found.partition].tolist()
        == queue_of(fit(), site).members[queue_of(fit(), site).partition].tolist()
    )
    assert queue_of(fit(), site).tier.tolist() == [1, 1, 1]


def test_reservations_have_whole_machines_unless_there_is_one_of_each_kind() -> None:
    assert queue_of(fit(), Site()).whole == (len(fit().park.capacity) > len(set(fit().park.kind)))
    pools = fit().park.model_copy(update={"capacity": ((9000,), (9000,)), "kind": (0, 1)})
    nodes = pools.model_copy(update={"kind": (0, 0)})
    assert [queue_of(fit()._replace(park=park), Site()).whole for park in (pools, nodes)] == [False, True]


def test_quotas_of_many_users_replace_that_of_all() -> None:
    own = [Quota(each="association", users=(one,), jobs=1) for one in range(300)]
    found = quotas_of([Quota(each="association", jobs=3), *own], np.arange(300), np.zeros(300, np.int64), [("7", "")])
    assert found.bound.tolist() == [[False, True]] * 300


def test_jobs_have_the_quotas_of_the_site() -> None:
    assert queue_of(fit(), Site()).counted.shape == (4, 0)
    named = fit()._replace(group=np.array([0, 1, 0, 1]), group_names=(("7", "long"), ("7", "short")))
    found = queue_of(named, Site(quotas=(Quota(qos="long", cpus=64), Quota(each="account", jobs=2))))
    assert found.counted.tolist() == [[0, 1], [1, -1], [0, 1], [1, -1]]
    assert (found.most.tolist(), found.of_jobs.tolist()) == ([64, 2], [False, True])


def test_a_quota_of_its_qos_replaces_those_without_one_for_the_same() -> None:
    named = fit()._replace(group=np.array([0, 1, 0, 1]), group_names=(("7", "long"), ("7", "short")))
    rows = (Quota(qos="long", cpus=64), Quota(accounts=("7",), cpus=99, jobs=9), Quota(each="user", cpus=5))
    found = queue_of(named, Site(quotas=rows))
    assert found.counted.tolist() == [[0, 1, 2, 3], [1, 2, 5, -1], [0, 1, 2, 5], [1, 2, 4, -1]]  # by user, from 3 on
    assert found.bound.tolist() == [[True, False, True, True], [True, True, True, False]] * 2
    rows = (Quota(each="association", jobs=3), Quota(each="association", accounts=("7",), users=(3,), jobs=1))
    found = queue_of(named, Site(quotas=rows))  # users -1, 7, 7 and 3
    assert found.counted.tolist() == [[0, -1], [2, -1], [2, -1], [1, 3]]
    assert found.bound.tolist() == [[True, False], [True, False], [True, False], [False, True]]
    rows = (Quota(accounts=("7",), cpus=8), Quota(accounts=("7",), users=(3,), cpus=2))
    assert queue_of(named, Site(quotas=rows)).bound[3].tolist() == [True, True]  # each level of Grp limits holds
    rows = (Quota(accounts=("7",), cpus=8),)
    with pytest.raises(UserError, match=r"sites: quotas: the log does not name the accounts of its jobs: import it"):
        queue_of(fit(), Site(quotas=rows))


def test_a_quota_of_the_qos_of_a_partition_counts_its_jobs_and_replaces_that_of_their_own_qos() -> None:
    """Jobs 0 and 2 are in partition `big`, whose QOS is `part`, which the log does not name; all have QOS `long`."""
    named = fit()._replace(
        group=np.zeros(4, np.int64), group_names=(("7", "long"),), partition=np.array([0, 1, 0, 1]),
        partition_names=("big", "work"),
    )  # fmt: skip
    rows = (Quota(qos="part", cpus=64), Quota(qos="long", cpus=8, jobs=5), Quota(accounts=("7",), cpus=99))
    found = queue_of(named, Site(quotas=rows, partitions={"big": Partition(qos="part")}))
    assert (found.most.tolist(), found.of_jobs.tolist()) == ([64, 8, 5, 99], [False, False, True, False])
    assert found.counted.tolist() == [[0, 1, 2, 3], [1, 2, 3, -1]] * 2
    assert found.bound.tolist() == [[True, False, True, False], [True, True, False, False]] * 2
    over = (rows[0], rows[1].model_copy(update={"over_partition": True}), rows[2])
    found = queue_of(named, Site(quotas=over, partitions={"big": Partition(qos="part")}))
    assert found.bound.tolist() == [[False, True, True, False], [True, True, False, False]] * 2
    several = named._replace(partition_names=("big|work", "big"))  # only all partitions together decide
    assert queue_of(several, Site(quotas=rows[:1], partitions={"big": Partition(qos="part")})).counted.tolist() == [
        [-1], [0], [-1], [0]
    ]  # fmt: skip
    each = (Quota(qos="part", each="user", cpus=9), Quota(qos="long", each="account", cpus=8))
    found = queue_of(named, Site(quotas=each, partitions={"big": Partition(qos="part")}))
    assert found.bound[0].tolist() == [True, True]  # in Slurm, MaxTRESPU and MaxTRESPA are apart
    own = Site(quotas=rows[1:2], partitions={"big": Partition(qos="long")})
    assert queue_of(named, own).bound.tolist() == [[True, True]] * 4  # the same QOS counts a job once
    with pytest.raises(UserError, match="does not name the QOS of its jobs"):
        queue_of(named._replace(group_names=(("7", ""),)), Site(quotas=rows))


def test_a_part_holds_consecutive_jobs_and_all_machines() -> None:
    log = queue_of(fit(), Site())
    found = part_of(log, slice(1, 3))
    assert found.submit.tolist() == [DAY, 2 * DAY]
    assert found.nodes.tolist() == [2, 1]
    assert found.partition.tolist() == log.partition[1:3].tolist()
    assert found.capacity is log.capacity
    assert len(found.demand) == len(found.cpus) == len(found.user) == len(found.run) == len(found.limit) == 2


def test_a_period_begins_with_jobs_of_a_warm_up_that_do_not_count() -> None:
    """For jobs 5 to 7, the warm-up of two days begins with job 3."""
    jobs = queue([1], *(Job(day * DAY, 60 + day) for day in range(10)))
    found = period(whole(jobs, np.arange(10.0)), (5, 8), 2.0, (1, 2))
    assert found.queue.submit.tolist() == [day * DAY for day in range(3, 8)]
    assert found.first == 2
    assert found.run.tolist() == [65, 66, 67]
    assert found.wait.tolist() == [3, 4, 5, 6, 7]
    assert found.user.tolist() == [-1, 0, 1, -1, 0]
    assert found.past.tolist() == [30, 40, 50, 60, 70]
    assert period(whole(jobs, np.arange(10.0)), (5, 8), 0.0, (1, 2)).first == 0
    assert period(whole(jobs, np.arange(10.0)), (2, 8), 7.0, (1, 2)).first == 2  # the log begins there


def test_submissions_are_moved_by_up_to_a_minute_in_each_replay() -> None:
    jobs = queue([1], *(Job(10.0 * k, 60) for k in range(500)))
    found = period(whole(jobs, np.zeros(500)), (100, 500), 0.0, (1, 2))
    by = found.submit - (jobs.submit[100:] - jobs.submit[100])
    assert by.shape == (12, 400)
    assert np.abs(by).max() <= MOVED_S == 60
    assert np.abs(by).max() > 59
    assert by.std(axis=0).min() > 5  # standard deviation of each job's moves over replays
    assert abs(by.mean()) < 3
    ordered = np.take_along_axis(found.submit, found.arrivals, axis=1)
    assert (np.diff(ordered, axis=1) >= 0).all()
    assert (found.arrivals != np.arange(400)).any()


def test_the_moves_depend_on_the_seed_and_the_period_alone() -> None:
    jobs = queue([1], *(Job(10.0 * k, 60) for k in range(50)))
    one, two, *others = (
        period(whole(jobs, np.zeros(50)), (0, 50), 0.0, key).submit for key in ((1, 2), (1, 2), (1, 1), (2, 2))
    )
    assert (one == two).all()
    assert all((one != other).all() for other in others)


def test_long_logs_are_replayed_less_often() -> None:
    assert [replays_of(jobs) for jobs in (0, 33_333, 34_000, 80_000, 100_000, 10_000_000)] == [12, 12, 11, 5, 4, 4]


def test_a_period_without_a_job_is_refused() -> None:
    with pytest.raises(UserError, match="a period of the log has no job"):
        period(whole(queue([1], Job(0, 1)), np.zeros(1)), (1, 1), 7.0, (1, 2))


def test_a_user_s_last_two_runs_are_those_that_ended_before_the_last_midnight() -> None:
    """Jobs of user 1 end on day 0 (after 100 s, 10 s and 1 s), and at noon of day 1; none of user 2 ends in time."""
    user = np.array([1, 1, 1, 2, 1, 1, -1, 1])
    submit = DAY * np.array([0.1, 0.2, 0.3, 0.9, 1.0, 1.6, 2.5, 2.5])
    end = DAY * np.array([0.5, 0.3, 0.4, 3.0, 1.5, 3.0, 3.0, 4.0])
    run = np.array([100.0, 10.0, 1.0, 5.0, 60.0, 7.0, 7.0, 7.0])
    found = last_runs(user, submit, end, run)
    assert np.isnan(found[[0, 1, 2, 3, 6]]).all()
    assert found[[4, 5, 7]].tolist() == [50.5, 50.5, 80.0]
    assert last_runs(user[4:], submit[4:], end[4:], run[4:])[3] == 60.0  # a single earlier run


def test_a_job_with_an_unknown_wait_counts_as_started_at_once() -> None:
    found = log_of(fit(3)._replace(wait=np.array([np.nan, 0.0, DAY])), Site())
    assert np.isnan(found.past).tolist() == [True, True, False]


def test_the_periods_of_a_log_are_the_shares_of_its_jobs(scenario: MachinesScenario) -> None:
    found = periods_of(fit(20), scenario, Site(warm_up_days=3.0, backfill=Backfilling(tested=7, window_h=2.0)), seed=5)
    assert {name: (one.first, len(one.run)) for name, one in found.items()} == {
        "train": (0, 8),
        "validation": (3, 4),
        "test": (3, 8),
    }
    assert found["test"].wait[-1] == 95.0
    assert {one.backfill for one in found.values()} == {Backfill(500, 7, 7_200.0, 30.0)}
    assert found["test"].queue.submit[3] == 12 * DAY
    moved = [found[name].submit - (it := found[name].queue.submit) + it[0] for name in ("validation", "test")]
    assert (moved[0] != moved[1][:, :7]).all()  # each period has its own random numbers


@pytest.fixture
def scenario() -> MachinesScenario:
    return MachinesScenario.model_validate(log_scenario(8.0, "x.swf"))
