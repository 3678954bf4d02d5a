"""What squeue, sinfo and sprio print is read to the letter, or refused with a one-line error; nothing crashes."""

import json

import pytest
from hypothesis import given, settings
from live_machines import assert_answers
from slurm_said import SUBMIT, TABLES, sinfo, squeue

from pipeline.core.config import Params
from pipeline.interactive.machines.live.state import MachinesDecision
from pipeline.problems import problem_of
from pipeline.steering.factors import PoolDecision, changed_factors
from pipeline.steering.rows import OddError, Reading, factors_in, jobs_in, nodes_in
from pipeline.steering.states import check_state, find_pools, scored_jobs, state_of


def test_a_job_is_read_to_the_letter() -> None:
    line = squeue(JobID=9, ArrayJobID=3, StateCompact="R", Partition="a,b", StartTime="1795446090", NumNodes="2-4",
                  TimeLimit="1-02:03:04", tres="cpu=8,mem=1.50G,node=2,gres/gpu=2", NodeList="n[1-2]")  # fmt: skip
    (job,) = jobs_in(line + "\n")
    assert (job.number, job.array, job.state, job.partitions, job.nodes) == (9, 3, "R", ("a", "b"), 2)
    assert job.limit_s == 86_400 + 2 * 3600 + 3 * 60 + 4
    assert job.units == {"cpu": 8.0, "memory": 1.5, "gpu": 2.0}
    assert (job.submitted, job.started, job.places) == (float(SUBMIT), float(SUBMIT) + 2, "n[1-2]")
    assert not job.reserved


def test_no_limit_and_no_time_are_none() -> None:
    (job,) = jobs_in(squeue(TimeLimit="UNLIMITED", EligibleTime="N/A", Reservation="maintenance"))
    assert (job.limit_s, job.eligible, job.reserved) == (None, None, True)


def test_nodes_have_gpus_and_take_jobs_or_do_not() -> None:
    said = "\n".join(
        [sinfo("n1", gres="gpu:a100:2(S:0-1),gpu:1"), sinfo("n2", state="drained"), sinfo("n3", state="down*")]
    )
    found = nodes_in(said)
    assert [node.takes for node in found] == [True, False, False]
    assert found[0].units == {"cpu": 4.0, "memory": 1.0, "gpu": 3.0}


TAKES = """idle mixed allocated completing planned idle~ IDLE~ idle# mixed# idle@ allocated@ idle- mixed- allocated+
    IDLE+CLOUD IDLE+CLOUD+POWERED_DOWN MIXED+CLOUD+POWERING_UP IDLE+PLANNED IDLE+REBOOT_REQUESTED IDLE+DYNAMIC_NORM
    powered_down powering_up mix alloc"""
REFUSES = """idle* mixed* allocated* idle~* idle! idle% idle$ idle^ down down~ down* drained drained* draining draining@
    drng reserved maint maint$ inval unknown future fail failing perfctrs blocked power_down powering_down reboot_issued
    IDLE+DRAIN ALLOCATED+DRAIN IDLE+CLOUD+POWERING_DOWN IDLE+CLOUD+POWER_DOWN MIXED+NOT_RESPONDING IDLE+MAINTENANCE
    IDLE+RESERVED IDLE+FAIL IDLE+INVALID_REG IDLE+REBOOT_ISSUED DOWN+CLOUD idler"""


@pytest.mark.parametrize(("states", "takes"), [(TAKES, True), (REFUSES, False)])
def test_a_state_of_a_node_is_a_word_and_flags(states: str, takes: bool) -> None:
    said = "\n".join(sinfo(f"n{k}", state=state) for k, state in enumerate(states.split()))
    found = dict(zip(states.split(), [node.takes for node in nodes_in(said)], strict=True))
    assert found == dict.fromkeys(found, takes)


def test_a_job_that_is_suspended_still_holds_its_node() -> None:
    """Else it would be taken for one that has ended, and its node for a free one."""
    running = [squeue(JobID=k, StateCompact=state, StartTime=SUBMIT) for k, state in enumerate(("R", "S", "SO", "RS"))]
    (pool,), _ = find_pools(
        Reading(0.0, jobs_in("\n".join([*running, squeue(JobID=9)])), nodes_in(sinfo("n1")), {9: 0}), {}
    )
    assert [job.number for job in pool.running] == [0, 1, 2, 3]


def test_factors_may_be_below_nothing() -> None:
    assert factors_in("3|-7\n2|0\n") == {3: -7, 2: 0}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (squeue(JobID="2;reboot"), "squeue, line 1: expected a whole number, found '2;reboot'"),
        (squeue(TimeLimit="soon"), "squeue, line 1: expected a time limit, found 'soon'"),
        (squeue(tres="four"), "squeue, line 1: expected amounts as cpu=4,mem=400M, found 'four'"),
        (squeue(SubmitTime="N/A"), "squeue, line 1: expected a whole number, found 'N/A'"),
        (squeue(UserName="a|b"), "squeue, line 1: expected 18 fields, found 19"),
        (squeue(NumNodes="many"), "squeue, line 1: expected a number of nodes, found 'many'"),
        (squeue() + "\n" + squeue(), "squeue, line 2: job 2 is there twice"),
        (squeue(Partition=""), "squeue, line 1: expected a name, found ''"),
    ],
)
def test_an_odd_line_is_refused(line: str, said: str) -> None:
    with pytest.raises(OddError) as refused:
        jobs_in(line)
    assert str(refused.value) == said


def must_be_a_line(said: str) -> None:
    assert len(said.splitlines()) == 1


def refused_or_answered(params: Params, said: tuple[str, str, str]) -> None:
    live = problem_of(params, "machines").live
    try:
        reading = Reading(2e9, jobs_in(said[0]), nodes_in(said[1]), factors_in(said[2]))
        pools = find_pools(reading, {})[0]
        states = [check_state(live.state, state_of(pool, reading.now, ("cpu", "memory"), 1.0)) for pool in pools]
    except OddError as error:
        must_be_a_line(str(error))
        return
    sjf = live.decider(params, "machines", "sjf", {})
    for pool, state in zip(pools, states, strict=True):
        decision = sjf(state)
        assert isinstance(decision, MachinesDecision)
        assert_answers(json.loads(state.model_dump_json()), decision.model_dump())
        order, _ = scored_jobs(decision, pool)
        new = changed_factors(PoolDecision(pool, order, "", "", ""), reading.factors, 5000)
        before = {job.array: reading.factors[job.number] for job in pool.waiting}
        after = [new.get(number, before[number]) for number in order]
        assert after == sorted(set(after), reverse=True)


@settings(max_examples=300)
@given(said=TABLES)
def test_whatever_slurm_says_is_refused_or_answered(params: Params, said: tuple[str, str, str]) -> None:
    refused_or_answered(params, said)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(said=TABLES)
def test_ten_thousand_times_it_is_refused_or_answered(params: Params, said: tuple[str, str, str]) -> None:
    refused_or_answered(params, said)
