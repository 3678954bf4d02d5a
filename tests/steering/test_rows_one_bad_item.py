"""One job, node or line that cannot be judged leaves the policy in charge of all others."""

from typing import Any

import pytest
from slurm_said import SUBMIT, sinfo, squeue

from pipeline.core.config import Params
from pipeline.interactive.machines.live.state import MachinesDecision
from pipeline.problems import problem_of
from pipeline.steering.rows import OddError, Reading, factors_in, jobs_in, nodes_in
from pipeline.steering.states import UNREAD, check_state, empty_pools, find_pools, misfits, scored_jobs, state_of

NOW = float(SUBMIT) + 100
SHORT, LONG = squeue(JobID=2, TimeLimit="1:00"), squeue(JobID=3, TimeLimit="9:00")
NODES = "\n".join(sinfo(f"n{k}") for k in (1, 2))


def asked(
    params: Params, *lines: str, nodes: str = NODES, unit_s: float = 1.0
) -> tuple[list[int], MachinesDecision, Any]:
    """What shortest-first says of a queue: its order, the decision, and the jobs that are left alone."""
    live, jobs = problem_of(params, "machines").live, jobs_in("\n".join(lines))
    factors = factors_in("\n".join(f"{job.number}|0" for job in jobs if job.state == "PD"))
    (pool,), left = find_pools(Reading(NOW, jobs, nodes_in(nodes), factors), {})
    state = check_state(live.state, state_of(pool, NOW, ("cpu", "memory"), unit_s))
    decision = live.decider(params, "machines", "sjf", {})(state)
    assert isinstance(decision, MachinesDecision)
    return scored_jobs(decision, pool)[0], decision, left


@pytest.mark.parametrize(
    "bad",
    [
        {"NumNodes": 1001},
        {"NumNodes": "9999999M"},
        {"tres": "cpu=99999999,mem=999999999999P"},
        {"tres": "cpu=999999999999P"},
        {"tres": "billing=4"},
        {"TimeLimit": "999999-00:00:00", "tres": "cpu=64"},
        {"EligibleTime": int(NOW) + 9, "tres": "cpu=64"},
        {"UserName": "u" * 500, "tres": "cpu=64"},
    ],
)
@pytest.mark.parametrize("unit_s", [0.001, 1.0, 1e6])
def test_a_job_of_any_size_leaves_the_others_in_order(params: Params, bad: dict[str, object], unit_s: float) -> None:
    order, decision, _ = asked(params, squeue(JobID=1, **bad), LONG, SHORT, unit_s=unit_s)
    assert [job for job in order if job != 1] == [2, 3]
    if "billing" not in str(bad):
        assert decision.never == ("1",)


@pytest.mark.parametrize(
    "line",
    [
        squeue(JobID=1, TimeLimit="soon"),
        squeue(JobID=1, tres="four"),
        squeue(JobID=1, NumNodes="many"),
        squeue(JobID=1, SubmitTime="N/A"),
        squeue(JobID="1;reboot"),
        squeue(JobID=1, UserName="a|b"),
        squeue(JobID=1, Partition=""),
    ],
)
def test_a_line_that_cannot_be_read_leaves_its_job_alone(params: Params, line: str) -> None:
    order, _, left = asked(params, LONG, line, SHORT)
    assert order == [2, 3]
    assert list(left.values()) == [UNREAD]


def test_a_running_job_whose_places_cannot_be_read_leaves_the_others_in_order(params: Params) -> None:
    runs = [squeue(JobID=k, StateCompact="R", StartTime=SUBMIT, NodeList="n[1") for k in (7, 8)]
    assert asked(params, *runs, LONG, SHORT)[0] == [2, 3]


def test_a_job_that_is_there_twice_is_left_alone(params: Params) -> None:
    order, _, left = asked(params, squeue(JobID=1), squeue(JobID=1), LONG, SHORT, squeue(JobID=4))
    assert (order, list(left.values())) == ([2, 4, 3], [UNREAD, UNREAD])


def test_lines_of_which_more_than_half_cannot_be_read_are_refused() -> None:
    bad = squeue(JobID=1, TimeLimit="soon")
    assert [job.odd for job in jobs_in(f"{SHORT}\n{bad}")] == [
        "",
        "squeue, line 2: expected a time limit, found 'soon'",
    ]
    with pytest.raises(OddError, match="squeue, line 1: expected a time limit, found 'soon'"):
        jobs_in("\n".join([bad, SHORT, squeue(JobID=4, TimeLimit="late")]))


@pytest.mark.parametrize(
    "odd", ["n3|work|up|1|idle|many|1024|(null)", "n3|work|up|1|idle|4", "n3|work|up|1|idle|4|9E|x"]
)
def test_a_node_that_cannot_be_read_is_left_out(params: Params, odd: str) -> None:
    order, decision, _ = asked(params, LONG, SHORT, nodes=f"{NODES}\nn3|work|up|1|idle{odd}")
    assert order == [2, 3]
    assert {name for start in decision.starts for name in start.machines} == {"n1", "n2"}


def test_a_node_of_absurd_size_leaves_the_others_in_order(params: Params) -> None:
    assert asked(params, LONG, SHORT, nodes=f"{NODES}\nn3|work|up|1|idle|999999999999|999999999999|gpu:999999")[0] == [
        2,
        3,
    ]


def test_five_thousand_nodes_and_twenty_thousand_pairs_are_decided(params: Params) -> None:
    nodes = "\n".join(sinfo(f"n{k}") for k in range(5000))
    run = [
        squeue(JobID=10 + k, StateCompact="R", StartTime=SUBMIT, NodeList=f"n[{5 * (k % 1000)}-{5 * (k % 1000) + 4}]",
               NumNodes=5, tres="cpu=5,mem=5M,node=5") for k in range(4000)
    ]  # fmt: skip
    assert asked(params, *run, LONG, SHORT, nodes=nodes)[0] == [2, 3]


def test_order_of_arrival_is_what_is_left_where_nothing_can_be_asked() -> None:
    later = squeue(JobID=1, EligibleTime=int(SUBMIT) + 5)
    reading = Reading(NOW, jobs_in("\n".join([later, LONG, SHORT])), nodes_in(NODES), {1: 0, 2: 0, 3: 0})
    assert find_pools(reading, {})[0][0].by_arrival == [2, 3, 1]


def test_a_model_of_other_machines_says_so_for_each_queue(params: Params) -> None:
    nodes = nodes_in(f"{NODES}\n{sinfo('m1', 'other')}")
    assert [pool.partitions for pool in empty_pools(nodes)] == [("other",), ("work",)]
    assert list(misfits(params, "machines", nodes)) == [
        "other: the model refuses these nodes (trained for 5 machines; here: 1): Slurm's own order applies",
        "work: the model refuses these nodes (trained for 5 machines; here: 2): Slurm's own order applies",
    ]
    five = nodes_in("\n".join(sinfo(f"n{k}") for k in range(5)))
    known = [node._replace(units={"cpu": 10.0, "memory": 64.0, "gpu": 0.0}) for node in five]
    assert list(misfits(params, "machines", known)) == []
