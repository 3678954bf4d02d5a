"""Rows of params.yaml for a site's log."""

from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY, params
from ruamel.yaml import YAML
from swf_lines import HPC2N, line, there

from pipeline.core.config import MachinesScenario, Multifactor, Params, Site, Vetoes, check_params
from pipeline.core.logs.registry import read
from pipeline.errors import UserError
from pipeline.sites.rows import SiteRows, site_rows

DAY = 86_400


def log(folder: Path, jobs: int = 3_000, days: float = 60.0) -> Path:
    """Write a log with even arrivals of one-hour jobs on half of 8 processors."""
    gap = days * DAY / jobs
    rows = [line(k + 1, submit=round(k * gap), run=600, allocated=4, estimate=3_600, user=k % 5) for k in range(jobs)]
    path = folder / "log.swf"
    path.write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    return path


def rows_of(path: Path, *machines: str, learns: bool = False) -> SiteRows:
    return site_rows("mine", path, "swf", read(path, "swf"), machines, params(), learns=learns)


def checked(found: SiteRows) -> Params:
    """Return the repository's params.yaml with these rows."""
    whole: dict[str, Any] = YAML(typ="safe").load(REPOSITORY / "params.yaml")
    for section, rows in (
        ("scenarios", {"mine": found.scenario}),
        ("agents", found.agents),
        ("sites", {"mine": found.site}),
    ):
        whole[section] = {**whole[section], **rows}
    return check_params(whole, "params.yaml")


def test_the_rows_are_those_that_params_yaml_takes(tmp_path: Path) -> None:
    found = rows_of(log(tmp_path))
    params = checked(found)
    scenario = params.machines_scenario("mine")
    assert isinstance(scenario, MachinesScenario)
    assert (scenario.dispatch, scenario.policies_know) == ("easy_dynamic", "estimates")
    assert scenario.machines[0].has == {"cpu": 8.0}  # type: ignore[index]
    # 600 s on 4 of 8 processors, once every 1,728 s.
    assert scenario.loads == (17,)
    assert found.site == {"today": "fcfs"}
    assert found.agents == {}


def test_nodes_of_slurm_become_groups_with_gpus_and_partitions(tmp_path: Path) -> None:
    """40 of the processors are busy half of the time; without the file of nodes, the log has no machines."""
    path, nodes = tmp_path / "log.csv", tmp_path / "nodes.txt"
    jobs = [
        f"{1_700_000_000 + 1_728 * k},0,864,3600,1,1,40,16,{k % 2},{'gpu' if k % 2 else 'cpu'}" for k in range(3_000)
    ]
    path.write_text("\n".join(["submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition", *jobs]) + "\n")
    words = [("n1", "gpu:4", "gpu"), ("n2", "(null)", "cpu,long"), ("n3", "(null)", "cpu,long")]
    text = "".join(
        f"NodeName={name} CPUTot=40 RealMemory=65536 Gres={gres} Partitions={parts}\n" for name, gres, parts in words
    )
    nodes.write_text(text)
    found = site_rows("mine", path, "slurm", read(path, nodes=nodes), [], params(), nodes=nodes)
    assert found.scenario["machines"] == [
        {"count": 1, "has": {"cpu": 40.0, "memory": 64.0, "gpu": 4.0}, "kind": "gpu"},
        {"count": 2, "has": {"cpu": 40.0, "memory": 64.0, "gpu": 0.0}, "kind": "cpu+long"},
    ]
    assert found.scenario["workload"]["nodes"] == str(nodes)  # type: ignore[index, call-overload]
    assert isinstance(checked(found).machines_scenario("mine"), MachinesScenario)
    with pytest.raises(UserError, match="'scontrol show node' as --nodes"):
        site_rows("mine", path, "slurm", read(path), [], params())


def test_nodes_of_one_partition_need_no_kind(tmp_path: Path) -> None:
    path, nodes = tmp_path / "log.csv", tmp_path / "nodes.txt"
    jobs = [f"{1_700_000_000 + 1_728 * k},0,864,3600,1,1,40,16,0,compute" for k in range(3_000)]
    path.write_text("\n".join(["submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition", *jobs]) + "\n")
    nodes.write_text("NodeName=n1 CPUTot=80 RealMemory=65536 Gres=(null) Partitions=compute\n")
    for machines in ([], ["1 cpu=80,memory=64"]):
        found = site_rows("mine", path, "slurm", read(path, nodes=nodes), machines, params(), nodes=nodes)
        assert found.scenario["loads"] == [19]  # 25 % of the processors, 12.5 % of the memory
        assert "kind" not in found.scenario["machines"][0]  # type: ignore[index, operator]


def test_weights_of_a_slurm_become_the_present_order(tmp_path: Path) -> None:
    path, weights = log(tmp_path), Multifactor(age=1000, fair_share=500)
    settings = {"today": "multifactor", "slurm": weights.model_dump(exclude_unset=True)}
    found = site_rows("mine", path, "swf", read(path, "swf"), [], params(), settings=settings)
    assert found.site == {"today": "multifactor", "slurm": {"age": 1000, "fair_share": 500}}
    assert checked(found).sites["mine"] == Site(today="multifactor", slurm=weights)


def test_an_agent_that_learns_from_the_log_is_added_on_request(tmp_path: Path) -> None:
    found = rows_of(log(tmp_path), learns=True)
    assert list(found.agents) == ["mine_ppo"]
    agent = checked(found).agents["mine_ppo"]
    assert (agent.scenario, agent.finetune.loads) == ("mine", (17,))


def test_a_known_site_keeps_its_row_and_its_agent(tmp_path: Path) -> None:
    path = log(tmp_path)
    known = checked(rows_of(path, learns=True))
    site = Site(today="sjf", most=Vetoes(longest=0.5))
    known = known.model_copy(update={"sites": {"mine": site}})
    found = site_rows("mine", path, "swf", read(path, "swf"), (), known)
    assert found.site == {"today": "sjf", "most": {"longest": 0.5}}
    assert list(found.agents) == ["mine_ppo"]


def test_machines_that_a_user_names_are_taken(tmp_path: Path) -> None:
    found = rows_of(log(tmp_path), "4 cpu=4", "2 cpu=16")
    assert found.scenario["machines"] == [{"count": 4, "has": {"cpu": 4.0}}, {"count": 2, "has": {"cpu": 16.0}}]
    with pytest.raises(UserError, match="--machines: expected as '4 cpu=64,memory=256', found 'four cpu'"):
        rows_of(log(tmp_path), "four cpu")
    with pytest.raises(UserError, match=r"--machines: 0\.count: expected greater than 0"):
        rows_of(log(tmp_path), "0 cpu=4")


def test_a_log_of_a_day_or_of_few_jobs_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"of 1\.0 days of log the last 40% are 0\.4; .* about 35 more days"):
        rows_of(log(tmp_path, days=1))
    with pytest.raises(UserError, match="cannot tell: the log has 100 jobs; expected at least 2000"):
        rows_of(log(tmp_path, jobs=100))


def test_a_real_log_has_the_rows_of_its_pool(tmp_path: Path) -> None:
    found = rows_of(there(HPC2N))
    assert found.scenario["machines"] == [{"count": 1, "has": {"cpu": 240.0}}]
    assert found.scenario["loads"] == [57]


@pytest.mark.parametrize(
    ("jobs", "days", "tests"),
    [
        (3_000, 60, 0),  # 6 windows of 200 jobs
        (9_600, 50, 0),  # 19 windows, but 6 whole blocks of three days
        (9_600, 120, 15),  # 15 blocks of three days
        (50_000, 900, 100),  # as many as the rules require
    ],
)
def test_a_site_asks_the_gate_for_no_more_jobsets_than_its_log_has(
    tmp_path: Path, params: Params, jobs: int, days: float, tests: int
) -> None:
    found = rows_of(log(tmp_path, jobs, days), learns=True)
    needed = found.fewer.get("mine", params.rules.jobsets)
    if tests:
        assert found.scenario["jobsets"]["test"] == needed == tests <= found.windows
    else:  # fewer than ten allow no interval: `site` says that no agent can pass
        assert found.windows < 10
        assert needed > found.scenario["jobsets"]["test"]
