"""Jobs of a play."""

import numpy as np

from benchmarks.fidelity.jobs import ORDERS, drawn


def test_jobs_are_short_fit_four_nodes_and_never_overrun_their_minutes() -> None:
    jobs = drawn(80, 7)
    assert jobs.arrival_s[0] == 0
    assert (np.diff(jobs.arrival_s) >= 0).all()
    assert (jobs.run_s.min(), jobs.run_s.max()) == (1, 8)
    assert (jobs.cpus.max(), jobs.nodes.max()) == (4, 2)
    assert (jobs.limit_min >= jobs.run_s).all()
    assert all(np.array_equal(one, other) for one, other in zip(jobs, drawn(80, 7), strict=True))


def test_orders_are_by_arrival_by_limit_and_by_area() -> None:
    jobs = drawn(3, 1)._replace(limit_min=np.array([3, 1, 2]), cpus=np.array([1, 4, 1]), nodes=np.array([1, 2, 1]))
    assert {order: score(jobs).tolist() for order, score in ORDERS.items()} == {
        "fcfs": [0, 0, 0],
        "sjf": [3, 1, 2],
        "saf": [3, 8, 2],
    }
