"""Who stands against whom, and who is left alone."""

from slurm_said import sinfo, squeue

from pipeline.steering.rows import Reading, factors_in, jobs_in, nodes_in
from pipeline.steering.states import find_pools


def reading(jobs: list[str], nodes: list[str], factors: str) -> Reading:
    return Reading(2e9, jobs_in("\n".join(jobs)), nodes_in("\n".join(nodes)), factors_in(factors))


def test_partitions_that_share_nodes_compete_and_others_do_not() -> None:
    nodes = [sinfo("n1", "a"), sinfo("n1", "b"), sinfo("n2", "b"), sinfo("n3", "c")]
    jobs = [squeue(JobID=k, Partition=name) for k, name in enumerate("abc", start=1)]
    found = find_pools(reading(jobs, nodes, "1|0\n2|0\n3|0"), {})[0]
    assert [pool.partitions for pool in found] == [("a", "b"), ("c",)]
    assert [[job.number for job in pool.waiting] for pool in found] == [[1, 2], [3]]
    assert [node.name for node in found[0].nodes] == ["n1", "n2"]


def test_another_tier_is_another_queue_on_the_same_nodes() -> None:
    nodes = [sinfo("n1", "a"), sinfo("n1", "urgent", tier=9)]
    jobs = [squeue(JobID=1, Partition="a"), squeue(JobID=2, Partition="urgent"), squeue(JobID=3, Partition="a,urgent")]
    found = find_pools(reading(jobs, nodes, "1|0\n2|0\n3|0"), {})[0]
    assert [[job.number for job in pool.waiting] for pool in found] == [[1], [2, 3]]


def test_a_job_of_two_partitions_joins_them() -> None:
    nodes = [sinfo("n1", "a"), sinfo("n2", "b")]
    jobs = [squeue(JobID=1, Partition="a"), squeue(JobID=2, Partition="b"), squeue(JobID=3, Partition="a,b")]
    (pool,) = find_pools(reading(jobs, nodes, "1|0\n2|0\n3|0"), {})[0]
    assert [job.number for job in pool.waiting] == [1, 2, 3]


def test_an_array_is_one_and_so_are_its_tasks_that_were_split_off() -> None:
    jobs = [squeue(JobID=3), squeue(JobID=9, ArrayJobID=3), squeue(JobID=4)]
    (pool,) = find_pools(reading(jobs, [sinfo("n1")], "3|0\n9|0\n4|0"), {})[0]
    assert [job.array for job in pool.waiting] == [3, 4]


def test_who_cannot_start_is_reserved_or_belongs_to_others_is_left_alone() -> None:
    jobs = [squeue(JobID=1), squeue(JobID=2), squeue(JobID=3, Reservation="tuesday"), squeue(JobID=4)]
    jobs.append(squeue(JobID=5, Partition="gone"))
    (pool,), left = find_pools(reading(jobs, [sinfo("n1")], "1|0\n3|0\n4|0\n5|0"), {4: "frozen"})
    assert [job.number for job in pool.waiting] == [1]
    assert left == {2: "not eligible", 3: "in a reservation", 4: "frozen", 5: "no node"}


def test_where_nobody_waits_nobody_is_asked() -> None:
    assert find_pools(reading([squeue(StateCompact="R", StartTime="1")], [sinfo("n1")], ""), {})[0] == []
