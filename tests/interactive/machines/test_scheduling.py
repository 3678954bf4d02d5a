"""`schedule` on many machines: who starts when and where, by rules and by a model, or one line that says why not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from machine_rows import few

from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.core.config.machines.learning import DeepSets
from pipeline.core.types import Observation, legal_actions
from pipeline.errors import UserError
from pipeline.interactive.machines import scheduling
from pipeline.interactive.machines.scheduling import SCHEDULING
from pipeline.interactive.scheduling.schedule import ScheduleRequest, schedule
from pipeline.learning.stored import weights_of
from pipeline.problems.machines.agents.networks.loading import build, shape_of
from pipeline.problems.machines.env.tables import SCHEDULE

HEAD = "job,arrival,duration,cpu,memory"
CARD = MachinesCard(
    problem="machines",
    agent="mine",
    scenario="few",
    resources=("cpu", "memory"),
    machines=3,
    slots=4,
    dispatch="greedy",
    unit=1.0,
    objective="slowdown",
    network=DeepSets(name="deepsets", hidden=8),
    play="greedy",
)


def write_agent(folder: str = "model", **changes: Any) -> str:
    """A network that nobody has trained."""
    card = CARD.model_copy(update=changes)
    network = build(card.network, shape_of(card), seed=1)
    storage.write_model(Path(folder), storage.Model(card, weights_of(network)))
    return folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def asked(policy: str = "sjf", **changes: Any) -> ScheduleRequest:
    return ScheduleRequest(Path("jobs.csv"), "few", policy, Path("out.csv"))._replace(**changes)


def crowd(jobs: int = 60) -> None:
    """Three jobsets of jobs that come faster than they can run."""
    rng = np.random.default_rng(1)
    rows = [f"jobset,{HEAD},nodes"]
    for k in range(jobs):
        cpu, memory, run = rng.integers(1, 5), rng.integers(1, 11), rng.uniform(0.5, 20)
        rows.append(f"{k % 3},{k},{k // 6},{run:.3f},{cpu},{memory},{1 + k % 2}")
    Path("jobs.csv").write_text("\n".join([*rows, ""]))


def test_the_shortest_first_is_what_is_worked_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    # `long` holds all of machine 0, `pair` both others; `short` is shorter than `next` and gets machine 0 at 10.
    rows = ["long,0,10,4,1,1", "pair,0,30,4,1,2", "next,1,20,3,1,1", "short,2,16,3,1,1"]
    Path("jobs.csv").write_text("\n".join([f"{HEAD},nodes", *rows]))
    schedule(SCHEDULING, few(), asked())
    assert Path("out.csv").read_text().splitlines() == [
        "jobset,job,start,finish,wait,slowdown,bounded_slowdown,machine,nodes",
        "0,long,0,10,0,1,1,0,1",
        "0,pair,0,30,0,1,1,1,2",
        "0,next,26,46,25,2.25,2.25,0,1",
        "0,short,10,26,8,1.5,1.5,0,1",
    ]
    said = "out.csv: 4 jobs, mean bounded slowdown 1.438, mean wait 8.25 under sjf"
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize(
    "policy",
    ["sjf", "tetris", "random", pytest.param("plan_sjf", marks=pytest.mark.slow), "model"],  # a minute to compile
)
def test_machines_hold_what_runs_on_them_and_no_job_is_left(policy: str) -> None:
    crowd()
    if policy == "model":
        write_agent()
    schedule(SCHEDULING, few(), asked(policy, out=Path("out.parquet")))
    jobs, found = pd.read_csv("jobs.csv", dtype={"jobset": str, "job": str}), pd.read_parquet("out.parquet")
    SCHEDULE.validate(found)
    assert found[["jobset", "job"]].astype(str).to_numpy().tolist() == jobs[["jobset", "job"]].to_numpy().tolist()
    assert (found["start"] >= jobs["arrival"]).all()
    assert np.allclose(found["finish"], found["start"] + jobs["duration"])
    both = jobs.join(found[["start", "finish"]])
    for _, mine in both.groupby("jobset"):
        for at in mine["start"]:
            running = mine[(mine["start"] <= at) & (at < mine["finish"])]
            assert (running["cpu"] * running["nodes"]).sum() <= 12
    first = Path("out.parquet").read_bytes()
    schedule(SCHEDULING, few(), asked(policy, out=Path("out.parquet")))
    assert Path("out.parquet").read_bytes() == first


def test_a_jobset_is_scheduled_as_if_it_were_alone() -> None:
    crowd()
    schedule(SCHEDULING, few(), asked())
    together = pd.read_csv("out.csv").query("jobset == 1").reset_index(drop=True)
    pd.read_csv("jobs.csv").query("jobset == 1").to_csv("jobs.csv", index=False)
    schedule(SCHEDULING, few(), asked())
    pd.testing.assert_frame_equal(together, pd.read_csv("out.csv"))


def test_other_slots_change_what_a_rule_sees() -> None:
    crowd()
    means = []
    for slots in (1, 50):
        schedule(SCHEDULING, few(), asked(slots=slots))
        means.append(pd.read_csv("out.csv")["bounded_slowdown"].mean())
    assert means[1] < means[0]


def reluctant(view: Observation, draws: np.ndarray) -> np.ndarray:
    """Starts nothing before it must."""
    legal = legal_actions(view)
    return np.where(legal[:, -1], legal.shape[1] - 1, legal.argmax(axis=1))


def test_a_policy_meets_the_pause_and_the_stall_of_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked every 16 until the 50 (ten median run times) are over after which an idle cluster must start a job: at 64.
    Path("jobs.csv").write_text(f"{HEAD}\na,0,5,1,1\n")
    monkeypatch.setattr(scheduling, "any_policy", lambda *_: reluctant)
    schedule(SCHEDULING, few(), asked())
    assert pd.read_csv("out.csv")["start"].tolist() == [64]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"policy": "sjff"}, "unknown policy 'sjff': expected a model directory or a heuristic; .*did you mean 'sjf'"),
        ({"capacity": 3}, "--capacity: not in scenario 'few': it has many machines"),
        ({"horizon": 3}, "--horizon: not in scenario 'few': it runs in continuous time and has no horizon"),
        ({"samples": 3}, "--samples: not in scenario 'few': all jobs known beforehand"),
        ({"tries": 3}, "--search: not in scenario 'few': all jobs known beforehand"),
        ({"slots": 0}, "--slots: expected at least 1, got 0"),
        ({"out": Path("out.xlsx")}, "out.xlsx: expected a name that ends in .csv"),
        ({"out": Path("jobs.csv")}, "jobs.csv: the jobs are read from it"),
        ({"policy": "model", "slots": 9}, "model: trained for slots 4; here: slots 9"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    crowd(3)
    write_agent()
    with pytest.raises(UserError, match=f"^{said}") as caught:
        schedule(SCHEDULING, few(), asked(**changes))
    assert "\n" not in str(caught.value)
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"machines": 5}, "model: trained for machines 5; here: machines 3"),
        ({"resources": ("cpu", "gpu")}, "model: trained for resources cpu, gpu; here: resources cpu, memory"),
        ({"dispatch": "easy"}, "model: trained for dispatch easy; here: dispatch greedy"),
    ],
)
def test_a_model_of_other_machines_is_refused_by_what_differs(changes: dict[str, Any], said: str) -> None:
    crowd(3)
    write_agent(**changes)
    for name in ("model", "plan_model"):
        with pytest.raises(UserError, match=f"^{said}$"):
            schedule(SCHEDULING, few(), asked(name))


def test_a_model_looks_ahead_by_its_name() -> None:
    crowd()
    write_agent()
    found = {}
    for name in ("model", "plan_model"):
        schedule(SCHEDULING, few(), asked(name))
        found[name] = pd.read_csv("out.csv")
    assert not found["plan_model"]["start"].equals(found["model"]["start"])
    assert found["plan_model"]["bounded_slowdown"].mean() < found["model"]["bounded_slowdown"].mean()
    schedule(SCHEDULING, few(), asked("plan_model"))
    pd.testing.assert_frame_equal(found["plan_model"], pd.read_csv("out.csv"))


def test_a_model_of_another_problem_is_refused() -> None:
    crowd(3)
    card = Path(write_agent()) / "policy.json"
    card.write_text(card.read_text().replace('"problem": "machines"', '"problem": "groups"'))
    with pytest.raises(UserError, match="expected a model of problem machines, found one of 'groups'"):
        schedule(SCHEDULING, few(), asked("model"))
