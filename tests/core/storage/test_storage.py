"""Files: complete or absent, reproducible to the byte, checked when written and read; a user's log is never changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from builders import REPOSITORY, jobset
from forks import forked
from group_rows import AGENT

from pipeline.core import storage
from pipeline.core.config import Card, GroupsCard, MachinesCard, Params, PoolCard, PoolLog, QNetworkConfig
from pipeline.core.config.machines.learning import DeepSets
from pipeline.core.schemas import COMPARISON, DELAY, empty
from pipeline.core.schemas.tables import CURVE
from pipeline.core.storage import (
    LOG,
    Chosen,
    link_log,
    read_chosen,
    read_curve,
    read_job_results,
    read_jobset_results,
    read_json,
    read_table,
    write,
    write_chosen,
    write_curve,
    write_json,
    write_results,
    write_table,
)
from pipeline.errors import UserError
from pipeline.problems.groups.env.tables import TABLES as GROUPS
from pipeline.problems.pool.agents.networks.networks import card_of
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.storage import read_jobsets, write_jobsets
from pipeline.problems.pool.env.tables import JOBSET_RESULTS, SCHEDULE, TABLES

RESOURCES = {"cpu": 10, "memory": 10}
OFF_POLICY = GROUPS.also["off_policy"]
NOTE = "The workload is synthetic: there is no log.\n"
TWO = {
    50: [jobset((0, 3, 6, 2), (2, 1, 1, 1)), jobset((4, 2, 1, 10))],
    110: [jobset((0, 1, 1, 1)), jobset((1, 15, 5, 5), (1, 2, 2, 2), (7, 3, 3, 3))],
}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository; the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def one_line(caught: pytest.ExceptionInfo[UserError]) -> str:
    assert "\n" not in str(caught.value)
    return str(caught.value)


def schedule(slowdown: float = 4 / 3) -> pd.DataFrame:
    return pd.DataFrame({"jobset": [0], "job": ["a"], "start": [1], "finish": [4], "slowdown": [slowdown]})


# Complete or absent


def test_writing_makes_folders_and_leaves_only_the_file(root: Path) -> None:
    write(Path("a/b/c.txt"), b"one")
    write(Path("a/b/c.txt"), b"two")
    assert Path("a/b/c.txt").read_bytes() == b"two"
    assert files(root) == ["a/b/c.txt"]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.json"])
def test_a_write_that_fails_half_way_keeps_the_old_file_and_leaves_no_part(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def rewrite(number: int) -> None:
        if name == "x.json":
            write_json(Path(name), {"value": number})
        else:
            write_table(Path(name), schedule().assign(start=number), SCHEDULE)

    rewrite(1)
    before = Path(name).read_bytes()

    def full(path: Path, target: Path) -> Path:
        assert path.stat().st_size > 0
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full)
        with pytest.raises(UserError, match=rf"^{name}: cannot be written \(No space left on device\)$"):
            rewrite(2)
    assert Path(name).read_bytes() == before
    assert files(root) == [name]
    rewrite(2)
    assert Path(name).read_bytes() != before


def test_a_killed_write_leaves_the_old_file(root: Path) -> None:
    def killed() -> None:
        Path.replace = lambda *_: os._exit(9)  # type: ignore[method-assign, assignment, return-value]
        write(Path("x.txt"), b"new")

    write(Path("x.txt"), b"old")
    process = forked(killed)
    process.join()
    assert process.exitcode == 9
    assert Path("x.txt").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["taken/x.txt", "folder"])
def test_what_cannot_be_written_is_said_in_one_line(root: Path, name: str) -> None:
    Path("taken").write_text("a file")
    Path("folder").mkdir()
    with pytest.raises(UserError) as caught:
        write(Path(name), b"new")
    assert one_line(caught).startswith(f"{name}: cannot be written (")
    with pytest.raises(UserError):
        write_table(Path(name).with_suffix(".csv") if name.startswith("taken") else Path(name), schedule(), SCHEDULE)
    assert files(root) == ["taken"]
    assert Path("taken").read_text() == "a file"


# The same bytes


def test_a_process_writes_the_same_bytes_as_any_other(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys; from pathlib import Path; import numpy as np; import pandas as pd\n"
        "from pipeline.problems.pool.env.nouns import JobSet; from pipeline.problems.pool.env.tables import SCHEDULE\n"
        "from pipeline.problems.pool.env.storage import write_jobsets\n"
        "from pipeline.core.storage import write_curve, write_json, write_table\n"
        "folder = Path(sys.argv[1])\n"
        "row = {'jobset': [0], 'job': ['a'], 'start': [1], 'finish': [4], 'slowdown': [4 / 3]}\n"
        "for name in ('x.csv', 'x.csv.gz', 'x.parquet'):\n"
        "    write_table(folder / name, pd.DataFrame(row), SCHEDULE)\n"
        "job = JobSet(np.array([0]), np.array([3]), np.array([[6, 2]]))\n"
        "write_jobsets(folder, 'train', {50: [job]}, {'cpu': 10, 'memory': 10})\n"
        "write_curve(folder / 'curve.csv', [(1, {'loss': 1 / 3})])\n"
        "write_json(folder / 'x.json', {'b': 1 / 3, 'a': {'c': 2}})\n"
    )
    named = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", script, "one"], check=True, env=named)
    monkeypatch.setattr(sys, "argv", ["-c", "two/longer"])
    exec(script, {})
    written = files(Path("one"))
    assert written == ["curve.csv", "train.parquet", "x.csv", "x.csv.gz", "x.json", "x.parquet"]
    assert {name: Path("one", name).read_bytes() for name in written} == {
        name: Path("two/longer", name).read_bytes() for name in files(Path("two/longer"))
    }


def test_numbers_of_a_json_file_have_six_significant_digits() -> None:
    write_json(Path("x.json"), {"load": {"050": 1234.56789, "110": 2 / 3}, "n": 3})
    assert Path("x.json").read_text() == (
        '{\n  "load": {\n    "050": 1234.57,\n    "110": 0.666667\n  },\n  "n": 3\n}\n'
    )
    assert read_json(Path("x.json")) == {"load": {"050": 1234.57, "110": 0.666667}, "n": 3}


def test_records_are_json_too() -> None:
    write_json(Path("x.json"), [{"policy": "sjf", "slowdown": 1234.56789}, {"policy": "hold", "slowdown": 2 / 3}])
    assert read_json(Path("x.json")) == [
        {"policy": "sjf", "slowdown": 1234.57},
        {"policy": "hold", "slowdown": 0.666667},
    ]


def test_numbers_of_a_csv_file_have_six_significant_digits() -> None:
    write_table(Path("x.csv"), schedule(), SCHEDULE)
    assert Path("x.csv").read_text() == "jobset,job,start,finish,slowdown\n0,a,1,4,1.33333\n"


# Jobsets


def same(one: JobSet, other: JobSet) -> bool:
    return all(np.array_equal(*columns) for columns in zip(one, other, strict=True))


def test_jobsets_with_estimates_come_back_with_them(root: Path) -> None:
    estimated = {50: [jobs._replace(estimate=jobs.duration + k) for k, jobs in enumerate(TWO[50], 1)]}
    write_jobsets(Path("jobs"), "test", estimated, RESOURCES)
    found = read_jobsets(Path("jobs"), "test", RESOURCES)
    assert [jobs.requested.tolist() for jobs in found[50]] == [[4, 2], [4]]
    assert [jobs.duration.tolist() for jobs in found[50]] == [[3, 1], [2]]
    assert pd.read_parquet("jobs/test.parquet").columns[-1] == "estimate"


def test_jobsets_of_known_durations_have_no_other_column(root: Path) -> None:
    write_jobsets(Path("jobs"), "test", TWO, RESOURCES)
    frame = pd.read_parquet("jobs/test.parquet")
    assert list(frame) == ["load", "jobset", "job", "arrival", "duration", "cpu", "memory"]
    assert all(jobs.estimate is None for jobs in read_jobsets(Path("jobs"), "test", RESOURCES)[110])


def test_an_estimate_of_no_step_is_refused(root: Path) -> None:
    with pytest.raises(UserError, match=r"estimate: expected at least 1, got 0 in row 2$"):
        write_jobsets(Path("jobs"), "test", {50: [TWO[50][0]._replace(estimate=np.array([1, 0]))]}, RESOURCES)


def test_jobsets_come_back_as_they_were_written(root: Path) -> None:
    write_jobsets(Path("jobs"), "validation", TWO, RESOURCES)
    assert files(root) == ["jobs/validation.parquet"]
    found = read_jobsets(Path("jobs"), "validation", RESOURCES)
    assert list(found) == [50, 110]
    for load, group in TWO.items():
        assert len(found[load]) == len(group)
        assert all(same(*pair) for pair in zip(found[load], group, strict=True))


def test_neighbours_of_the_same_number_are_told_apart() -> None:
    # The last jobset of one load and the first of the next both have the number 0.
    write_jobsets(Path("jobs"), "test", {50: [jobset((0, 1, 1, 1))], 60: [jobset((5, 2, 2, 2))]}, RESOURCES)
    found = read_jobsets(Path("jobs"), "test", RESOURCES)
    assert [jobs[0].arrival.tolist() for jobs in found.values()] == [[0], [5]]


def test_a_split_of_another_name_is_a_mistake_in_the_code() -> None:
    with pytest.raises(ValueError, match=r"expected one of .* got 'tset'"):
        read_jobsets(Path("jobs"), "tset", RESOURCES)


def test_missing_jobsets_say_what_to_run() -> None:
    with pytest.raises(UserError) as caught:
        read_jobsets(Path("data/jobsets/online"), "train", RESOURCES)
    assert one_line(caught) == ("data/jobsets/online/train.parquet is missing: run 'dvc repro' (or 'dvc pull') first")


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([(3, 1, 1, 1), (2, 1, 1, 1)], "expected arrivals of a jobset never fall"),
        ([(0, 0, 1, 1)], "duration: expected at least 1, got 0 in row 1"),
        ([(-1, 1, 1, 1)], "arrival: expected at least 0, got -1 in row 1"),
        ([(0, 1, 1, -1)], "memory: expected at least 0, got -1 in row 1"),
    ],
)
def test_jobsets_that_cannot_be_are_not_written(root: Path, jobs: list[tuple[int, ...]], said: str) -> None:
    with pytest.raises(UserError) as caught:
        write_jobsets(Path("jobs"), "train", {50: [jobset(*jobs)]}, RESOURCES)
    assert said in one_line(caught)
    assert files(root) == []


def test_jobsets_of_other_resources_are_refused() -> None:
    write_jobsets(Path("jobs"), "train", TWO, RESOURCES)
    with pytest.raises(UserError) as caught:
        read_jobsets(Path("jobs"), "train", {"cpu": 10, "gpu": 4})
    assert one_line(caught) == (
        "jobs/train.parquet: columns: expected load, jobset, job, arrival, duration, cpu, gpu; "
        "missing gpu; unknown memory"
    )


def stored() -> pd.DataFrame:
    write_jobsets(Path("jobs"), "train", TWO, RESOURCES)
    return pd.read_parquet("jobs/train.parquet")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"duration": 1.5}, "duration: expected dtype('int64'), got float64"),
        ({"arrival": -1}, "arrival: expected at least 0, got -1 in row 1"),
        ({"job": 0}, "expected jobs of a jobset are numbered 0, 1, 2, ..."),
        ({"arrival": [9, 1, 0, 0, 0, 0, 0]}, "expected arrivals of a jobset never fall"),
    ],
)
def test_a_table_of_another_schema_is_refused_when_read(column: dict[str, object], said: str) -> None:
    stored().assign(**column).to_parquet("jobs/train.parquet")
    with pytest.raises(UserError) as caught:
        read_jobsets(Path("jobs"), "train", RESOURCES)
    assert one_line(caught).startswith("jobs/train.parquet:")
    assert said in one_line(caught)


def test_a_column_of_an_older_version_is_named() -> None:
    stored().rename(columns={"arrival": "submit"}).to_parquet("jobs/train.parquet")
    with pytest.raises(UserError) as caught:
        read_jobsets(Path("jobs"), "train", RESOURCES)
    assert one_line(caught).endswith("missing arrival; unknown submit")


@pytest.mark.parametrize("content", [b"", b"junk", b"PAR1PAR1"])
def test_a_damaged_table_is_refused(content: bytes) -> None:
    write(Path("jobs/train.parquet"), content)
    with pytest.raises(UserError) as caught:
        read_jobsets(Path("jobs"), "train", RESOURCES)
    assert one_line(caught).startswith("jobs/train.parquet: not a readable table (")


# Curves, results, and the choices of validation


def test_a_curve_comes_back_as_it_was_written() -> None:
    write_curve(storage.curve_file("deeprm", "finetune"), [(0, {"validation": 5.5}), (1, {"loss": 0.25, "entropy": 2})])
    assert Path("reports/curves/deeprm_finetune.csv").is_file()
    found = read_curve("deeprm", "finetune")
    assert found.to_dict("list") == {
        "update": [0, 1, 1],
        "metric": ["validation", "loss", "entropy"],
        "value": [5.5, 0.25, 2.0],
    }


@pytest.mark.parametrize("schema", [DELAY, OFF_POLICY, COMPARISON, CURVE])
def test_a_table_without_rows_comes_back(schema: pa.DataFrameSchema) -> None:
    write_table(Path("x.csv"), empty(schema), schema)
    assert Path("x.csv").read_text() == f"{','.join(schema.columns)}\n"
    found = read_table(Path("x.csv"), schema)
    assert found.empty
    assert found.dtypes.equals(empty(schema).dtypes)


def test_a_table_that_no_policy_has_is_empty(params: Params) -> None:
    assert OFF_POLICY.validate(storage.read_also(params, "shares", GROUPS, "off_policy")).empty


def test_a_table_of_some_policies_is_read_of_those(params: Params) -> None:
    row = {"policy": "mine", "n": 2, "decisions": 9, "estimate": 1.0, "low": 0.5, "high": 1.5, "error": 0.25}
    frame = pd.DataFrame([row | {"truth": 0.8, "truth_low": 0.7, "truth_high": 0.9}])[list(OFF_POLICY.columns)]
    for folder in (storage.results_folder("agents", name) for name in ("controller", "deeprm")):
        write_table(folder / "off_policy.parquet", frame, OFF_POLICY)
    assert storage.read_also(params, "shares", GROUPS, "off_policy")["policy"].tolist() == ["mine"]


def test_a_curve_without_end_is_not_written(root: Path) -> None:
    with pytest.raises(UserError) as caught:
        write_curve(Path("curve.csv"), [(0, {"loss": float("nan")})])
    assert one_line(caught).startswith("curve.csv: value: expected ")
    with pytest.raises(UserError) as caught:
        write_curve(Path("curve.csv"), [(0, {"loss": 1.0}), (0, {"loss": 2.0})])
    assert one_line(caught) == "curve.csv: expected each update, metric once, got the one in line 2 again"
    assert files(root) == []


def results(policy: str, slowdown: float = 2.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    keys = {"policy": [policy], "load": [50], "jobset": [0]}
    job = {"job": [0], "duration": [1], "start": [0], "finish": [2], "withheld": [0]}
    fared = {"slowdown": [slowdown], "unfinished": [False]}
    numbers = ["mean_slowdown", "p50_slowdown", "p99_slowdown", "worst_slowdown", "completion_time"]
    means = {"jobs": [1]} | {name: [slowdown] for name in numbers[:4]} | {"longest_wait": [1], numbers[4]: [slowdown]}
    rest = {"makespan": [2], "utilisation": [0.5], "not_work_conserving": [0.0], "unfinished": [0]}
    return pd.DataFrame(keys | job | fared), pd.DataFrame(keys | means | rest)


def test_results_of_all_policies_of_a_scenario_come_back(params: Params) -> None:
    two = params.model_copy(update={"agents": {name: params.agents[name] for name in ("deeprm", "deeprm2")}})
    mine = {"heuristics": ["sjf", "fcfs"], "deeprm": ["deeprm_pretrained", "deeprm"], "deeprm2": ["deeprm2"]}
    for owner, policies in mine.items():
        kind, name = ("heuristics", "online") if owner == "heuristics" else ("agents", owner)
        jobs, jobsets = zip(*(results(policy) for policy in policies), strict=True)
        write_results(storage.results_folder(kind, name), jobs, jobsets, TABLES)
    found = read_jobset_results(two, "online", TABLES)
    assert found["policy"].tolist() == ["sjf", "fcfs", "deeprm_pretrained", "deeprm", "deeprm2"]
    some = read_job_results(two, "online", TABLES, ["sjf", "deeprm", "deeprm2", "nobody"], [50, 70])
    assert some["policy"].tolist() == ["sjf", "deeprm", "deeprm2"]
    assert read_job_results(two, "online", TABLES, ["sjf"], [70]).empty
    with pytest.raises(UserError, match=r"^reports/tables/heuristics/offline/jobsets.parquet is missing"):
        read_jobset_results(params, "offline", TABLES)
    with pytest.raises(UserError, match=r"^reports/tables/heuristics/offline/jobs.parquet is missing"):
        read_job_results(params, "offline", TABLES, ["sjf"], [50])


def test_job_results_of_an_older_schema_are_refused_whatever_is_asked_of_them(params: Params) -> None:
    path = storage.results_folder("heuristics", "online") / "jobs.parquet"
    path.parent.mkdir(parents=True)
    results("sjf")[0].drop(columns="withheld").to_parquet(path)
    with pytest.raises(UserError, match=r"jobs.parquet: columns: expected policy, .*; missing withheld"):
        read_job_results(params, "online", TABLES, ["sjf"], [50])
    results("sjf")[0].drop(columns="policy").to_parquet(path)
    with pytest.raises(UserError, match=r"jobs.parquet: not a readable table \("):
        read_job_results(params, "online", TABLES, ["sjf"], [50])


def test_a_policy_is_scored_once_on_a_jobset(root: Path) -> None:
    _, jobsets = results("sjf")
    with pytest.raises(UserError) as caught:
        write_table(Path("x.parquet"), pd.concat([jobsets, jobsets], ignore_index=True), JOBSET_RESULTS)
    assert one_line(caught) == "x.parquet: expected each policy, load, jobset once, got the one in row 1 again"
    with pytest.raises(UserError, match=r"slowdown: expected at least 1, got 0.5 in row 1"):
        write_results(Path("x"), [results("sjf", 0.5)[0]], [jobsets], TABLES)
    assert files(root) == []


def test_what_was_chosen_comes_back_by_load() -> None:
    means = {"sjf": {50: 2.0, 110: 4.0}, "fcfs": {50: 3.0, 110: 9.0}}
    write_chosen("online", Chosen(knobs={"tetris": 0.1}, best={50: "sjf", 110: "sjf"}, validation=means))
    found = read_chosen("online")
    assert found.best == {50: "sjf", 110: "sjf"}
    assert found.validation == means
    assert found.over([110]) == {"sjf": 4.0, "fcfs": 9.0}
    assert found.over([70]) == {"sjf": 3.0, "fcfs": 6.0}  # as for a log: no value at that load, so the mean over all


def test_the_best_by_waiting_time_is_in_the_file_only_where_there_is_one() -> None:
    path = storage.results_folder("heuristics", "online") / "chosen.json"
    known = {"knobs": {}, "best": {50: "drf"}, "validation": {"drf": {50: 2.0}}}
    write_chosen("online", Chosen(**known))
    assert set(read_json(path)) == {"knobs", "best", "validation"}  # as before this field existed
    assert read_chosen("online").best_delay == {}
    write_chosen("online", Chosen(**known, best_delay={50: "fixed"}))
    assert read_json(path)["best_delay"] == {"50": "fixed"}
    assert read_chosen("online").best_delay == {50: "fixed"}


def test_choices_of_another_version_are_refused() -> None:
    path = storage.results_folder("heuristics", "online") / "chosen.json"
    write(path, b'{"knobs": {}, "best": {"all": "sjf"}, "validation": {}}')
    with pytest.raises(UserError, match=r"chosen\.json: not what validation chose \(.*best"):
        read_chosen("online")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, " is missing: run 'dvc repro' "),
        (b"{", ": not JSON ("),
        (b"\xff", ": not JSON ("),
    ],
)
def test_json_that_cannot_be_read_is_said_in_one_line(content: bytes | None, said: str) -> None:
    if content is not None:
        write(Path("x.json"), content)
    with pytest.raises(UserError) as caught:
        read_json(Path("x.json"))
    assert one_line(caught).startswith(f"x.json{said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "curve.csv: not a readable table ("),
        (b"update,metric\n0,loss\n", "curve.csv: columns: expected update, metric, value; missing value"),
        (b"update,metric,value\n0,loss,much\n", "curve.csv: value: expected "),
        (b"metric,update,value\nloss,0,1.5\n", "curve.csv: "),
    ],
)
def test_a_curve_that_somebody_edited_is_refused(content: bytes, said: str) -> None:
    write(Path("curve.csv"), content)
    with pytest.raises(UserError) as caught:
        read_table(Path("curve.csv"), CURVE)
    assert one_line(caught).startswith(said)


# Models


def test_a_model_comes_back_as_it_was_written(root: Path, params: Params) -> None:
    weights = {"first": np.arange(6, dtype=np.float32).reshape(2, 3).T, "last": np.zeros(1, dtype=np.float32)}
    model = storage.Model(card_of(params, "deeprm"), weights)
    storage.write_model(storage.model_folder("deeprm", "policy"), model)
    assert files(root) == ["models/deeprm/policy/policy.json", "models/deeprm/policy/policy.safetensors"]
    for folder in (Path("models/deeprm"), Path("models/deeprm/policy")):
        found = storage.read_model(folder, PoolCard)
        assert found.card == model.card
        assert {name: value.tolist() for name, value in found.weights.items()} == {
            name: value.tolist() for name, value in weights.items()
        }


def group_card() -> GroupsCard:
    row = AGENT["network"] | {"hidden": (8, 8)}
    return GroupsCard(
        problem="groups",
        agent="mine",
        scenario="shared",
        resources={"cpu": 8, "memory": 6},
        groups=2,
        queues=("short", "long"),
        orders=(("short", "long"), ("long", "short")),
        levels=(0, 0.5, 1),
        interval=5.0,
        objective="delay",
        against="zero",
        gamma=0.5,
        network=QNetworkConfig(**row),
    )


def test_a_controller_comes_back_as_it_was_written(root: Path) -> None:
    weights = {"scale": np.float32(3.5) * np.ones(1, dtype=np.float32), "w": np.zeros((2, 3), dtype=np.float32)}
    model = storage.Model(group_card(), weights)
    storage.write_model(storage.model_folder("mine", "policy"), model)
    for folder in (Path("models/mine"), Path("models/mine/policy")):
        found = storage.read_model(folder, GroupsCard)
        assert found.card == model.card
        assert {name: value.tolist() for name, value in found.weights.items()} == {"scale": [3.5], "w": [[0.0] * 3] * 2}


def test_a_model_of_another_problem_is_refused_in_one_line(params: Params) -> None:
    weights = {"w": np.zeros(1, dtype=np.float32)}
    machines_card = MachinesCard(
        problem="machines", agent="mine", scenario="few", resources=("cpu",), machines=1, slots=4, dispatch="greedy",
        unit=1.0, objective="slowdown", network=DeepSets(name="deepsets", hidden=8), play="greedy",
    )  # fmt: skip
    cards: dict[str, Card] = {"groups": group_card(), "machines": machines_card, "pool": card_of(params, "deeprm")}
    for word, card in cards.items():
        storage.write_model(Path(word), storage.Model(card, weights))
    for wanted, card in cards.items():
        assert storage.read_model(Path(wanted), type(card)).card == card
        for found in cards.keys() - {wanted}:
            with pytest.raises(UserError) as caught:
                storage.read_model(Path(found), type(card))
            said = f"{found}/policy.json: expected a model of problem {wanted}, found one of '{found}'"
            assert one_line(caught) == said


@pytest.mark.parametrize("word", [[], {}, None, 3, "turns"])
def test_a_card_whose_problem_is_no_word_of_ours_is_refused_in_one_line(word: object) -> None:
    storage.write_model(Path("model"), storage.Model(group_card(), {"w": np.zeros(1, dtype=np.float32)}))
    card = Path("model/policy.json")
    card.write_text(json.dumps(json.loads(card.read_text()) | {"problem": word}))
    for kind in (GroupsCard, PoolCard):
        with pytest.raises(
            UserError, match=r"^model/policy.json: expected a model of problem (groups|pool), found one of "
        ) as caught:
            storage.read_model(Path("model"), kind)
        one_line(caught)


# The log


def on_log(params: Params, path: str) -> Params:
    return params.model_copy(update={"workload": PoolLog(name="swf", path=path)})


@pytest.fixture
def log(root: Path) -> Path:
    """Write a user's log outside the repository's data folders."""
    path = root / "logs" / "user.swf"
    path.parent.mkdir()
    path.write_text("; MaxProcs: 4\n")
    return path


def test_a_synthetic_workload_leaves_a_note(params: Params) -> None:
    link_log(params)
    assert LOG.as_posix() == "data/log"
    assert not LOG.is_symlink()
    assert LOG.read_text() == NOTE


def test_a_log_is_linked_and_not_copied(root: Path, params: Params, log: Path) -> None:
    for path in ("logs/user.swf", str(log)):
        link_log(on_log(params, path))
        assert LOG.is_symlink()
        assert LOG.readlink() == log
    log.write_text("changed")
    assert LOG.read_text() == "changed"
    notes = [f"data/logs/{name}/note" for name in sorted(params.scenarios)]
    assert files(root) == ["data/log", *notes, "logs/user.swf"]


def test_replacing_a_link_never_writes_into_the_users_log(root: Path, params: Params, log: Path) -> None:
    other = root / "logs" / "other.swf"
    other.write_text("other")
    link_log(on_log(params, "logs/user.swf"))
    link_log(on_log(params, "logs/other.swf"))
    assert LOG.read_text() == "other"
    link_log(params)
    assert LOG.read_text() == NOTE
    link_log(on_log(params, "logs/user.swf"))
    assert LOG.read_text() == log.read_text() == "; MaxProcs: 4\n"
    assert other.read_text() == "other"


def test_a_copy_in_place_of_the_link_is_replaced(params: Params, log: Path) -> None:
    write(LOG, b"a copy")
    link_log(on_log(params, "logs/user.swf"))
    assert LOG.readlink() == log


def test_relative_paths_start_at_dvcs_root(
    root: Path, params: Params, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = root / ".dvc" / "tmp" / "exps" / "tmp1"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    with pytest.raises(UserError, match=r"^params.yaml: workload.path: no such file or folder: .*/tmp1/logs/user.swf$"):
        link_log(on_log(params, "logs/user.swf"))
    monkeypatch.setenv("DVC_ROOT", str(root))
    link_log(on_log(params, "logs/user.swf"))
    assert (inside / "data" / "log").readlink() == log


def test_a_log_that_is_not_there_keeps_what_was_linked(params: Params, log: Path) -> None:
    link_log(on_log(params, "logs/user.swf"))
    with pytest.raises(UserError) as caught:
        link_log(on_log(params, "logs/missing.swf"))
    assert one_line(caught).startswith("params.yaml: workload.path: no such file or folder: ")
    assert LOG.readlink() == log


def test_floats_that_happen_to_be_whole_come_back_as_floats(root: Path) -> None:
    frame = pd.DataFrame({"update": [0, 1], "metric": "loss", "value": [2.0, 1.0]})
    write_table(Path("curve.csv"), frame, CURVE)
    assert Path("curve.csv").read_text() == "update,metric,value\n0,loss,2\n1,loss,1\n"
    assert read_table(Path("curve.csv"), CURVE)["value"].tolist() == [2.0, 1.0]


def test_a_policy_that_failed_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="mine"):
        storage.check_passed("mine")
    place = storage.results_folder("policies", "mine")
    place.mkdir(parents=True)
    storage.check_passed("mine")
    (place / "failed.txt").write_text("mine is late\n")
    with pytest.raises(UserError, match=r"^mine is late; after a change of its file 'dvc repro';"):
        storage.check_passed("mine")
