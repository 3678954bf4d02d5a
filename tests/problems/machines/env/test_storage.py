"""Files of event-driven scenarios: what is written is read again; what is damaged is refused with a one-line error."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import params
from machine_rows import LOG, few, write_log

from pipeline.core.config import MachinePark, Params
from pipeline.core.storage import LOGS, link_log, scenario_log
from pipeline.core.types import ANY_KIND, SPLITS
from pipeline.errors import UserError
from pipeline.problems.machines.env.nouns import Jobs
from pipeline.problems.machines.env.storage import read_jobsets, read_park, write_jobsets, write_park

PARK = MachinePark(
    resources=("cpu", "gpu"), capacity=((4000, 500), (8000, 0)), kind=(0, 1), kind_names=("T4", ""), unit=1 / 3
)
FOLDER = Path("few")


def jobs(seed: int, count: int) -> Jobs:
    rng = np.random.default_rng(seed)
    return Jobs(
        arrival=np.sort(rng.uniform(0, 100, count)),
        duration=rng.uniform(0.1, 9, count),
        estimate=rng.uniform(0.1, 9, count),
        demand=np.column_stack([rng.integers(0, 4001, count), np.zeros(count, dtype=np.int64)]),
        nodes=rng.integers(1, 3, count),
        kinds=np.full(count, ANY_KIND),
    )


JOBSETS = {60: [jobs(1, 3), jobs(2, 5)], 120: [jobs(3, 1)]}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def one_line(caught: pytest.ExceptionInfo[UserError]) -> str:
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_jobsets_come_back_to_the_last_bit() -> None:
    for split in SPLITS:
        write_jobsets(FOLDER, split, JOBSETS, PARK)
        found = read_jobsets(FOLDER, split, PARK)
        assert {load: len(group) for load, group in found.items()} == {60: 2, 120: 1}
        for load, group in JOBSETS.items():
            for mine, theirs in zip(group, found[load], strict=True):
                for name in Jobs._fields:
                    one, other = getattr(mine, name), getattr(theirs, name)
                    assert (one.dtype, one.tolist()) == (other.dtype, other.tolist()), name


def test_the_same_jobsets_are_the_same_bytes() -> None:
    for folder in ("one", "other"):
        write_jobsets(Path(folder), "train", JOBSETS, PARK)
    assert Path("one/train.parquet").read_bytes() == Path("other/train.parquet").read_bytes()


def test_machines_come_back_to_the_last_bit() -> None:
    write_park(FOLDER, PARK)
    assert read_park(FOLDER) == PARK


def test_a_missing_file_is_told_with_what_makes_it() -> None:
    with pytest.raises(UserError, match=r"^few/machines.json is missing: run 'dvc repro'"):
        read_park(FOLDER)
    with pytest.raises(UserError, match=r"^few/test.parquet is missing: run 'dvc repro'"):
        read_jobsets(FOLDER, "test", PARK)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": [0]}, "expected a kind for each of 2 machines, got 1"),
        ({"kind": [0, 2]}, "expected kinds below 2, got 2"),
        ({"capacity": [[4000, 500], [8000]]}, "machine 1: expected 2 amounts, got 1"),
        ({"capacity": [[4000, 500], [8000, -1]]}, "capacity.1.1"),
        ({"unit": 0}, "unit"),
        ({"units": 1}, "units"),
    ],
)
def test_damaged_machines_are_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    write_park(FOLDER, PARK)
    path = FOLDER / "machines.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=r"^few/machines.json: not the machines of a scenario \(") as caught:
        read_park(FOLDER)
    assert said in one_line(caught)


def test_what_is_no_json_is_refused_in_one_line() -> None:
    FOLDER.mkdir()
    (FOLDER / "machines.json").write_bytes(b"\xff{")
    with pytest.raises(UserError, match=r"^few/machines.json: not the machines of a scenario \(") as caught:
        read_park(FOLDER)
    one_line(caught)


@pytest.mark.parametrize(
    ("column", "row", "value", "said"),
    [
        ("duration", 1, 0.0, "duration: expected above 0, got 0.0 in row 2"),
        ("estimate", 0, np.inf, "estimate: expected finite, got inf in row 1"),
        ("arrival", 2, 0.0, "arrivals of a jobset never fall"),
        ("nodes", 0, 0, "nodes: expected at least 1, got 0 in row 1"),
        ("kinds", 0, 0, "kinds: expected at least 1, got 0 in row 1"),
        ("job", 1, 7, "jobs of a jobset are numbered 0, 1, 2, ..."),
        ("cpu", 0, 9000, "load 60, jobset 0: job 0 wants [9000, 0] thousandths on "),
        ("nodes", 8, 3, "load 120, jobset 0: job 0 wants "),
    ],
)
def test_a_damaged_job_is_refused_in_one_line(column: str, row: int, value: float, said: str) -> None:
    write_jobsets(FOLDER, "train", JOBSETS, PARK)
    path = FOLDER / "train.parquet"
    frame = pd.read_parquet(path)
    frame.loc[row, column] = value
    frame.to_parquet(path, index=False)
    with pytest.raises(UserError, match=r"^few/train.parquet: ") as caught:
        read_jobsets(FOLDER, "train", PARK)
    assert said in one_line(caught)


def test_jobs_of_other_machines_are_refused_by_their_columns() -> None:
    write_jobsets(FOLDER, "train", JOBSETS, PARK)
    other = PARK.model_copy(update={"resources": ("cpu", "memory")})
    with pytest.raises(UserError, match=r"^few/train.parquet: columns: .*; missing memory; unknown gpu$"):
        read_jobsets(FOLDER, "train", other)


def test_a_flipped_bit_is_refused() -> None:
    write_jobsets(FOLDER, "train", JOBSETS, PARK)
    path = FOLDER / "train.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 8] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"^few/train.parquet: not a readable table"):
        read_jobsets(FOLDER, "train", PARK)


# Logs


def on_log(**workload: Any) -> Params:
    return few(workload=LOG | workload)


def test_every_scenario_has_a_folder_with_its_log_or_a_note(root: Path) -> None:
    write_log(root / "log.csv", 30)
    (root / "nodes.csv").write_text("nodes")
    link_log(on_log(nodes="nodes.csv"))
    assert {path.name for path in LOGS.iterdir()} == {*params().scenarios, "few"}
    assert (scenario_log("few") / "log").readlink() == root / "log.csv"
    assert (scenario_log("few") / "nodes").readlink() == root / "nodes.csv"
    assert (scenario_log("online") / "note").read_text().startswith("The jobs of this scenario are in data/log")
    assert (scenario_log("machines") / "note").read_text().startswith("The jobs of this scenario are synthetic")


def test_a_folder_of_files_is_a_folder_of_links(root: Path) -> None:
    for name in ("logs/part-1.csv", "logs/deep/part-2.csv"):
        write_log(root / name, 3)
    link_log(on_log(path="logs"))
    place = scenario_log("few") / "log"
    assert not place.is_symlink()
    assert (place / "part-1.csv").readlink() == root / "logs" / "part-1.csv"
    assert (place / "deep" / "part-2.csv").readlink() == root / "logs" / "deep" / "part-2.csv"


def test_back_from_a_log_the_users_file_is_untouched(root: Path) -> None:
    write_log(root / "log.csv", 30)
    content = (root / "log.csv").read_bytes()
    link_log(on_log())
    link_log(few())
    assert [path.name for path in scenario_log("few").iterdir()] == ["note"]
    assert (root / "log.csv").read_bytes() == content


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"path": "gone.csv"}, "params.yaml: scenarios.few.workload.path: no such file or folder: "),
        ({"path": "empty"}, "params.yaml: scenarios.few.workload.path: expected files in "),
        ({"nodes": "gone.csv"}, "params.yaml: scenarios.few.workload.nodes: no such file: "),
    ],
)
def test_a_log_that_is_not_there_keeps_what_was_linked(root: Path, workload: dict[str, Any], said: str) -> None:
    write_log(root / "log.csv", 30)
    (root / "empty").mkdir()
    link_log(on_log())
    with pytest.raises(UserError) as caught:
        link_log(on_log(**workload))
    assert one_line(caught).startswith(said)
    assert (scenario_log("few") / "log").readlink() == root / "log.csv"
