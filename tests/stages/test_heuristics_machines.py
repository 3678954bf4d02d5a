"""A scenario of many machines from its jobs to the comparison, next to one of a pooled cluster."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from machine_rows import AGENT, LOG, PPO_RECIPE, rows, write_log
from repositories import SCENARIO as POOLED
from repositories import Folder, begin, ran

from pipeline.core import storage
from pipeline.core.config import Params, check_params
from pipeline.core.schemas import COMPARISON, SUMMARY
from pipeline.errors import UserError
from pipeline.problems import problem
from pipeline.problems.machines.env.tables import SUMMARY as MACHINES_SUMMARY
from pipeline.problems.machines.env.tables import TABLES
from pipeline.problems.machines.heuristics.rules import HEURISTICS as MACHINES_HEURISTICS
from pipeline.problems.machines.heuristics.scoring import scoring
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.stages import compare, generate, heuristics, log


def small() -> Params:
    """One scenario of each of two problems, and an agent for the one with many machines."""
    values: dict[str, Any] = rows()
    values["scenarios"] = {"few": values["scenarios"]["few"], "online": values["scenarios"]["online"] | POOLED}
    values["recipes"]["clipped"] = PPO_RECIPE
    values["agents"] = {"mine": AGENT}
    values |= {"transfers": {}, "hindsight": {"scenarios": [], "jobsets": 2, "limit": 0.01}}
    values["heuristics"] = {
        "pool": {"tetris_weights": [0.5], "hold_quantiles": [1.0]},
        "machines": {"mixes": [[0.0, 0.0], [1.0, 0.0]]},
        "groups": {},
    }
    values["evaluation"]["resamples"] = 100
    return check_params(values, "params.yaml")


def stand_in(params: Params) -> None:
    """Write results of the agent as if it placed at random before learning, and the shortest job first afterwards."""
    here, policies = scoring(params, "few", "mine"), {"mine_pretrained": "random", "mine": "sjf"}
    scored = here.score({name: MACHINES_HEURISTICS[rule] for name, rule in policies.items()}, jobsets=here.read("test"))
    tables = [list(found) for found in zip(*(done[:2] for done in scored.values()), strict=True)]
    storage.write_results(storage.results_folder("agents", "mine"), *tables, TABLES)
    updates = [(1, {"validation": 2.0}), (2, {"validation": 1.5})]
    storage.write_curve(storage.curve_file("mine", "finetune"), updates)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both scenarios were compared."""
    root = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        params = small()
        log.run(params)
        for scenario in params.scenarios:
            generate.run(params, scenario)
            heuristics.run(params, scenario)
        stand_in(params)
        compare.run(params)
    return root


def test_every_split_is_written_with_its_machines(compared: Path) -> None:
    names = {"machines.json", "origin.json", "train.parquet", "validation.parquet", "test.parquet"}
    assert {path.name for path in (compared / "data/jobsets/few").iterdir()} == names
    assert {path.name for path in (compared / "data/jobsets/online").iterdir()} == names - {"machines.json"}


def test_each_problem_has_its_own_tables_of_results(compared: Path) -> None:
    for scenario, word, known in (("few", "machines", MACHINES_HEURISTICS), ("online", "pool", HEURISTICS)):
        folder = compared / "reports/tables/heuristics" / scenario
        tables = problem(word).tables
        jobsets = tables.jobsets.validate(pd.read_parquet(folder / "jobsets.parquet"))
        tables.jobs.validate(pd.read_parquet(folder / "jobs.parquet"))
        assert list(jobsets["policy"].unique()) == list(known)


def test_the_mix_that_validation_chose_is_told(compared: Path) -> None:
    chosen = json.loads((compared / "reports/tables/heuristics/few/chosen.json").read_text())
    knobs = chosen["knobs"]
    assert (knobs["tetris_packing"], knobs["tetris_fairness"]) in ((0.0, 0.0), (1.0, 0.0))
    means = chosen["validation"]
    assert set(means) == set(MACHINES_HEURISTICS)
    for load, best in chosen["best"].items():
        assert means[best][load] == min(row[load] for row in means.values())


def test_the_summary_has_both_and_invents_nothing(compared: Path) -> None:
    summary = SUMMARY.validate(pd.read_csv(compared / "reports/summary.csv").astype({"makespan": float}))
    untold = summary.groupby("scenario")["not_work_conserving"].agg(lambda column: column.isna().all())
    assert untold.to_dict() == {"few": True, "online": False}
    assert not summary.drop(columns="not_work_conserving").isna().any().any()


def test_waits_are_told_of_many_machines_only(compared: Path) -> None:
    events = storage.read_table(compared / "reports/machines_summary.csv", MACHINES_SUMMARY)
    assert set(events["scenario"]) == {"few"}
    assert set(events["policy"]) == {*MACHINES_HEURISTICS, "mine", "mine_pretrained"}
    mine, sjf = (events[events["policy"] == name].drop(columns="policy") for name in ("mine", "sjf"))
    assert mine.to_numpy().tolist() == sjf.to_numpy().tolist()


def test_policies_are_compared_on_the_same_jobsets(compared: Path) -> None:
    comparison = storage.read_table(compared / "reports/comparison.csv", COMPARISON)
    mine = comparison[(comparison["policy"] == "mine") & (comparison["load"] == "all")].set_index("against")
    assert set(mine.index) == {"sjf", "tetris", "best_heuristic", "mine_pretrained"}
    assert mine.loc["sjf", "difference"] == 0
    metrics = json.loads((compared / "reports/metrics.json").read_text())
    assert set(metrics["few"]) == {"best_heuristic", "mine", "sjf", "tetris", "unfinished_jobs"}
    assert metrics["few"]["mine"]["percent_from_sjf"] == 0
    assert "hold" in metrics["online"]


def test_figures_and_words_are_of_both(compared: Path) -> None:
    drawn = {path.stem for path in (compared / "reports/figures").iterdir()}
    assert drawn == {"slowdown_few", "slowdown_online", "learning_mine"}
    points = json.loads((compared / "reports/slowdown.json").read_text())
    assert {(point["scenario"], point["load"]) for point in points} == {
        *(("few", load) for load in (60, 120)),
        *(("online", load) for load in (60, 150)),
    }
    words = (compared / "reports/comparison.md").read_text()
    assert "**few**: mean bounded slowdown (difference from sjf" in words


def test_results_of_the_other_problem_are_refused(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(compared)
    params = small()
    values = params.model_copy(update={"scenarios": {"few": params.scenarios["online"]}})
    with pytest.raises(UserError, match=r"^reports/tables/heuristics/few/jobsets.parquet: columns: "):
        storage.read_jobset_results(values, "few", problem("pool").tables)


# DVC


@pytest.fixture
def logged(tmp_path: Path, warm_environment: dict[str, str]) -> Folder:
    """A repository with two scenarios of many machines, one of them on a log outside the repository."""
    folder = begin(tmp_path / "repository", warm_environment)
    write_log(tmp_path / "logs" / "small.csv", 200)
    row = rows()["scenarios"]["few"]
    workload = LOG | {"path": "../logs/small.csv", "accept": ["load"]}
    folder.edit(scenarios__drawn=row, scenarios__logged=row | {"workload": workload})
    return folder


STAGES = ("log", "generate@online", "generate@drawn", "generate@logged")


def test_a_changed_log_under_the_same_path_touches_its_own_scenario_alone(logged: Folder) -> None:
    path = logged.root.parent / "logs" / "small.csv"
    assert sorted(ran(logged.dvc("repro", *STAGES))) == sorted(STAGES)
    assert json.loads(logged.dvc("status", "--json", *STAGES)) == {}
    first, content = logged.outs(), path.read_bytes()
    write_log(path, 200, run=20.0)
    assert set(json.loads(logged.dvc("status", "--json", *STAGES))) == {"log", "generate@logged"}
    assert ran(logged.dvc("repro", *STAGES)) == ["log", "generate@logged"]
    second = logged.outs()
    assert {name for name in first if first[name] != second[name]} == {"data/logs", "data/jobsets/logged"}
    path.write_bytes(content)
    logged.dvc("repro", *STAGES)
    assert logged.outs() == first
    assert path.read_bytes() == content
