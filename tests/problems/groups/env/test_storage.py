"""Files of user groups' scenarios: what is written is read again; what is damaged is refused with a one-line error."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.core.config import Params, check_params
from pipeline.core.storage import link_log, scenario_log
from pipeline.core.types import SPLITS
from pipeline.errors import UserError
from pipeline.problems.groups.env.nouns import Jobs, SharedCluster
from pipeline.problems.groups.env.storage import read_jobsets, write_jobsets
from pipeline.problems.groups.env.workload.source import cluster_of, draw

FOLDER, NAMES = Path("shared"), ("cpu", "memory")
CLUSTER = SharedCluster(np.array([10, 4]), 3, np.array([[0, 1]]), interval=5.0, borrowing=False, time_limit=100.0)


def jobs(seed: int, count: int) -> Jobs:
    rng = np.random.default_rng(seed)
    return Jobs(
        arrival=np.sort(rng.uniform(0, 100, count)),
        duration=rng.uniform(0.1, 9, count),
        estimate=rng.uniform(0.1, 9, count),
        demand=np.column_stack([rng.integers(0, 11, count), rng.integers(0, 5, count)]),
        group=rng.integers(0, 3, count),
        queue=rng.integers(0, 2, count),
    )


JOBSETS = {60: [jobs(1, 3), jobs(2, 5)], 120: [jobs(3, 1)]}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def test_jobsets_come_back_to_the_last_bit() -> None:
    for split in SPLITS:
        write_jobsets(FOLDER, split, JOBSETS, NAMES)
        found = read_jobsets(FOLDER, split, NAMES, CLUSTER)
        assert {load: len(group) for load, group in found.items()} == {60: 2, 120: 1}
        for load, group in JOBSETS.items():
            for mine, theirs in zip(group, found[load], strict=True):
                for name in Jobs._fields:
                    one, other = getattr(mine, name), getattr(theirs, name)
                    assert (one.dtype, one.tolist()) == (other.dtype, other.tolist()), name


def test_the_same_jobsets_are_the_same_bytes() -> None:
    for folder in ("one", "other"):
        write_jobsets(Path(folder), "train", JOBSETS, NAMES)
    assert Path("one/train.parquet").read_bytes() == Path("other/train.parquet").read_bytes()


def test_a_missing_file_is_told_with_what_makes_it() -> None:
    with pytest.raises(UserError, match=r"^shared/test.parquet is missing: run 'dvc repro'"):
        read_jobsets(FOLDER, "test", NAMES, CLUSTER)


def test_a_split_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'fresh'"):
        read_jobsets(FOLDER, "fresh", NAMES, CLUSTER)


@pytest.mark.parametrize(
    ("column", "row", "value", "said"),
    [
        ("duration", 1, 0.0, "duration: expected above 0, got 0.0 in row 2"),
        ("arrival", 2, 0.0, "arrivals of a jobset never fall"),
        ("job", 1, 7, "jobs of a jobset are numbered 0, 1, 2, ..."),
        ("group", 4, 3, "load 60, jobset 1: job 1 has group 3; expected 0 to 2"),
        ("queue", 8, 2, "load 120, jobset 0: job 0 has queue 2; expected 0 to 1"),
        ("cpu", 0, 11, "load 60, jobset 0: job 0 wants [11, "),
    ],
)
def test_a_damaged_job_is_refused_in_one_line(column: str, row: int, value: float, said: str) -> None:
    write_jobsets(FOLDER, "train", JOBSETS, NAMES)
    path = FOLDER / "train.parquet"
    frame = pd.read_parquet(path)
    frame.loc[row, column] = value
    frame.to_parquet(path, index=False)
    with pytest.raises(UserError, match=r"^shared/train.parquet: ") as caught:
        read_jobsets(FOLDER, "train", NAMES, CLUSTER)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_jobs_of_another_cluster_are_refused_by_their_columns() -> None:
    write_jobsets(FOLDER, "train", JOBSETS, NAMES)
    with pytest.raises(UserError, match=r"^shared/train.parquet: columns: .*; missing gpu; unknown memory$"):
        read_jobsets(FOLDER, "train", ("cpu", "gpu"), CLUSTER)


# Logs


def shared(workload: dict[str, Any]) -> Params:
    rows: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    rows["scenarios"]["shared"] = {
        "problem": "groups",
        "resources": {"cpu": 10},
        "groups": 2,
        "queues": ["short", "long"],
        "orders": [["short", "long"]],
        "levels": [0, 1],
        "interval": 3600.0,
        "borrowing": False,
        "policies_know": "durations",
        "time_limit": 1e6,
        "workload": workload,
        "loads": [100],
        "jobsets": {"train": 1, "validation": 1, "test": 1},
    }
    return check_params(rows, "params.yaml")


def on_log(path: str) -> Params:
    return shared({"name": "log", "format": "swf", "path": path, "bounds": [60.0], "window": 10})


def test_a_scenario_of_groups_has_a_folder_with_its_log(root: Path) -> None:
    (root / "log.swf").write_text("; a log\n")
    link_log(on_log("log.swf"))
    assert [path.name for path in scenario_log("shared").iterdir()] == ["log"]
    assert (scenario_log("shared") / "log").readlink() == root / "log.swf"


def test_a_log_that_is_not_there_is_told_by_its_key() -> None:
    with pytest.raises(UserError, match=r"^params.yaml: scenarios.shared.workload.path: no such file or folder: "):
        link_log(on_log("gone.swf"))


# The stage that writes them


def test_what_the_stage_draws_is_what_is_read() -> None:
    mix = {"short": 0.5, "long": 0.5}
    run = {"short": 600.0, "long": 7200.0}
    recipe = {"name": "sinusoidal", "intervals": 5, "period": 4.0, "amplitude": 0.5, "run": run, "spread": 1.0}
    params = shared(recipe | {"demand": {"cpu": [1, 2]}, "mixes": [mix]})
    drawn = draw(params, "shared", lambda done, said="": None)
    drawn.write(FOLDER)
    cluster = cluster_of(params.groups_scenario("shared"))
    for split in SPLITS:
        found = read_jobsets(FOLDER, split, ["cpu"], cluster)
        assert list(found) == [100]
        assert found[100][0].arrival.tolist() == drawn.splits[split][100][0].arrival.tolist()
