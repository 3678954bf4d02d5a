"""Outages of nodes, converted to those of the replay's machines."""

from pathlib import Path

import numpy as np
import pytest
from log_scenarios import log_scenario

from pipeline.core.config import MachinesScenario
from pipeline.core.logs.registry import read
from pipeline.core.logs.trace import Trace
from pipeline.errors import UserError
from pipeline.problems.machines.env.workload.windows import Fitted, fitted
from pipeline.sites.queue import outages_of, read_all

BEGAN = 1_767_225_600  # 2026-01-01T00:00:00 UTC
NODES = """NodeName=big CPUTot=8 RealMemory=1024 Partitions=cpu
NodeName=a1 CPUTot=4 RealMemory=1024 Partitions=cpu
NodeName=a2 CPUTot=4 RealMemory=1024 Partitions=cpu
NodeName=a3 CPUTot=4 RealMemory=1024 Partitions=cpu
NodeName=g1 CPUTot=4 RealMemory=1024 Partitions=gpu
"""
MACHINES = [
    {"count": 1, "has": {"cpu": 4.0}, "kind": "gpu"},
    {"count": 2, "has": {"cpu": 4.0}, "kind": "cpu"},
    {"count": 1, "has": {"cpu": 8.0}, "kind": "cpu"},
]


@pytest.fixture
def known(tmp_path: Path) -> tuple[Trace, Fitted]:
    rows = [f"{BEGAN + 600 * k},0,300,600,1,1,4,0,0,{('cpu', 'gpu')[k % 2]}" for k in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(["submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition", *rows]))
    (tmp_path / "nodes.txt").write_text(NODES)
    trace = read(tmp_path / "log.csv", nodes=tmp_path / "nodes.txt")
    row = log_scenario(4.0, "x", {"format": "slurm"}, machines=MACHINES)
    scenario = MachinesScenario.model_validate(row)
    return trace, fitted(trace, scenario.workload, scenario)  # type: ignore[arg-type]


def events(folder: Path, *rows: str) -> Path:
    (folder / "events.txt").write_text("\n".join(["NodeName|TimeStart|TimeEnd|State", *rows]) + "\n")
    return folder / "events.txt"


def test_each_node_is_a_machine_of_its_kind(known: tuple[Trace, Fitted], tmp_path: Path) -> None:
    """The scenario has one machine fewer than the log has nodes like a1; the last of these, a3, gets none."""
    rows = [
        f"{name}|2026-01-01T0{hour}:00:00|Unknown|DOWN" for hour, name in enumerate(("big", "a1", "a3", "g1", "a2"))
    ]
    found, said = read_all([events(tmp_path, *rows)], known[0])
    assert said == "5 outages of 5 nodes, 0 of them announced"
    out = outages_of(found, *known)
    assert (out.machine.tolist(), out.begin.tolist()) == ([3, 1, 0], [0.0, 3600.0, 10_800.0])
    assert out.end.tolist() == [19 * 600 + 300] * 3  # the end of the last job
    assert not out.announced.any()


def test_no_outage_is_none(known: tuple[Trace, Fitted]) -> None:
    assert [len(column) for column in outages_of([], *known)] == [0, 0, 0, 0]
    nameless = known[0]._replace(machines=known[0].machines._replace(names=()))  # type: ignore[union-attr]
    assert len(outages_of([], nameless, known[1]).machine) == 0


def test_what_is_left_out_is_counted(known: tuple[Trace, Fitted], tmp_path: Path) -> None:
    drained = events(
        tmp_path, "a1|2026-01-01T00:00:00|2026-01-01T01:00:00|DRAIN", "old|2026-01-01T00:00:00|Unknown|DOWN"
    )
    (tmp_path / "reserved.txt").write_text(
        "Name|TimeStart|TimeEnd|NodeName|Flags\n"
        "m|2026-01-01T02:00:00|2026-01-01T03:00:00|a[1-2]|MAINT\n"
        "course|2026-01-01T02:00:00|2026-01-01T03:00:00|a3|\n"
    )
    found, said = read_all([drained, tmp_path / "reserved.txt"], known[0])
    assert said == (
        "3 outages of 2 nodes, 2 of them announced; 1 reservations without the flag MAINT are not replayed; "
        "1 unknown nodes, such as old"
    )
    assert np.flatnonzero(outages_of(found, *known).announced).tolist() == [1, 2]


@pytest.mark.parametrize("nodes", [True, False])
def test_a_file_of_other_nodes_is_refused(known: tuple[Trace, Fitted], tmp_path: Path, nodes: bool) -> None:
    trace = known[0] if nodes else known[0]._replace(machines=None)
    with pytest.raises(
        UserError, match=r"expected outages of (a log with a|the log's) file of nodes.*, found those of x"
    ):
        read_all([events(tmp_path, "x|2026-01-01T00:00:00|Unknown|DOWN")], trace)
