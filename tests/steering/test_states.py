"""What a policy knows of a Slurm cluster."""

from typing import Any

import pytest
from slurm_said import SUBMIT, sinfo, squeue

from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.interactive.live.states import Ranked
from pipeline.interactive.machines.live.state import MachinesDecision
from pipeline.problems import problem_of
from pipeline.steering.rows import OddError, jobs_in, nodes_in
from pipeline.steering.states import ENDLESS_S, Pool, resources_of, scored_jobs, state_of

NOW = float(SUBMIT) + 100


def told(waiting: list[str], running: list[str], nodes: list[str], unit_s: float = 1.0) -> Any:
    pool = Pool(("work",), nodes_in("\n".join(nodes)), jobs_in("\n".join(waiting)), jobs_in("\n".join(running)))
    return state_of(pool, NOW, ("cpu", "memory"), unit_s)


def test_a_waiting_job_is_told_by_node_and_in_the_scenarios_time() -> None:
    (job,) = told([squeue(NumNodes=2, tres="cpu=8,mem=2G,node=2")], [], [sinfo("n1")], unit_s=60.0)["waiting"]
    assert (job["id"], job["arrived"], job["duration"], job["nodes"]) == ("2", float(SUBMIT) / 60, 3.0, 2)
    assert job["demand"] == {"cpu": 4.0, "memory": 1.0}


def test_a_job_without_a_limit_runs_for_a_year() -> None:
    assert told([squeue(TimeLimit="UNLIMITED")], [], [sinfo("n1")])["waiting"][0]["duration"] == ENDLESS_S


def test_what_runs_holds_even_shares_and_never_more_than_there_is(params: Params) -> None:
    wide: dict[str, object] = {"NumNodes": 3, "tres": "cpu=7,mem=1M,node=3", "NodeList": "n[1-2],other"}
    running = [squeue(JobID=k, StateCompact="R", StartTime=SUBMIT, **wide) for k in (5, 6)]
    state = told([squeue()], running, [sinfo("n1"), sinfo("n2")])
    assert [(one["id"], one["demand"]["cpu"]) for one in state["running"]] == [
        *(("5 on n1", 2.333), ("5 on n2", 2.333)),
        *(("6 on n1", 1.667), ("6 on n2", 1.667)),
    ]
    live = problem_of(params, "machines").live
    assert live.decider(params, "machines", "sjf", {})(live.state.model_validate(state)).model_dump()["starts"] == ()


def test_a_drained_node_is_held_wholly() -> None:
    busy = squeue(JobID=5, StateCompact="R", StartTime=SUBMIT, NodeList="n1")
    (held,) = told([squeue()], [busy], [sinfo("n1", state="draining")])["running"]
    assert (held["id"], held["demand"]) == ("n1 takes no jobs", {"cpu": 4.0, "memory": 1.0})


def test_a_scenario_with_a_resource_that_slurm_is_not_read_for_is_refused() -> None:
    example = {"waiting": [{"demand": {"cpu": 1, "disk": 2}}]}
    with pytest.raises(UserError, match="scenario 'x': resource 'disk': Slurm is read for cpu, memory, gpu"):
        resources_of(example, "x")
    assert resources_of({"waiting": [{"demand": {"memory": 1, "cpu": 1}}]}, "x") == ("cpu", "memory")


def ordered(*numbers: int) -> MachinesDecision:
    return MachinesDecision(order=tuple(Ranked(job=str(number), score=1.0) for number in numbers), starts=())


def test_an_order_of_other_jobs_is_refused() -> None:
    pool = Pool(("work",), [], jobs_in(squeue()), [])
    assert scored_jobs(ordered(2), pool) == ([2], [1.0])
    for other in ([3], [2, 2]):
        with pytest.raises(OddError, match="none of these jobs"):
            scored_jobs(ordered(*other), pool)
