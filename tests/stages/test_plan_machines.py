"""`plan` on many machines: a heuristic and a network with look-ahead, scored and explained as rows of params.yaml."""

from pathlib import Path

import numpy as np
import pytest
from commands import contents

from pipeline.core import storage
from pipeline.core.config import Counts, MachinesCard, MachinesPlan, Params
from pipeline.errors import UserError
from pipeline.interactive.explaining.explain import CANDIDATES, ExplainRequest
from pipeline.problems import check
from pipeline.problems.machines.agents.learning import LEARNING
from pipeline.problems.machines.env.tables import TABLES
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.stages import generate, heuristics, plan, tasks

AGENT = "deepk8s_ppo"
ROW = MachinesPlan(
    problem="machines", scenario="machines", base=AGENT, candidates=3, futures=3, jobs=4, decisions=2000, min_z=0.5
)
SJF = ROW.model_copy(update={"base": "sjf", "min_z": 0.0})
FOLDER = Path("reports/tables/plans")
ROWS = {"plan_mine": ROW, "plan_sjf": SJF}


def small(params: Params, rows: dict[str, MachinesPlan] = ROWS) -> Params:
    """Two loads of few short jobsets, an agent, and the plans."""
    on = params.machines_scenario("machines")
    few = {
        "loads": (80, 110),
        "jobsets": Counts(train=1, validation=1, test=2),
        "workload": on.workload.model_copy(update={"jobs": 30}),
    }
    parts = {"scenarios": {"machines": on.model_copy(update=few)}, "agents": {AGENT: params.agent(AGENT)}}
    return params.model_copy(update={**parts, "transfers": {}, "plans": rows})


@pytest.fixture(scope="module")
def planned(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which SJF and an untrained network looked ahead."""
    root, few = tmp_path_factory.mktemp("planned"), small(params)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        generate.run(few, "machines")
        heuristics.run(few, "machines")
        row = few.agent(AGENT)
        network = LEARNING.untrained(few, AGENT, LEARNING.task(few, AGENT, row.finetune))
        storage.write_model(storage.model_folder(AGENT, "policy"), LEARNING.model(few, AGENT, network))
        for name in ROWS:
            plan.run(few, name)
    return root


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ROWS)
def test_it_is_scored_on_every_test_jobset_to_the_same_bytes(params: Params, name: str) -> None:
    own = storage.read_table(FOLDER / name / "jobsets.parquet", TABLES.jobsets)
    assert own.groupby(["policy", "load"])["jobset"].nunique().to_dict() == {(name, 80): 2, (name, 110): 2}
    assert not own["unfinished"].any()
    before = contents(FOLDER / name)
    plan.run(small(params), name)
    assert contents(FOLDER / name) == before


@pytest.mark.usefixtures("here")
def test_looking_ahead_changes_what_sjf_does_and_is_read_beside_it(params: Params) -> None:
    own = FOLDER / "plan_mine"
    jobs, rows = (storage.read_table(own / f"{name}.parquet", TABLES[k]) for k, name in enumerate(("jobs", "jobsets")))
    named = [[frame.assign(policy=AGENT)] for frame in (jobs, rows)]
    storage.write_results(storage.results_folder("agents", AGENT), *named, TABLES)
    found = storage.read_jobset_results(small(params), "machines", TABLES)
    assert set(found["policy"]) == {*HEURISTICS, AGENT, *ROWS}
    mean = found.groupby("policy")["mean_bounded_slowdown"].mean()
    assert mean["plan_sjf"] != mean["sjf"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ROWS)
def test_explain_names_what_each_candidate_would_have_gained(
    params: Params, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks.explain(small(params), ExplainRequest(name, 1, 24))
    frame = storage.read_table(Path("reports/explain") / name / "candidates.csv", CANDIDATES)
    assert frame.groupby("load")["jobset"].nunique().to_dict() == {80: 1, 110: 1}
    each = frame.groupby(["load", "jobset", "decision"])
    assert (each["taken"].sum() == 1).all()
    assert (each.size() >= 2).all()
    own, taken = frame[frame["rank"] == 0], frame[frame["taken"] & (frame["rank"] > 0)]
    assert (own["gain"] == 0).all()
    assert len(taken) > 0
    assert (taken["gain"] > ROWS[name].min_z * taken["error"] - 1e-5).all()
    best = frame.assign(net=frame["gain"] - ROWS[name].min_z * frame["error"]).groupby(["load", "jobset", "decision"])
    chosen = frame[frame["taken"]].set_index(["load", "jobset", "decision"])
    np.testing.assert_allclose(chosen["gain"] - ROWS[name].min_z * chosen["error"], best["net"].max(), atol=1e-5)
    words = f"took another action than {ROWS[name].base} in {len(taken)} ({100 * len(taken) / len(own):.1f} %)"
    assert f"{name}: tried {len(frame)} candidates in {len(own)} decisions; {words}" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_model_of_other_machines_or_none_is_told_in_one_line(params: Params) -> None:
    before, place = contents(FOLDER / "plan_mine"), storage.model_folder(AGENT, "policy")
    few, kept = small(params), place.rename(place.with_name("kept"))
    try:
        with pytest.raises(UserError, match=r"^models/deepk8s_ppo/policy"):
            plan.run(few, "plan_mine")
        model = storage.read_model(kept, MachinesCard)
        other = model.card.model_copy(update={"slots": 3})
        storage.write_model(place, storage.Model(other, model.weights))
        with pytest.raises(UserError, match=r"^models/deepk8s_ppo/policy: trained for slots 3; here: slots 10$"):
            plan.run(few, "plan_mine")
    finally:
        storage.discard(place)
        kept.rename(place)
    assert contents(FOLDER / "plan_mine") == before


def test_a_name_of_another_policy_or_an_unknown_base_is_refused(params: Params) -> None:
    with pytest.raises(UserError, match=r"^params.yaml: plans.saf: 'saf' is the name of another policy"):
        check(params.model_copy(update={"plans": {"saf": ROW}}))
    with pytest.raises(UserError, match=r"^params.yaml: plans.mine.base: unknown 'sjff'.*did you mean 'sjf'"):
        check(params.model_copy(update={"plans": {"mine": ROW.model_copy(update={"base": "sjff"})}}))
    pooled = ROW.model_copy(update={"base": "hold"})  # a heuristic of the other problem
    with pytest.raises(UserError, match=r"^params.yaml: plans.mine.base: unknown 'hold'"):
        check(params.model_copy(update={"plans": {"mine": pooled}}))
