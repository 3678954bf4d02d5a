"""`policy`: an external policy is a row of params.yaml, and one that fails does not affect other results."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from elsewhere import POLICIES
from repositories import Folder, bytes_of, ran

from pipeline.core import storage
from pipeline.core.config import Counts, External, Params
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.problems.groups.heuristics.tuning import untuned
from pipeline.problems.machines.heuristics.rules import MIX
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.stages import generate, log, passed, policy

Command = Callable[..., Any]
FILE = "elsewhere_policies.py"
JOBS = "jobset,job,arrival,duration,cpu,memory\n0,a,0,3,6,2\n0,b,0,1,6,2\n0,c,1,2,4,8\n"
ONE, TWO = {"problem": "pool", "scenario": "online"}, {"problem": "machines", "scenario": "machines"}


def with_rows(params: Params, **rows: External) -> Params:
    few = Counts(train=1, validation=1, test=3)
    online = params.pool_scenario("online").model_copy(update={"loads": (70, 150), "jobsets": few})
    machines = params.machines_scenario("machines").model_copy(update={"loads": (80,), "jobsets": few})
    shares = params.groups_scenario("shares").model_copy(update={"loads": (80,), "jobsets": few})
    scenarios = {"online": online, "machines": machines, "shares": shares}
    return params.model_copy(update={"scenarios": scenarios, "policies": rows})


def row(problem: str = "pool", scenario: str = "online", name: str = "sjf", **more: Any) -> External:
    return External(problem=problem, scenario=scenario, policy=f"{FILE}:{name}", **more)


@pytest.fixture(scope="module")
def planned(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of policies, and with jobsets of each problem."""
    root = tmp_path_factory.mktemp("elsewhere")
    (root / FILE).write_text(POLICIES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        few = with_rows(params)
        for scenario in few.scenarios:
            generate.run(few, scenario)
    return root


def results(few: Params, name: str) -> pd.DataFrame:
    log.run(few)
    policy.run(few, name)
    place = storage.results_folder("policies", name)
    return pd.read_parquet(place / "jobsets.parquet")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("problem", "scenario", "name", "rule"),
    [
        ("pool", "online", "sjf", "sjf"),
        ("machines", "machines", "sjf", "sjf"),
        ("shares", "shares", "equal", "equal"),
    ],
)
def test_it_is_scored_as_the_same_rule_of_this_project(
    params: Params, problem: str, scenario: str, name: str, rule: str
) -> None:
    problem = params.scenario(scenario).problem
    few = with_rows(params, mine=row(problem, scenario, name))
    found = results(few, "mine")
    here, knobs = problem_of(few, scenario).scoring(few, scenario, None), {**dict.fromkeys(MIX, 0.0), **untuned(4)}
    expected = here.score({"mine": here.heuristics(knobs if scenario != "online" else {})[rule]}, here.read("test"))[
        "mine"
    ].jobsets
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-5)


@pytest.mark.usefixtures("here")
def test_the_same_bytes_come_again_and_nothing_old_is_left(params: Params) -> None:
    few = with_rows(params, mine=row(name="Made"))
    results(few, "mine")
    place = storage.results_folder("policies", "mine")
    before = bytes_of(Path())
    (place / "old.parquet").write_bytes(b"")
    results(few, "mine")
    assert bytes_of(Path()) == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raising", rf"policy bad: {FILE}:raising: load 70, jobset 0, decision 0: raised ValueError: no idea"),
        (
            "late",
            rf"policy bad: {FILE}:late: load \d+, jobset \d, decision \d+: returned -7; expected 0 to 10 \(void\)",
        ),
        ("number", rf"policy bad: {FILE}:number: there is no callable 'number'"),
    ],
)
def test_a_failure_is_a_line_in_place_of_results_and_others_are_read(params: Params, name: str, why: str) -> None:
    few = with_rows(params, mine=row(), bad=row(name=name))
    results(few, "mine")
    policy.run(few, "bad")
    place = storage.results_folder("policies", "bad")
    assert [file.name for file in place.iterdir()] == ["failed.txt"]
    (line,) = (place / "failed.txt").read_text().splitlines()
    assert re.fullmatch(why, line)
    assert storage.failures(few) == {"bad": line}
    assert storage.scored(few, "online") == [*(n for n in few.agents_of("online") if n != "bad")]
    passed.run(few, "mine")
    with pytest.raises(UserError, match=re.escape(line)):
        passed.run(few, "bad")


@pytest.mark.usefixtures("here")
def test_the_decision_that_is_named_is_the_one_that_failed(params: Params) -> None:
    few = with_rows(params, bad=row(name="late"))
    log.run(few)
    policy.run(few, "bad")
    line = storage.failures(few)["bad"]
    load, number, decision = map(int, re.findall(r"load (\d+), jobset (\d+), decision (\d+)", line)[0])
    here = problem_of(few, "online").scoring(few, "online", None)
    seen: list[float] = []

    def watching(view: Any, draws: Any) -> Any:
        seen.append(float(view.waited.max()))
        return HEURISTICS["sjf"].decide(view, draws)

    here.score({"mine": watching}, {load: [here.read("test")[load][number]]})
    assert seen[decision] > 3
    assert max(seen[:decision]) <= 3


@pytest.mark.usefixtures("here")
def test_a_file_that_is_gone_is_told_before_anything_is_changed(params: Params) -> None:
    few = with_rows(params, mine=row())
    log.run(few)
    before = bytes_of(Path())
    gone = with_rows(params, mine=External(**ONE, policy="gone.py:f"))
    with pytest.raises(UserError, match=r"^params.yaml: policies.mine.policy: policy 'gone.py:f': no such file"):
        log.run(gone)
    with pytest.raises(UserError, match=r"^params.yaml: policies.mine.files: no such file or folder: .*absent$"):
        log.run(with_rows(params, mine=row(files=("absent",))))
    assert bytes_of(Path()) == before


@pytest.mark.usefixtures("here")
def test_files_that_it_reads_are_linked_one_by_one(params: Params) -> None:
    Path("weights/deep").mkdir(parents=True)
    Path("weights/deep/a.bin").write_text("1")
    log.run(with_rows(params, mine=row(files=("weights", FILE))))
    found = sorted(path.as_posix() for path in Path("data/policies/mine").rglob("*") if path.is_file())
    assert found == ["data/policies/mine/0/deep/a.bin", "data/policies/mine/1", "data/policies/mine/policy"]


def test_schedule_writes_the_others_and_ends_with_an_error(command: Command, place: Path) -> None:
    (place / FILE).write_text(POLICIES)
    (place / "jobs.csv").write_text(JOBS)
    words = [word for name in ("sjf", "raising", "Made") for word in ("--policy", f"{FILE}:{name}")]
    outcome = command("schedule", "jobs.csv", "--scenario", "online", "--policy", "sjf", *words, "--out", "out.csv")
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1] == f"error: {FILE}:raising: call 1: raised ValueError: no idea"
    assert f"{FILE}:Made" in outcome.err
    written = sorted(path.name for path in place.glob("out*"))
    assert written == [f"out_{FILE}_Made.csv", f"out_{FILE}_sjf.csv", "out_sjf.csv"]
    assert (place / "out_sjf.csv").read_bytes() == (place / f"out_{FILE}_sjf.csv").read_bytes()
    shown = ["show", "jobs.csv", "--scenario", "online", "--against", "sjf", "--out", "out.png", "--policy"]
    assert command(*shown, f"{FILE}:sjf").code == 0
    (place / "out.png").unlink()
    outcome = command(*shown, f"{FILE}:raising")
    assert (outcome.code, outcome.err) == (2, f"error: {FILE}:raising: call 1: raised ValueError: no idea\n")
    assert not (place / "out.png").exists()


def test_a_row_that_is_wrong_is_told_in_one_line(command: Command, place: Path) -> None:
    text = (place / "params.yaml").read_text()

    def checked(line: str) -> str:
        (place / "params.yaml").write_text(text.replace("policies: {}", f"policies:\n  {line}"))
        outcome = command("check")
        assert outcome.code == 2
        return str(outcome.err)

    assert "params.yaml: policies.mine.policy: expected package.module:name" in checked(
        "mine: {problem: pool, scenario: online, policy: 'os.system(1)'}"
    )
    assert "policies.mine.problem: expected pool, as of scenario 'online', got 'machines'" in checked(
        "mine: {problem: machines, scenario: online, policy: 'a:b'}"
    )
    assert "policies.mine.scenario: unknown 'onlin'; " in checked(
        "mine: {problem: pool, scenario: onlin, policy: 'a:b'}"
    )
    for name in ("deeprm", "hold", "deeprm_pretrained"):
        line = f"{name}: {{problem: pool, scenario: online, policy: 'a:b'}}"
        assert f"policies.{name}: '{name}' is the name of another policy" in checked(line)
    assert "policies.drf: 'drf' is the name of another" in checked(
        "drf: {problem: groups, scenario: shares, policy: 'a:b'}"
    )
    assert "policies.mine.speed: unknown key" in checked(
        "mine: {problem: pool, scenario: online, policy: 'a:b', speed: 1}"
    )


def test_a_policy_of_groups_is_judged_by_waiting_time() -> None:
    assert row("groups", "shares").objective == "delay"
    assert row().objective == "slowdown"


def test_repro_compares_gates_and_reports_it_and_a_change_of_its_file_makes_it_stale(folder: Folder) -> None:
    (folder.root / FILE).write_text(POLICIES)
    names = {"mine": "sjf", "bad": "raising"}
    folder.edit(policies={name: {**ONE, "policy": f"{FILE}:{called}"} for name, called in names.items()})
    environment = {**folder._environment}
    done = subprocess.run(
        ["python", "-m", "dvc", "repro"], check=False, cwd=folder.root, env=environment, capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0
    own = ["policy@mine", "policy@bad", "compare", "gate", "papers", "passed@mine", "passed@bad"]
    assert sorted(ran(said)) == sorted(["log", *own])
    line = f"policy bad: {FILE}:raising: load 60, jobset 0, decision 0: raised ValueError: no idea"
    assert f"error: {line}" in said
    assert f"compare: left out: {line}" in said
    metrics = storage.read_json(folder.root / "reports/metrics.json")["online"]
    assert "bad" not in metrics
    assert metrics["mine"]["slowdown"] == metrics["sjf"]["slowdown"]
    assert "| mine | online | slowdown |" in (folder.root / "reports/comparison.md").read_text()
    gate = pd.read_csv(folder.root / "reports/gate.csv")
    assert {"mine", "plain"} <= set(gate["candidate"])
    folder.pipeline("report")
    page = (folder.root / "reports/index.html").read_text()
    assert page.count("mine") > 3
    assert line.split(": ", 1)[1].split(":", maxsplit=1)[0] in page
    folder.edit(policies={"mine": {**ONE, "policy": f"{FILE}:sjf"}})
    assert not folder.stale() & {"policy@mine", "generate@online", "evaluate@plain"}
    with (folder.root / FILE).open("a") as stream:
        stream.write("# An edit.\n")
    assert {"log", "policy@mine"} <= folder.stale()
