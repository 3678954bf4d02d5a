"""The compiled replay compared with the reference, on random queues under many rules."""

from typing import NamedTuple

import numpy as np
import pytest
from queue_builders import Job, queue

from pipeline.core.config.evaluation import Quota
from pipeline.sites.quotas import quotas_of
from pipeline.sites.replay import (
    AREA_AGED,
    LINEAR,
    NO_OUTAGES,
    UNICEP,
    WFP3,
    Backfill,
    Order,
    Outages,
    Queue,
    replay,
)
from tests.oracles.queue import Replayed, plain_replay

QUEUES, JOBS = 240, 24
GROUPS = (("a", "long"), ("a", ""), ("b", "long"), ("b", "short"))
QUOTAS = (
    Quota(each="user", cpus=5),
    Quota(each="user", jobs=2),
    Quota(qos="long", each="user", jobs=1),
    Quota(qos="long", cpus=4, jobs=3),
    Quota(each="account", cpus=6),
    Quota(accounts=("a",), cpus=3, jobs=4),
)


class Case(NamedTuple):
    queue: Queue
    order: Order
    backfill: Backfill
    submit: np.ndarray
    arrivals: np.ndarray

    def compiled(self) -> np.ndarray:
        return np.asarray(replay(*self))

    def plain(self) -> Replayed:
        return plain_replay(*self)


def random_queue(rng: np.random.Generator, exact: bool) -> Queue:
    """Jobs that fit on their partition's machines; times are small whole numbers, so that many of them coincide."""
    machines, resources, partitions = (int(rng.integers(1, most + 1)) for most in (4, 2, 3))
    capacity = rng.integers(2, 6, (machines, resources))
    members = rng.random((partitions, machines)) < 0.7
    members[np.arange(partitions), rng.integers(machines, size=partitions)] = True
    partition = rng.integers(partitions, size=JOBS)
    nodes = np.minimum(rng.integers(1, 4, JOBS), members[partition].sum(axis=1))
    least = np.array([capacity[members[p]].min(axis=0) for p in partition])  # on the smallest machine of the partition
    demand = rng.integers(0, least + 1)
    demand[:, 0] = np.maximum(demand[:, 0], 1)
    run = rng.integers(1, 30, JOBS).astype(float)
    overruns = 1.0 if exact else rng.choice([0.1, 0.4, 1.0, 1.0, 2.0, 5.0], JOBS)
    user, group = rng.integers(3, size=JOBS), rng.integers(len(GROUPS), size=JOBS)
    some = [one for one in QUOTAS if rng.random() < 0.2]
    return Queue(
        submit=np.sort(rng.integers(0, 60, JOBS)).astype(float),
        run=run,
        limit=np.maximum(np.round(run * overruns), 1.0),
        nodes=nodes,
        demand=demand * 1000,
        cpus=np.maximum(nodes * demand[:, 0], 1).astype(float),
        user=user,
        qos=np.zeros(JOBS),
        partition=partition,
        capacity=capacity * 1000,
        members=members,
        tier=rng.integers(2, size=partitions),
        factor=np.ones(partitions),
        **quotas_of(some, user, group, GROUPS)._asdict(),
        outages=random_outages(rng, machines) if rng.random() < 0.5 else NO_OUTAGES,
        whole=bool(rng.random() < 0.7),
    )


def random_outages(rng: np.random.Generator, machines: int) -> Outages:
    """Random outages; some overlap, even on one machine."""
    count = int(rng.integers(1, 4))
    begin = rng.integers(-5, 60, count).astype(float)
    return Outages(
        rng.integers(machines, size=count), begin, begin + rng.integers(1, 25, count), rng.random(count) < 0.5
    )


def random_order(rng: np.random.Generator, q: Queue) -> Order:
    rule = int(rng.choice([LINEAR, LINEAR, WFP3, UNICEP, AREA_AGED]))
    return Order(
        rule,
        rng.choice([np.zeros(JOBS), -q.limit, -np.log(q.limit), rng.integers(4, size=JOBS).astype(float)]),
        slope=float(rng.choice([0.0, 0.125, 1.0])),
        age=float(rng.choice([1.0, 16.0])),
        longest=float(rng.choice([1e12, 1e12, 20.0])),
        fair_share=float(rng.choice([0.0, 0.0, 10.0])),
        half_life=float(rng.choice([10.0, 100.0])),
        fair_tree=bool(rng.integers(2)),
        users=int(rng.choice([0, 9])),
        period=float(rng.choice([0.0, 5.0])),
    )


def case(number: int) -> Case:
    rng = np.random.default_rng([9, number])
    q = random_queue(rng, exact=False)
    backfill = Backfill(
        reservations=int(rng.choice([0, 1, 1, 2, 100])),
        tested=int(rng.choice([1_000_000, 1_000_000, 3])),
        window=float(rng.choice([1e12, 1e12, 8.0])),
        interval=float(rng.choice([0.0, 0.0, 3.0])),
    )
    submit = q.submit + rng.integers(-3, 4, JOBS) * float(rng.integers(2))  # moved in half of the queues
    return Case(q, random_order(rng, q), backfill, submit, np.argsort(submit, kind="stable"))


@pytest.fixture(scope="module")
def replayed() -> list[tuple[Case, np.ndarray, Replayed]]:
    return [(one, one.compiled(), one.plain()) for one in map(case, range(QUEUES))]


def test_every_job_starts_when_it_does_in_the_reference(replayed: list[tuple[Case, np.ndarray, Replayed]]) -> None:
    wrong = {number: got.tolist() for number, (_, got, wanted) in enumerate(replayed) if got.tolist() != wanted.start}
    assert wrong == {}


def test_the_random_queues_have_what_they_are_to_test(replayed: list[tuple[Case, np.ndarray, Replayed]]) -> None:
    """Waiting, overruns, jobs on two machines, backfilling, and every rule."""
    wait = np.array([got - one.submit for one, got, _ in replayed])
    assert np.isfinite(wait).all()
    assert wait.min() == 0
    assert np.median(wait) > 10
    assert sum(bool((one.queue.run > one.queue.limit).any()) for one, _, _ in replayed) > QUEUES / 2
    assert sum(max(map(len, wanted.machines)) > 1 for _, _, wanted in replayed) > QUEUES / 2
    overtaken = [np.any(np.diff(got[one.arrivals]) < 0) for one, got, _ in replayed if one.order.slope == 1.0]
    assert np.mean(overtaken) > 0.5
    assert {one.order.rule for one, _, _ in replayed} == {LINEAR, WFP3, UNICEP, AREA_AGED}


@pytest.mark.parametrize("wanted", [0, 1, JOBS // 2, JOBS, 10 * JOBS])
def test_a_replay_that_ends_early_has_the_starts_that_are_wanted(
    replayed: list[tuple[Case, np.ndarray, Replayed]], wanted: int
) -> None:
    for one, got, _ in replayed[:40]:
        found = replay(one.queue, one.order, one.backfill, one.submit, one.arrivals, wanted)
        assert found[:wanted].tolist() == got[:wanted].tolist()


def test_no_machine_is_ever_overcommitted(replayed: list[tuple[Case, np.ndarray, Replayed]]) -> None:
    for one, got, wanted in replayed:
        q = one.queue
        for now in np.unique(got):
            held = np.zeros_like(q.capacity)
            for job in np.flatnonzero((got <= now) & (now < got + q.run)):
                machines = wanted.machines[job]
                assert len(set(machines)) == q.nodes[job]
                assert q.members[q.partition[job], machines].all()
                held[machines] += q.demand[job]
            assert (held <= q.capacity).all()


def test_no_quota_is_exceeded_unless_by_one_job(
    replayed: list[tuple[Case, np.ndarray, Replayed]],
) -> None:
    reached, beyond = {"jobs": 0, "cpus": 0}, 0
    for one, got, _ in replayed:
        q = one.queue
        for now in np.unique(got):
            runs = (got <= now) & (now < got + q.run)
            for quota, most in enumerate(q.most):
                counted = q.counted == quota
                theirs = np.flatnonzero(runs & counted.any(axis=1))
                held = len(theirs) if q.of_jobs[quota] else q.cpus[theirs].sum()
                if q.bound[counted].all():  # jobs of a QOS with its own quota count, but this quota does not limit them
                    assert held <= most or len(theirs) == 1
                else:
                    beyond += held > most
                reached["jobs" if q.of_jobs[quota] else "cpus"] += held == most
    assert min(reached.values()) > 100
    assert beyond > 20


def test_a_user_at_the_limit_waits_and_blocks_no_other() -> None:
    """Two processors; user 0 may run one job at a time. Its second job is first in line, but gets no reservation."""
    jobs = [Job(0, 100, user=0), Job(1, 50, user=0), Job(2, 500, user=1)]
    free = queue([2], *jobs)
    limited = queue([2], *jobs, quotas=[Quota(each="user", jobs=1)])
    order = Order(LINEAR, np.zeros(3), slope=1.0)
    assert replay(free, order, Backfill(), free.submit, np.arange(3)).tolist() == [0, 1, 51]
    assert replay(limited, order, Backfill(), limited.submit, np.arange(3)).tolist() == [0, 100, 2]


def test_the_head_of_a_queue_is_never_delayed_beyond_its_reservation() -> None:
    """In order of arrival and with exact limits, neither a later job nor a late end can take the place."""
    reserved = 0
    for number in range(60):
        rng = np.random.default_rng([10, number])
        q = random_queue(rng, exact=True)
        q = q._replace(partition=np.zeros_like(q.partition), members=np.ones_like(q.members[:1]), tier=q.tier[:1])
        least = q.capacity.min(axis=0)
        q = q._replace(demand=np.minimum(q.demand, least), nodes=np.minimum(q.nodes, len(q.capacity)))
        # Jobs with a reservation must wait neither for a quota nor for a machine that is out.
        q = q._replace(bound=np.zeros_like(q.bound), outages=NO_OUTAGES)
        order = Order(LINEAR, np.zeros(JOBS), slope=1.0)
        one = Case(q, order, Backfill(), q.submit, np.arange(JOBS))
        got, wanted = one.compiled(), one.plain()
        for job, times in enumerate(wanted.reserved):
            reserved += len(times)
            assert all(got[job] <= time for time in times)
    assert reserved > 1_000


def test_no_job_starts_on_a_machine_that_is_out_and_those_there_go_on() -> None:
    """Machine 0 is drained from 5 to 50: job 0 runs there until 10, job 1 gets machine 1, and job 2 waits for it."""
    jobs = queue([1, 1], Job(0, 10), Job(6, 20), Job(7, 1))
    drained = jobs._replace(outages=Outages(np.array([0]), np.array([5.0]), np.array([50.0]), np.array([False])))
    first = Order(LINEAR, np.zeros(3), slope=1.0)
    assert replay(jobs, first, Backfill(), jobs.submit, np.arange(3)).tolist() == [0, 6, 10]
    assert replay(drained, first, Backfill(), jobs.submit, np.arange(3)).tolist() == [0, 6, 26]


@pytest.mark.parametrize(("announced", "starts"), [(False, [0, 1, 11]), (True, [50, 1, 61])])
def test_only_what_ends_by_its_limit_starts_before_an_announced_outage(announced: bool, starts: list[float]) -> None:
    """Two processors are out from 20 to 50. The jobs have limits of 30, 10 and 20 s; the last needs both processors."""
    jobs = queue([2], Job(0, 11, limit=30), Job(1, 10), Job(2, 10, demand=2, limit=20))
    jobs = jobs._replace(outages=Outages(np.array([0]), np.array([20.0]), np.array([50.0]), np.array([announced])))
    order = Order(LINEAR, np.zeros(3), slope=1.0)
    assert replay(jobs, order, Backfill(), jobs.submit, np.arange(3)).tolist() == starts


def test_between_passes_only_jobs_before_the_first_that_waits_start() -> None:
    """Jobs 2 and 3 may overtake job 1, one after the other, but only every 30 s; job 1 starts as soon as it fits."""
    jobs = queue([2], Job(1, 100), Job(2, 20, demand=2), Job(3, 8), Job(4, 8))
    order = Order(LINEAR, np.zeros(4), slope=1.0)
    assert replay(jobs, order, Backfill(), jobs.submit, np.arange(4)).tolist() == [1, 101, 3, 11]
    assert replay(jobs, order, Backfill(interval=30.0), jobs.submit, np.arange(4)).tolist() == [1, 101, 30, 60]


def test_an_outage_that_ended_long_before_the_first_job_changes_no_share() -> None:
    """User 0 has used the processor, so user 1 comes first, even after an outage a hundred thousand half-lives ago."""
    jobs = queue([1], Job(0, 10, user=0), Job(1, 10, user=0), Job(2, 10, user=1))
    old = Outages(np.array([0]), np.array([-1e5]), np.array([-9e4]), np.array([False]))
    order = Order(LINEAR, np.zeros(3), fair_share=1.0, half_life=1.0)
    starts = [0, 20, 10]
    assert replay(jobs, order, Backfill(), jobs.submit, np.arange(3)).tolist() == starts
    assert replay(jobs._replace(outages=old), order, Backfill(), jobs.submit, np.arange(3)).tolist() == starts


def test_a_reservation_has_whole_machines_but_only_units_of_a_pool() -> None:
    """Job 2 has reserved both machines from 10 s on, so job 3 does not start on the first, although units are left.

    On one pool of the same size, job 3 starts at once.
    """
    early, late = (Job(0, 100), Job(0, 10, demand=2)), Job(2, 30)
    machines = queue([3, 2], *early, Job(1, 50, nodes=2), late)
    pool = queue([5], *early, Job(1, 50, demand=3), late)
    order = Order(LINEAR, np.zeros(4), slope=1.0)
    assert replay(machines, order, Backfill(), machines.submit, np.arange(4)).tolist() == [0, 0, 10, 10]
    assert replay(pool, order, Backfill(), pool.submit, np.arange(4)).tolist() == [0, 0, 10, 2]
