"""Named parameter files: patches of params.yaml for runs that the default leaves out."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from builders import REPOSITORY

from pipeline.core.config import Params, load_params
from pipeline.problems import check

PATCHES = sorted((REPOSITORY / "docs" / "params").glob("*.diff"))
WHOLE = sorted((REPOSITORY / "docs" / "results").glob("*/params.yaml"))
ADDS = {
    "as_published": {
        "scenarios": {"alibaba", "text", "shares_two"},
        "recipes": {"a3c_paper", "dagger_paper", "dqn_source"},
        "agents": {
            *(f"{name}_{kind}_paper" for name in ("deepk8s", "alibaba") for kind in ("ppo", "a3c", "dagger")),
            *("deepk8s_ppo_vector", "deepk8s_dagger_vector", "deeprm_off_2", "deeprm_off_3"),
            *("deeprm_makespan", "deeprm_utilisation", "deeprm_text"),
            *("deeprm2_2", "deeprm2_3", "controller_two"),
            *(f"controller_source_{seed}" for seed in (1, 2, 3)),
        },
    },
    "offline": {
        "agents": {"deeprm_off_long", "deeprm_off_long_2", "deeprm_off_long_3"},
        "plans": {"plan_deeprm_off_long", "plan_deeprm_off_long_2", "plan_deeprm_off_long_3"},
    },
    "deeprm_paper": {
        "scenarios": {"bernoulli", "reserving", "all_reserving", "poisson"},
        "recipes": {"paper_value"},
        "agents": {
            *(f"reserving_{load}" for load in (70, 110, 130)),
            *("all_loads", "baseline_jobset", "baseline_value"),
            *("poisson_deeprm_70_makespan", "poisson_deeprm2_70_makespan"),
        },
    },
    "groups_80": {"scenarios": {"shares_80"}, "recipes": {"dqn_source_80"}, "agents": {"controller_source_80"}},
    "objectives": {"agents": {"deeprm_time", "deeprm2_time"}},
    "plan": {
        "plans": {
            *("plan_hold", "plan_deeprm3", "plan_linear", "plan_deeprm_off", "plan_deeprm3_off"),
            *("plan_sjf", "plan_deepk8s_ppo"),
        },
    },
    "sizes": {"scenarios": {"slots_60", "bursts", "three"}, "transfers": {"slots_60", "bursts", "three"}},
}


def test_there_are_whole_files() -> None:
    assert len(WHOLE) >= 4


def test_every_patch_is_named_where_people_are_told_of_them() -> None:
    text = (REPOSITORY / "docs" / "how-to" / "change-parameters.md").read_text()
    assert {path.stem for path in PATCHES} == set(ADDS)
    assert [path.name for path in PATCHES if f"git apply docs/params/{path.name}" not in text] == []


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_a_patch_adds_what_it_says_and_nothing_else(patch: Path, tmp_path: Path, params: Params) -> None:
    shutil.copy(REPOSITORY / "params.yaml", tmp_path)
    for words in (["init", "--quiet"], ["apply", str(patch)]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {".git", "params.yaml"}
    patched = load_params(tmp_path / "params.yaml")
    check(patched)
    before, after = params.model_dump(), patched.model_dump()
    for section, value in after.items():
        added = ADDS[patch.stem].get(section, set())
        rest = {name: row for name, row in value.items() if name not in added} if added else value
        was = before.get(section, {})  # a section without rows is omitted
        assert rest == was
        assert not added or set(value) - set(was) == added


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.parent.name)
def test_a_whole_file_of_a_results_page_has_every_section_that_stages_are_made_of(path: Path) -> None:
    stages = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]
    rows = {stage["foreach"].strip("${}") for stage in stages.values() if "foreach" in stage}
    read = {name for stage in stages.values() for name in stage.get("do", stage).get("params", [])}
    needed = {name.split(".")[0] for name in rows | read}
    check(load_params(path))
    assert needed - set(yaml.safe_load(path.read_text())) == set()
