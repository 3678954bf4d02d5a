"""`confirm`: every policy on jobsets of a separate seed, with the choices of validation and the trained models."""

from pathlib import Path

import pytest
from elsewhere import POLICIES
from swf_lines import line

from pipeline.core import storage
from pipeline.core.config import Counts, External, Params, PoolLog
from pipeline.core.schemas import COMPARISON
from pipeline.errors import UserError
from pipeline.problems import problem_of
from pipeline.problems.pool.agents.learning import LEARNING
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.env.nouns import Cluster
from pipeline.problems.pool.env.tables import JOBSET_RESULTS
from pipeline.stages import confirm, generate, heuristics, log

AGENT = "deeprm"


def small(params: Params) -> Params:
    """One scenario with few jobsets, and one agent."""
    row = params.pool_scenario("online")
    few = row.model_copy(update={"loads": (70, 130), "jobsets": Counts(train=2, validation=2, test=3)})
    knobs = params.heuristics.model_copy(
        update={"pool": params.heuristics.pool.model_copy(update={"linear": None, "hold_until": (50,)})}
    )
    rows = {"scenarios": {"online": few}, "agents": {AGENT: params.agent(AGENT)}, "transfers": {}, "heuristics": knobs}
    return params.model_copy(update=rows)


def prepare(params: Params) -> None:
    generate.run(params, "online")
    heuristics.run(params, "online")
    cluster = Cluster.of(params.pool_scenario("online"))
    for seed, which in enumerate(("pretrained", "policy")):
        network = build(params.agent(AGENT).network, cluster, seed)
        storage.write_model(storage.model_folder(AGENT, which), LEARNING.model(params, AGENT, network))


@pytest.fixture
def few(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    return small(params)


def test_all_policies_play_jobsets_that_no_stage_has(few: Params, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(few)
    confirm.run(few, "online")
    place = Path("reports/confirm/online")
    found = storage.read_table(place / "jobsets.parquet", JOBSET_RESULTS)
    tested = storage.read_table(Path("reports/tables/heuristics/online/jobsets.parquet"), JOBSET_RESULTS)
    assert set(found["policy"]) == {*tested["policy"], AGENT, f"{AGENT}_pretrained"}
    assert found.groupby("policy")["jobset"].count().unique().tolist() == [2 * 3]
    one, other = (frame[frame["policy"] == "sjf"]["jobs"].tolist() for frame in (found, tested))
    assert one != other
    compared = storage.read_table(place / "comparison.csv", COMPARISON)
    assert {"sjf", "tetris", "best_heuristic", f"{AGENT}_pretrained"} == set(compared["against"])
    assert f"{AGENT} (online): mean slowdown" in capsys.readouterr().err
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    confirm.run(few, "online")
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_external_policies_play_them_too_and_one_that_raises_takes_nothing_with_it(
    few: Params, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.py").write_text(POLICIES)
    rows = {name: External(problem="pool", scenario="online", policy=f"mine.py:{name}") for name in ("sjf", "raising")}
    mine = few.model_copy(update={"agents": {}, "policies": {f"my_{name}": row for name, row in rows.items()}})
    generate.run(mine, "online")
    heuristics.run(mine, "online")
    log.run(mine)
    confirm.run(mine, "online")
    found = storage.read_table(Path("reports/confirm/online/jobsets.parquet"), JOBSET_RESULTS)
    means = found.groupby("policy")["mean_slowdown"].mean()
    assert "my_raising" not in means
    assert means["my_sjf"] == means["sjf"]
    assert "policy my_raising: mine.py:raising: " in capsys.readouterr().err
    compared = storage.read_table(Path("reports/confirm/online/comparison.csv"), COMPARISON)
    assert "my_sjf" in set(compared["policy"])


def test_without_models_nothing_is_written(few: Params) -> None:
    generate.run(few, "online")
    heuristics.run(few, "online")
    with pytest.raises(UserError, match=r"^models/deeprm/pretrained"):
        confirm.run(few, "online")
    assert not Path("reports/confirm").exists()


def test_jobsets_of_a_log_have_no_others_to_confirm_on(few: Params) -> None:
    lines = [line(number, submit=3600 * number, run=7200) for number in range(1, 61)]
    Path("log.swf").write_text("\n".join(lines) + "\n")
    log = PoolLog(name="swf", path=str(Path("log.swf").resolve()), window=5, capacity=4)
    logged = few.model_copy(update={"workload": log, "agents": {}})
    storage.link_log(logged)
    generate.run(logged, "online")
    heuristics.run(logged, "online")
    with pytest.raises(UserError, match="cut from a log, so that there are no others to draw"):
        confirm.run(logged, "online")


def test_jobsets_whose_jobs_all_wait_at_the_start_are_drawn_again_and_cut_from_no_log(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    row = params.pool_scenario("offline").model_copy(update={"jobsets": Counts(train=1, validation=1, test=3)})
    some = params.model_copy(update={"scenarios": {"offline": row}, "agents": {}, "transfers": {}})
    generate.run(some, "offline")
    drawn = confirm.fresh_jobsets(problem_of(some, "offline"), some, "offline")
    assert [len(jobsets) for jobsets in drawn.values()] == [3]
