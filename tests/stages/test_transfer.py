"""`transfer`: an agent's networks on a cluster that they were not trained on, next to other results for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipeline.core import storage
from pipeline.core.config import Counts, Params
from pipeline.core.config.pool.learning import Transfer
from pipeline.errors import UserError
from pipeline.problems.pool.agents.learning import LEARNING
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.env.tables import JOB_RESULTS, JOBSET_RESULTS, TABLES
from pipeline.stages import generate, transfer

Command = Callable[..., Any]
AGENT, OTHER = "deeprm3", "three"
UNITS = {"cpu": 20, "memory": 20, "gpu": 20}  # units of the other cluster; the agent's own has 10 of two resources
COUNTS = Counts(train=1, validation=1, test=3)


def small(params: Params) -> Params:
    """The agent's own scenario, the other one at two loads, and the agent's transfer to it."""
    own = params.pool_scenario("online")
    scenarios = {
        "online": own,
        OTHER: own.model_copy(update={"resources": UNITS, "loads": (70, 190), "jobsets": COUNTS}),
    }
    rows = {"scenarios": scenarios, "agents": {AGENT: params.agent(AGENT)}}
    return params.model_copy(update=rows | {"transfers": {"wider": Transfer(agent=AGENT, scenario=OTHER)}})


def write_networks(params: Params) -> None:
    """Store two untrained networks as the agent's."""
    cluster = Cluster.of(params.pool_scenario("online"))
    for seed, which in enumerate(("pretrained", "policy")):
        network = build(params.agent(AGENT).network, cluster, seed)
        storage.write_model(storage.model_folder(AGENT, which), LEARNING.model(params, AGENT, network))


@pytest.fixture(scope="module")
def scored(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the agent was transferred."""
    root = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("PIPELINE_TRACKING", "off")
        few = small(params)
        write_networks(few)
        generate.run(few, OTHER)
        transfer.run(few, "wider")
    return root


def jobs_of(root: Path) -> pd.DataFrame:
    return storage.read_table(root / "reports/tables/transfers/wider/jobs.parquet", JOB_RESULTS)


def test_both_networks_are_scored_on_every_test_jobset_of_the_other_scenario(scored: Path) -> None:
    rows = jobs_of(scored)
    jobsets = read_jobsets(scored / "data/jobsets" / OTHER, "test", UNITS)
    wanted = {(load, k): len(jobs.arrival) for load, group in jobsets.items() for k, jobs in enumerate(group)}
    assert len(wanted) == 6
    assert set(rows["policy"]) == {AGENT, f"{AGENT}_pretrained"}
    for _, mine in rows.groupby("policy"):
        assert mine.groupby(["load", "jobset"]).size().to_dict() == wanted
    assert not rows["unfinished"].any()


def most_in_use(rows: pd.DataFrame, jobs: JobSet) -> int:
    """The most units of any resource that a schedule holds in any step."""
    start, duration = rows.sort_values("job")["start"].to_numpy(), jobs.duration
    steps = range(int((start + duration).max()))
    return max(int(jobs.demand[(start <= step) & (step < start + duration)].sum(axis=0).max()) for step in steps)


def test_jobs_run_on_the_other_cluster_and_not_on_the_one_of_training(scored: Path) -> None:
    rows = jobs_of(scored)
    crowded = read_jobsets(scored / "data/jobsets" / OTHER, "test", UNITS)[190]
    most = [
        most_in_use(mine[mine["jobset"] == k], jobs)
        for _, mine in rows[rows["load"] == 190].groupby("policy")
        for k, jobs in enumerate(crowded)
    ]
    assert len(most) == 6
    assert max(most) <= 20
    assert min(most) > 10


def test_a_scenarios_results_are_those_of_heuristics_its_own_agents_and_those_carried_over(
    params: Params, scored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored)
    few = small(params)
    table = storage.read_table(storage.results_folder("transfers", "wider") / "jobsets.parquet", JOBSET_RESULTS)
    for kind, name, policy in (("heuristics", OTHER, "sjf"), ("heuristics", "online", "sjf"), ("agents", AGENT, "own")):
        one = table[table["policy"] == AGENT].assign(policy=policy)
        storage.write_results(storage.results_folder(kind, name), [jobs_of(scored)], [one], TABLES)
    assert set(storage.read_jobset_results(few, OTHER, TABLES)["policy"]) == {"sjf", AGENT, f"{AGENT}_pretrained"}
    assert set(storage.read_jobset_results(few, "online", TABLES)["policy"]) == {"sjf", "own"}
    assert few.agents_of(OTHER) == [AGENT]


def test_the_same_networks_give_the_same_bytes(params: Params, scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scored)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    folder = storage.results_folder("transfers", "wider")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert set(before) == {"jobs.parquet", "jobsets.parquet"}
    (folder / "old.parquet").write_bytes(b"")
    transfer.run(small(params), "wider")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_an_agent_that_has_not_learned_is_told_in_one_line(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_TRACKING", "off")
    few = small(params)
    generate.run(few, OTHER)
    with pytest.raises(UserError, match=r"^models/deeprm3/pretrained"):
        transfer.run(few, "wider")
    assert not Path("reports").exists()


def test_an_unknown_transfer_is_told_with_those_there_are(command: Command) -> None:
    outcome = command("evaluate", "transfer", "stream")
    assert outcome.code == 2
    assert outcome.err.startswith("error: unknown transfer 'stream'; there are: overload, streams, unknown_load")
    assert outcome.err.rstrip().endswith("did you mean 'streams'?")
