"""`explain` on many machines: files of an agent, the same twice, and what is counted of its decisions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from machine_learning import MACHINES as TWO
from machine_learning import some_jobs
from machine_rows import AGENT, PPO_RECIPE, rows

from pipeline.core import storage
from pipeline.core.config import Params, check_params
from pipeline.core.types import ANY_KIND, Observation, Policy, keys
from pipeline.errors import UserError
from pipeline.interactive.explaining.decisions import Decisions, Play, record
from pipeline.interactive.explaining.differences import differences, jobs, machines
from pipeline.interactive.explaining.distilling import examples, grow
from pipeline.interactive.explaining.explain import ExplainRequest, explain
from pipeline.interactive.explaining.placing import SCHEMAS as TABLES
from pipeline.interactive.machines.explaining import EXPLAINING
from pipeline.interactive.machines.scheduling import any_policy
from pipeline.problems.machines.agents.learning import LEARNING
from pipeline.problems.machines.env.nouns import DISPATCH, Jobs, Machines, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.storage import read_park
from pipeline.problems.machines.env.workload.source import draw
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.simulation.rollout import choose, sjf
from pipeline.stages.tasks import explain as run

FOLDER = Path("reports/explain/mine")


def small(dispatch: str = "greedy") -> Params:
    values = rows()
    values["scenarios"] = {"few": values["scenarios"]["few"] | {"dispatch": dispatch}}
    values["recipes"]["clipped"] = PPO_RECIPE
    values["agents"] = {"mine": AGENT}
    values |= {"transfers": {}, "hindsight": {"scenarios": [], "jobsets": 2, "limit": 0.01}}
    values["evaluation"]["resamples"] = 100
    return check_params(values, "params.yaml")


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an agent was explained that nobody has trained."""
    root = tmp_path_factory.mktemp("explained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        explain(EXPLAINING, prepared(small()), ExplainRequest("mine", 2))
    return root


def prepared(params: Params) -> Params:
    """The same, with jobsets and an agent that nobody has trained."""
    draw(params, "few", lambda done, note="": None).write(storage.jobsets_folder("few"))
    task = LEARNING.task(params, "mine", params.agent("mine").finetune)
    network = LEARNING.untrained(params, "mine", task)
    for which in ("policy", "pretrained"):
        storage.write_model(storage.model_folder("mine", which), LEARNING.model(params, "mine", network))
    return params


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_agents_and_heuristics_are_explained_under_every_dispatch(
    dispatch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipeline.interactive.explaining.explain.png", lambda _: b"")  # it takes most of the time
    params = prepared(small(dispatch))
    policy = ("models/mine", "sjf", "saf", "random")[DISPATCH.index(dispatch) % 4]
    run(params, ExplainRequest(policy, 1, scenario=None if policy == "models/mine" else "few"))
    name = Path(policy).name
    place = tmp_path / "reports/explain" / name
    found = {table: storage.read_table(place / f"{table}.csv", schema) for table, schema in TABLES.items()}
    assert (found["differences"]["decisions"] > 0).all()
    assert set(found["outcomes"]["policy"]) == {name, f"{name}_tree", "fcfs", "sjf", "saf"}
    assert f"{name}: of " in capsys.readouterr().err
    if policy == "sjf":
        assert (found["differences"]["agrees"] == 1).all()


def alone(dispatch: int) -> tuple[list[Jobs], Machines]:
    """One machine of one unit: `a` holds it from 0 to 10, `b` and `c` come at 1, all want the whole of it."""
    run, every = np.array([10.0, 2.0, 3.0]), np.ones(3, dtype=np.int64)
    jobs = Jobs(np.array([0.0, 1.0, 1.0]), run, run, 1000 * every[:, None], every, np.full(3, ANY_KIND))
    # Times are floats, as scenarios have them: for others all of the simulator would be compiled once more.
    machines = Machines(np.array([[1000]]), np.array([0]), slots=3, dispatch=dispatch, pause=16.0, time_limit=1000.0)
    return [jobs], machines


def played(jobsets: Sequence[Jobs], machines: Machines, rule: Policy) -> Decisions:
    batch, number = end_to_end(jobsets), np.arange(len(jobsets))
    simulator = Simulator(batch, machines, np.zeros(len(batch.arrival)))
    return record(
        Play(simulator, batch, keys(1, number, np.zeros_like(number)), np.full(len(jobsets), 100), number), rule
    )


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_decision_points_at_which_nothing_fits_are_not_counted(dispatch: str) -> None:
    # Where dispatch blocks, what runs next is chosen at 1, when nothing fits: only `a` is chosen when it could start.
    waiting = [1] if dispatch in ("blocking", "easy", "easy_within") else [1, 2, 1]
    found = played(*alone(DISPATCH.index(dispatch)), HEURISTICS["fcfs"])
    assert (found.features.job[:, :, 0] > 0).sum(axis=1).tolist() == waiting
    assert found.same_job.all()


def test_where_there_is_never_a_choice_one_line_says_so() -> None:
    jobsets, machines = alone(DISPATCH.index("blocking"))
    empty = [Jobs(*(column[:0] for column in jobsets[0]))]
    with pytest.raises(UserError, match=r"^nothing to explain: in the test jobsets .*there is never a choice"):
        played(empty, machines, HEURISTICS["fcfs"])


def test_tables_and_figures_are_written_the_same_twice(explained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(explained)
    expected = {f"{name}.csv" for name in TABLES} | {"tree.json", "rules.md"}
    expected |= {f"{name}.png" for name in ("differences", "classes", "effects", "outcomes")}
    assert {path.name for path in FOLDER.iterdir()} == expected
    for name, schema in TABLES.items():
        storage.read_table(FOLDER / f"{name}.csv", schema)
    before = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    explain(EXPLAINING, small(), ExplainRequest("mine", 2))
    assert {path.name: path.read_bytes() for path in FOLDER.iterdir()} == before


def test_the_tree_is_a_policy_by_its_name(explained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(explained)
    params = small()
    park = read_park(storage.jobsets_folder("few"))
    tree = any_policy(params, "mine_tree", params.machines_scenario("few"), park, "few")
    assert isinstance(played([some_jobs(100, 1)], TWO, tree), Decisions)
    with pytest.raises(UserError, match=r"^policy 'yours_tree': .* is missing: run "):
        any_policy(params, "yours_tree", params.machines_scenario("few"), park, "few")


@pytest.mark.parametrize(("rule", "machine"), [("sjf", "first"), ("to_the_emptiest", "emptiest")])
def test_a_tree_takes_the_machines_that_its_agent_takes(rule: str, machine: str) -> None:
    assert grow([examples(recorded(rule))], 4, {"agent": rule, "scenario": "few"}, seed=1).machine == machine


def to_the_emptiest(view: Observation, draws: np.ndarray) -> np.ndarray:
    """SJF's job on that of the machines which has most free."""
    rows, machines = np.arange(len(draws)), view.legal.shape[2]
    job = choose(sjf(view), view) // machines
    empty = (view.free[:, :, 0] / view.capacity).mean(axis=2)
    return job * machines + np.where(view.legal[rows, job], empty, -np.inf).argmax(axis=1)


def recorded(rule: str) -> Decisions:
    jobsets = [some_jobs(100, k) for k in range(4)]
    policy = HEURISTICS.get(rule, to_the_emptiest)
    return played(jobsets, TWO, policy)


def test_sjf_agrees_with_itself_in_every_class() -> None:
    load = np.array([100, 100, 50, 50])
    found = differences(recorded("sjf"), load)
    assert (found["agrees"] == 1).all()
    for by in ("load", "waiting", "free"):
        assert found.loc[found["by"] == by, "decisions"].sum() == len(recorded("sjf").episode)
    assert jobs(recorded("sjf"), load)["decisions"].tolist() == [0, 0]


def test_sjf_to_the_emptiest_machine_differs_by_machine_only_and_is_seen_to_choose_it() -> None:
    decisions, load = recorded("to_the_emptiest"), np.full(4, 100)
    found = differences(decisions, load)
    assert (found["another_job"] == 0).all()
    assert (found["waits"] == 0).all()
    assert found["another_machine"].max() > 0
    chosen = machines(decisions, load).iloc[0]
    assert chosen["decisions"] > 0
    assert (chosen["fullest"], chosen["emptiest"]) == (0, 1)
    assert (chosen["fullest_by_chance"], chosen["emptiest_by_chance"]) == (0.5, 0.5)  # of two machines


def test_in_order_of_arrival_the_other_job_is_longer_and_has_waited_at_least_as_long() -> None:
    decisions, load = recorded("fcfs"), np.full(4, 100)
    other = jobs(decisions, load).iloc[0]
    assert other["decisions"] > 0
    assert other["duration"] > other["duration_sjf"]
    assert other["waited_longer"] == 1
