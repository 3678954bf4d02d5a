"""A scenario of user groups from its jobs to the comparison, next to one of a pooled cluster."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from group_rows import AGENT, ROW, rows
from repositories import SCENARIO as STEPS
from repositories import bytes_of

from pipeline.core import storage
from pipeline.core.config import Params, check_params
from pipeline.core.schemas import COMPARISON, DELAY, SUMMARY
from pipeline.core.schemas.tables import CURVE
from pipeline.errors import UserError
from pipeline.problems.groups.agents import learning
from pipeline.problems.groups.agents.training import algorithms, off_policy
from pipeline.problems.groups.agents.training.q_learning import Learner
from pipeline.problems.groups.env.tables import GROUPS_FAIRNESS, GROUPS_SUMMARY, OFF_POLICY, TABLES, jobs_schema
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.problems.groups.heuristics.tuning import HEURISTICS
from pipeline.problems.machines.env.tables import SUMMARY as MACHINES_SUMMARY
from pipeline.problems.pool.env.tables import TABLES as TABLES_OF_POOL
from pipeline.problems.pool.heuristics.scores import HEURISTICS as OF_POOL
from pipeline.stages import compare, evaluate, finetune, gate, generate, heuristics, log, pretrain

MINE = ["mine_pretrained", "mine", "mine_own"]
REFERENCES = {"proportional", "drf", "fixed", "lookahead"}


def small(**changes: Any) -> Params:
    """A scenario of user groups with its agent, and a pooled one without agents; `changes` apply to the agent."""
    values: dict[str, Any] = rows()
    values["scenarios"] = {"shared": values["scenarios"]["shared"], "online": values["scenarios"]["online"] | STEPS}
    values["agents"] = {"mine": AGENT | changes}
    values |= {"transfers": {}, "hindsight": {"scenarios": [], "jobsets": 2, "limit": 0.01}}
    values["heuristics"] = {
        "pool": {"tetris_weights": [0.5], "hold_quantiles": [1.0]},
        "machines": {"mixes": [[0.0, 0.0]]},
        "groups": {},
    }
    values["evaluation"]["resamples"] = 100
    return check_params(values, "params.yaml")


def run_all(params: Params) -> None:
    """Run every stage, one after the other."""
    log.run(params)
    for scenario in params.scenarios:
        generate.run(params, scenario)
    for agent in params.agents:
        pretrain.run(params, agent)
        finetune.run(params, agent)
    for scenario in params.scenarios:
        heuristics.run(params, scenario)
    for agent in params.agents:
        evaluate.run(params, agent)
    compare.run(params)


def ran(root: Path, params: Params) -> Path:
    """Run all stages in a folder, with off-policy estimates for such short jobsets, from few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(off_policy, "FIT", off_policy.FIT._replace(steps=20))
        patch.setattr(off_policy, "EARLIEST", 1)
        patch.setattr(off_policy, "LATEST", 4)
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        run_all(params)
    return root


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all stages ran."""
    return ran(tmp_path_factory.mktemp("compared"), small())


@pytest.fixture
def inside(compared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder as the working directory; tests must not change it."""
    monkeypatch.chdir(compared)
    return compared


# Tables


def test_jobsets_of_every_split_are_written(compared: Path) -> None:
    folder = compared / "data/jobsets/shared"
    names = {"origin.json", *(f"{split}.parquet" for split in ("train", "validation", "test"))}
    assert {path.name for path in folder.iterdir()} == names
    for split, count in ROW["jobsets"].items():
        jobs = jobs_schema(["cpu", "memory"]).validate(pd.read_parquet(folder / f"{split}.parquet"))
        assert jobs.groupby("load")["jobset"].nunique().to_dict() == {60: count, 120: count}


@pytest.mark.parametrize(("place", "policies"), [("heuristics/shared", list(RULES)), ("agents/mine", MINE)])
def test_every_table_of_results_passes_its_schema(compared: Path, place: str, policies: list[str]) -> None:
    folder, tables = compared / "reports/tables" / place, TABLES
    schemas = {"jobs": tables.jobs, "jobsets": tables.jobsets, **tables.also}
    found = {path.stem: schemas[path.stem].validate(pd.read_parquet(path)) for path in folder.glob("*.parquet")}
    assert set(found) == set(schemas) - ({"off_policy"} if "heuristics" in place else set())
    for name, frame in found.items():
        if name != "off_policy":
            assert list(frame["policy"].unique()) == policies
    assert found["jobsets"].groupby(["policy", "load"]).size().eq(4).all()
    assert found["jobs"]["jobset"].max() == 2  # there are four jobsets


def test_rules_expect_nothing_and_agents_do(inside: Path) -> None:
    intervals = storage.read_also(small(), "shared", TABLES, "intervals")
    told = intervals.groupby("policy")[["q", "realised"]].agg(lambda column: column.notna().mean())
    assert told.loc[MINE].eq(1).all(axis=None)
    assert told.drop(MINE).eq(0).all(axis=None)
    # The agent's reward is the negative cost of waiting, so the realised return is the negative discounted cost.
    mine = intervals[intervals["policy"] == "mine"].groupby(["load", "jobset", "group"])
    for _, rows_of_one in mine:
        cost, realised = rows_of_one["cost"].to_numpy(), rows_of_one["realised"].to_numpy()
        assert realised == pytest.approx(-cost + 0.5 * np.append(realised[1:], 0), abs=1e-9)


def test_an_agent_is_scored_before_and_after_learning_and_without_the_knapsack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learning, "stored", lambda params, agent, which: which)
    monkeypatch.setattr(learning, "_player", lambda params, agent, network, alone: (network, alone))
    assert learning.policies(small(), "mine") == {
        "mine_pretrained": ("pretrained", False),
        "mine": ("policy", False),
        "mine_own": ("policy", True),
    }


def test_off_policy_estimates_are_of_rules_and_of_the_agent(inside: Path) -> None:
    found = storage.read_table(inside / "reports/off_policy.csv", OFF_POLICY)
    assert found["policy"].tolist() == [*HEURISTICS, "mine_pretrained", "mine"]
    assert (found["n"] > 0).all()


def test_jobsets_that_end_before_they_are_handed_over_have_no_estimates(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_policy, "EARLIEST", off_policy.LATEST - 1)
    found = learning.examined(small(), "mine")["off_policy"]
    assert OFF_POLICY.validate(found).empty


def test_knobs_and_the_best_rules_are_told(compared: Path) -> None:
    chosen = json.loads((compared / "reports/tables/heuristics/shared/chosen.json").read_text())
    orders = [f"{name}_order" for name in (*HEURISTICS, "capacity", "undivided", "fixed")]
    assert set(chosen["knobs"]) == {*orders, "fixed_0", "fixed_1", "part_0", "part_1"}
    assert set(chosen["validation"]) == set(RULES)
    rules = {name: means for name, means in chosen["validation"].items() if name not in ("oracle", "undivided")}
    for load, best in chosen["best"].items():
        assert rules[best][load] == min(means[load] for means in rules.values())
    assert set(chosen["best_delay"]) == {"60", "120"}
    assert set(chosen["best_delay"].values()) <= set(rules)


def test_what_knows_the_future_is_nobodys_champion(
    compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(compared, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    path = Path("reports/tables/heuristics/shared/chosen.json")
    chosen = json.loads(path.read_text())
    chosen["validation"]["oracle"] = dict.fromkeys(chosen["validation"]["oracle"], 0.5)  # better than possible
    path.write_text(json.dumps(chosen))
    Path("champions.yaml").write_text("# Nobody yet.\n")
    params = small()
    assert params.gate is not None
    rules = params.gate.model_copy(update={"fewer": {"shared": params.scenarios["shared"].jobsets.test}})
    gate.run(params.model_copy(update={"gate": rules}))
    verdict = json.loads(Path("reports/gate.json").read_text())["shared"]
    assert verdict["promote"]["policy"] in set(RULES) - {"oracle", "undivided"}


def test_the_choices_of_other_problems_know_nothing_of_waiting_time(compared: Path) -> None:
    chosen = json.loads((compared / "reports/tables/heuristics/online/chosen.json").read_text())
    assert set(chosen) == {"knobs", "best", "validation"}


# The comparison


def test_the_summary_has_both_and_invents_nothing(compared: Path) -> None:
    summary = SUMMARY.validate(pd.read_csv(compared / "reports/summary.csv").astype({"makespan": float}))
    untold = summary.groupby("scenario")["not_work_conserving"].agg(lambda column: column.isna().all())
    assert untold.to_dict() == {"online": False, "shared": True}
    assert list(summary[summary["scenario"] == "online"]["policy"].unique()) == list(OF_POOL)


def test_waiting_times_and_fairness_are_told_of_groups_only(inside: Path) -> None:
    groups = storage.read_table(inside / "reports/groups_summary.csv", GROUPS_SUMMARY)
    assert set(groups["scenario"]) == {"shared"}
    assert set(groups["policy"]) == {*RULES, *MINE}
    results = storage.read_jobset_results(small(), "shared", TABLES).groupby(["load", "policy"])["mean_wait"].mean()
    assert groups.set_index(["load", "policy"])["delay"].to_dict() == pytest.approx(results.to_dict(), rel=1e-5)
    fairness = storage.read_table(inside / "reports/groups_fairness.csv", GROUPS_FAIRNESS)
    groups_of = fairness.groupby(["policy", "load"])["group"].apply(tuple)
    assert (set(groups_of), len(groups_of)) == ({(0, 1)}, 2 * len([*RULES, *MINE]))
    assert storage.read_table(inside / "reports/machines_summary.csv", MACHINES_SUMMARY).empty


def test_policies_are_compared_by_slowdown_and_by_waiting_time(inside: Path) -> None:
    comparison = storage.read_table(inside / "reports/comparison.csv", COMPARISON)
    delay = storage.read_table(inside / "reports/delay.csv", DELAY)
    assert set(comparison["scenario"]) == {"shared", "online"}
    assert set(delay["scenario"]) == {"shared"}
    for table in (comparison, delay):
        mine = table[(table["policy"] == "mine") & (table["load"] == "all")].set_index("against")
        assert set(mine.index) == {*REFERENCES, "best_heuristic", "mine_pretrained"}
    summary = storage.read_table(inside / "reports/groups_summary.csv", GROUPS_SUMMARY)
    waits = summary.groupby("policy")["delay"].mean()
    mine = delay[(delay["policy"] == "mine") & (delay["load"] == "all")].set_index("against")
    assert mine.loc["drf", ["mean", "mean_against"]].tolist() == pytest.approx([waits["mine"], waits["drf"]], rel=1e-4)
    assert mine.loc["drf", "difference"] == pytest.approx(waits["mine"] / waits["drf"] - 1, rel=1e-3)


def test_key_metrics_name_the_references_of_each_problem(compared: Path) -> None:
    metrics = json.loads((compared / "reports/metrics.json").read_text())
    assert set(metrics["shared"]) == {*REFERENCES, "best_heuristic", "mine", "undivided", "unfinished_jobs"}
    assert set(metrics["shared"]["mine"]) == {
        *("percent_from_best", "percent_from_proportional", "bounded_slowdown"),
        *("wait", "delay_percent_from_proportional"),  # the agent's own objective
    }
    strong = {"hold", "hold_until", "hold_long", "tetris"}
    assert set(metrics["online"]) == {*strong, "best_heuristic", "sjf", "unfinished_jobs"}


def test_figures_and_words_are_of_both(compared: Path) -> None:
    drawn = {path.stem for path in (compared / "reports/figures").iterdir()}
    own = {"shares_shared", "delay_shared", "calibration_mine"}
    assert drawn == {"slowdown_shared", "slowdown_online", "learning_mine", *own}
    words = (compared / "reports/comparison.md").read_text()
    assert "**shared**: mean bounded slowdown (difference from drf" in words
    assert "**shared**: mean waiting time (difference from drf" in words
    assert "**online**: mean waiting time" not in words


def test_training_begins_where_pretraining_ended(inside: Path) -> None:
    first, then = (storage.read_table(storage.curve_file("mine", stage), CURVE) for stage in ("pretrain", "finetune"))
    validation = [curve[curve["metric"] == "validation"]["value"].tolist() for curve in (first, then)]
    assert validation[0] == validation[1][:1]  # the pretrained weights get the same score
    assert then["update"].unique().tolist() == [0, 1, 2, 3, 4]


# Again


def test_the_same_run_writes_the_same_bytes(compared: Path, tmp_path: Path) -> None:
    again, before = bytes_of(ran(tmp_path, small())), bytes_of(compared)
    assert {name for name in before.keys() | again.keys() if before.get(name) != again.get(name)} == set()
    assert "models/mine/policy/policy.safetensors" in before


@pytest.fixture
def place(compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DVC repository with the jobsets, in which every update writes a checkpoint."""
    (tmp_path / ".dvc").mkdir()
    (tmp_path / "data").symlink_to(compared / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    monkeypatch.setenv("PIPELINE_CHECKPOINT_S", "0")
    return tmp_path


def killed_in(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: int) -> None:
    """Let a function work for some calls, and then raise."""
    whole, count = getattr(owner, name), iter(range(calls))

    def mortal(*words: Any) -> Any:
        if next(count, None) is None:
            raise KeyboardInterrupt
        return whole(*words)

    monkeypatch.setattr(owner, name, mortal)


def test_a_killed_training_goes_on_to_the_same_bytes(
    place: Path, compared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params, before = small(), bytes_of(compared)
    for stage, owner, name, calls, done in ((pretrain, Learner, "step", 3, 1), (finetune, algorithms, "_played", 2, 2)):
        with pytest.MonkeyPatch.context() as patch:
            killed_in(patch, owner, name, calls)
            with pytest.raises(KeyboardInterrupt):
                stage.run(params, "mine")
        capsys.readouterr()
        stage.run(params, "mine")
        assert f"mine: resumed at update {done} of " in capsys.readouterr().err
    after = {name: content for name, content in bytes_of(place).items() if not name.startswith("data")}
    assert after == {name: before[name] for name in after}
    assert "models/mine/policy/policy.safetensors" in after
    assert not list((place / ".dvc").rglob("*.safetensors"))


# Other rows


def test_a_scenario_without_agents_and_an_agent_without_a_log_are_compared(tmp_path: Path) -> None:
    values: dict[str, Any] = small(pretrain={"name": "none"}).model_dump(mode="json")
    few = {"train": 2, "validation": 1, "test": 2}
    values["scenarios"] = {"bare": ROW | {"jobsets": few}, "shared": ROW | {"jobsets": few}}
    root = ran(tmp_path, check_params(values, "params.yaml"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert storage.read_table(root / "reports/off_policy.csv", OFF_POLICY).empty
        delay = storage.read_table(root / "reports/delay.csv", DELAY)
    assert set(delay["scenario"]) == {"bare", "shared"}
    assert not (root / "reports/figures/calibration_bare.png").exists()
    assert (root / "reports/figures/shares_bare.png").exists()


def test_without_user_groups_their_tables_are_empty_and_can_be_read(tmp_path: Path) -> None:
    values = small().model_dump(mode="json")
    values["scenarios"] = {"online": values["scenarios"]["online"]}
    values["agents"] = {"mine": rows()["agents"]["deeprm"]}
    values["agents"]["mine"]["finetune"] |= {"loads": [150], "updates": 1, "jobsets": 1, "episodes": 2}
    root = ran(tmp_path, check_params(values, "params.yaml"))
    for name, schema in {
        "delay": DELAY,
        "groups_summary": GROUPS_SUMMARY,
        "groups_fairness": GROUPS_FAIRNESS,
        "off_policy": OFF_POLICY,
    }.items():
        assert storage.read_table(root / f"reports/{name}.csv", schema).empty
    assert "waiting time" not in (root / "reports/comparison.md").read_text()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("levels", [0, 1, 2], r"levels \(0\.0, 0\.5, 1\.0, 2\.0\); params.yaml has \(0\.0, 1\.0, 2\.0\) now"),
        ("interval", 4.0, r"interval 5\.0; params.yaml has 4\.0 now"),
        ("orders", [["short", "long"]], r"orders .*; params.yaml has \(\('short', 'long'\),\) now"),
        ("resources", {"cpu": 9, "memory": 6}, r"resources \{'cpu': 8, 'memory': 6\}; params.yaml has .* now"),
    ],
)
def test_a_model_of_another_cluster_is_refused_in_one_line(inside: Path, place: str, value: Any, said: str) -> None:
    values = small().model_dump(mode="json")
    values["scenarios"]["shared"][place] = value
    with pytest.raises(UserError, match=rf"^models/mine/pretrained: {said}: run 'dvc repro' first$"):
        learning.stored(check_params(values, "params.yaml"), "mine", "pretrained")


def test_results_of_another_problem_are_refused(inside: Path) -> None:
    with pytest.raises(UserError, match=r"^reports/tables/heuristics/shared/jobsets.parquet: columns: "):
        storage.read_jobset_results(small(), "shared", TABLES_OF_POOL)
