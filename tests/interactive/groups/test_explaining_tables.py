"""Where a controller and shares by demand part ways, by hand."""

import numpy as np
import pytest
from group_builders import CLUSTER, Job, drawn_jobs, jobset, observed

from pipeline.interactive.groups.explaining import (
    DIFFERENCES,
    FEATURES,
    ORDERS,
    SHARES,
    STATES,
    Decisions,
    differences,
    mean_shares,
    orders,
    record,
    states,
)
from pipeline.problems.groups.env.evaluation.play import controlled
from pipeline.problems.groups.env.nouns import Observation, batch
from pipeline.problems.groups.env.teachers import fixed, proportional

LONG = CLUSTER._replace(time_limit=1000.0)
# Both jobs of group 0 come at once, and one of group 1: demand is 3 to 1 of four units; the third waits for the first.
WORKED = batch([jobset(Job(0, 12, 2, group=0), Job(0, 3, 2, group=0, queue=1), Job(0, 2, 1, group=1))])


def test_decisions_are_those_while_any_job_waits() -> None:
    found = record(controlled(fixed(LONG, 1, [1, 1])), WORKED, LONG)
    # At 0 all wait; by 10 the job of the first queue waits for the other, which began first, until 3: nobody waits.
    assert found.share.tolist() == [[0.5, 0.5]]
    assert found.by_demand.tolist() == [[0.75, 0.25]]
    assert found.order.tolist() == [[1, 1]]


def test_what_is_moved_is_half_of_what_differs() -> None:
    table = DIFFERENCES.validate(differences(record(controlled(fixed(LONG, 1, [1, 1])), WORKED, LONG), np.array([80])))
    assert table.to_numpy().tolist() == [[80, 1, 0.25, 0]]


def test_shares_by_demand_move_nothing() -> None:
    jobs = batch([drawn_jobs(200, k, count=40) for k in range(3)])
    decisions = record(controlled(proportional(LONG, 0)), jobs, LONG)
    table = DIFFERENCES.validate(differences(decisions, np.array([60, 60, 90])))
    assert table["moved"].tolist() == [0, 0]
    assert table["unchanged"].tolist() == [1, 1]
    assert STATES.validate(states(decisions, LONG))["difference"].eq(0).all()


def test_every_feature_has_bins_and_differences_cancel_out() -> None:
    jobs = batch([drawn_jobs(200, k, count=60) for k in range(3)])
    decisions = record(controlled(fixed(LONG, 0, [3, 1])), jobs, LONG)
    table = STATES.validate(states(decisions, LONG))
    assert set(table["feature"]) == set(FEATURES)
    whole = table[table["feature"] == "waiting"]
    assert whole["n"].sum() == 2 * len(decisions.share)
    assert (whole["difference"] * whole["n"]).sum() == pytest.approx(0, abs=1e-9)
    shares = SHARES.validate(mean_shares(decisions, np.array([60, 60, 90])))
    assert shares["share"].tolist() == [0.75, 0.25] * 2


def test_orders_are_counted_where_jobs_of_several_queues_wait() -> None:
    views = [observed(CLUSTER, waiting=[[1, 2], [0, 4]]), observed(CLUSTER, waiting=[[1, 1], [3, 1]])]
    view = Observation._make(np.concatenate(field) for field in zip(*views, strict=True))
    none = np.zeros((2, 2))
    decisions = Decisions(np.array([0, 0]), view, np.array([[1, 0], [0, 1]]), none, none)
    table = ORDERS.validate(orders(decisions, np.array([60]), ["a > b", "b > a"]))
    assert table["n"].tolist() == [1, 2]
    assert table["part"].tolist() == pytest.approx([1 / 3, 2 / 3])


def test_features_are_of_the_group_by_hand() -> None:
    view = observed(
        CLUSTER,
        waiting=[[1, 2], [1, 0]],
        waiting_work=[[1.0, 2.0], [5.0, 0.0]],
        head_waited=[[5.0, 20.0], [0.0, 0.0]],
        used=[[3], [1]],
        releasing=[[2], [0]],
    )
    found = {name: value(view, CLUSTER)[0].tolist() for name, (_, value) in FEATURES.items()}
    assert found["waiting"] == [0.75, 0.25]
    assert found["work"] == [0.5, 2.5]
    assert found["waited"] == [2, 0]
    assert found["used"] == [0.75, 0.25]
    assert found["releasing"] == [1, 0]
    assert np.isnan(found["recent"]).all()
