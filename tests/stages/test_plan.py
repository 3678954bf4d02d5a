"""`plan`: a policy with look-ahead is scored, compared and explained as a row of params.yaml."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY
from commands import contents

from pipeline.core import storage
from pipeline.core.config import Counts, Params, PoolPlan
from pipeline.errors import UserError
from pipeline.interactive.explaining.explain import CANDIDATES, ExplainRequest
from pipeline.problems import check
from pipeline.problems.pool.agents.learning import LEARNING
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.tables import JOBSET_RESULTS, TABLES
from pipeline.stages import generate, plan, tasks

Command = Callable[..., Any]
NAME = "plan_deeprm3"
ROW = PoolPlan(
    problem="pool", scenario="online", base="deeprm3", candidates=3, futures=3, ahead=60, left_job=4.0, left_work=2.5,
    decisions=300, min_z=0.5,
)  # fmt: skip
HOLD = ROW.model_copy(update={"base": "hold"})
FOLDER = Path("reports/tables/plans") / NAME


def small(params: Params, row: PoolPlan = ROW) -> Params:
    """One scenario at two loads, and a plan on it."""
    few = Counts(train=1, validation=1, test=3)
    online = params.pool_scenario("online").model_copy(update={"loads": (70, 150), "jobsets": few})
    agents = {"deeprm3": params.agent("deeprm")}
    rows = {"scenarios": {"online": online}, "agents": agents, "transfers": {}, "plans": {NAME: row}}
    return params.model_copy(update=rows)


@pytest.fixture(scope="module")
def planned(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an untrained network looked ahead."""
    root = tmp_path_factory.mktemp("planned")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        few = small(params)
        generate.run(few, "online")
        network = build(few.agent("deeprm3").network, Cluster.of(few.pool_scenario("online")), seed=3)
        storage.write_model(storage.model_folder("deeprm3", "policy"), LEARNING.model(few, "deeprm3", network))
        plan.run(few, NAME)
    return root


@pytest.mark.usefixtures("here")
def test_it_is_scored_on_every_test_jobset_and_read_with_all_others_of_the_scenario(params: Params) -> None:
    own = storage.read_table(FOLDER / "jobsets.parquet", JOBSET_RESULTS)
    assert set(own["policy"]) == {NAME}
    assert own.groupby("load")["jobset"].nunique().to_dict() == {70: 3, 150: 3}
    assert not own["unfinished"].any()
    rule = own.assign(policy="sjf")
    jobs = storage.read_table(FOLDER / "jobs.parquet", TABLES.jobs)
    for kind, name in (("heuristics", "online"), ("agents", "deeprm3")):
        storage.write_results(storage.results_folder(kind, name), [jobs], [rule], TABLES)
    assert set(storage.read_jobset_results(small(params), "online", TABLES)["policy"]) == {"sjf", NAME}


@pytest.mark.usefixtures("here")
def test_the_same_bytes_come_again_and_nothing_old_is_left(params: Params) -> None:
    before = contents(FOLDER)
    (FOLDER / "old.parquet").write_bytes(b"")
    plan.run(small(params), NAME)
    assert contents(FOLDER) == before


@pytest.mark.usefixtures("here")
def test_explain_names_what_each_candidate_would_have_gained(
    params: Params, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        tasks.explain(small(params), ExplainRequest(NAME, 2, 24))
        said = capsys.readouterr().err
    frame = storage.read_table(Path("reports/explain") / NAME / "candidates.csv", CANDIDATES)
    assert frame.groupby("load")["jobset"].nunique().to_dict() == {70: 2, 150: 2}
    each = frame.groupby(["load", "jobset", "decision"])
    assert (each["taken"].sum() == 1).all()
    assert (each.size() >= 2).all()
    own = frame[frame["rank"] == 0]
    assert (own["gain"] == 0).all()
    taken = frame[frame["taken"] & (frame["rank"] > 0)]
    assert len(taken) > 0
    assert (taken["gain"] > ROW.min_z * taken["error"] - 1e-5).all()
    changed = f"took another action than deeprm3 in {len(taken)} ({100 * len(taken) / len(own):.1f} %)"
    assert f"{NAME}: tried {len(frame)} candidates in {len(own)} decisions; {changed}" in said


@pytest.mark.usefixtures("here")
def test_a_base_without_a_model_or_without_tuning_is_told_in_one_line(params: Params) -> None:
    before = contents(FOLDER)
    gone = storage.results_folder("heuristics", "online")
    storage.discard(gone)
    with pytest.raises(UserError, match=r"^reports/tables/heuristics/online/chosen.json"):
        plan.run(small(params, HOLD), NAME)
    model = storage.model_folder("deeprm3", "policy")
    kept = model.rename(model.with_name("kept"))
    try:
        with pytest.raises(UserError, match=r"^models/deeprm3/policy"):
            plan.run(small(params), NAME)
    finally:
        kept.rename(model)
    assert contents(FOLDER) == before


def test_an_unknown_plan_is_told_with_those_there_are(command: Command) -> None:
    outcome = command("evaluate", "plan", "plan_sjf")
    assert outcome.code == 2
    assert outcome.err.startswith("error: unknown plan 'plan_sjf'")


def test_who_is_to_be_explained_is_looked_for_among_agents_and_plans(command: Command) -> None:
    patch = REPOSITORY / "docs" / "params" / "plan.diff"
    subprocess.run(["patch", "--strip=1", "--quiet", f"--input={patch}"], check=True)
    outcome = command("explain", "--policy", "plan_deprm3")
    assert outcome.code == 2
    assert outcome.err.startswith("error: policy 'plan_deprm3': a policy with look-ahead needs ")
    assert "did you mean 'plan_deeprm3'?" in outcome.err


def test_a_name_of_another_policy_is_refused(params: Params) -> None:
    with pytest.raises(UserError, match=r"^params.yaml: plans.hold: 'hold' is the name of another policy"):
        check(params.model_copy(update={"plans": {"hold": ROW}}))
    with pytest.raises(UserError, match=r"^params.yaml: plans.mine.base: unknown 'held'"):
        check(params.model_copy(update={"plans": {"mine": ROW.model_copy(update={"base": "held"})}}))
