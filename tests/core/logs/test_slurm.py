"""The log that `import slurm` writes, with the nodes of `scontrol show node`."""

from pathlib import Path

import pytest

from pipeline.core.logs.registry import guess, read
from pipeline.core.logs.slurm import NO_NODES, NO_PARTITION, UNKNOWN, SlurmNode, nodes_of
from pipeline.core.types import ANY_KIND
from pipeline.errors import UserError

HEADER = "submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition\n"
ROWS = (
    "1767225600,60,3600,7200,7,2,16,32.5,0,cpu\n"
    "1767225700,,1800,3600,-1,1,8,0,2,gpu\n"
    "1767225800,0,5,60,2147483000,1,0.5,1,0,cpu|long\n"
)
NODES = """NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=4 CPUTot=64 CPULoad=4.92
   Gres=gpu:a100:4(S:0-1),gpu:t4:2,shard:8
   RealMemory=256000 Partitions=gpu
NodeName=n2 CPUTot=32 Gres=(null) RealMemory=128000 Partitions=cpu
NodeName=n3 CPUTot=32 Gres=(null) RealMemory=128000 Partitions=long,cpu
NodeName=n4 CPUTot=32 Gres=(null) RealMemory=128000
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + ROWS)
    return path


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.txt"
    path.write_text(NODES)
    return path


def test_jobs_keep_all_resources_on_each_node(log: Path) -> None:
    assert guess(log) == "slurm"
    found = read(log)
    assert found.resources == ("cpu", "memory", "gpu")
    assert found.demand.tolist() == [[16_000, 32_500, 0], [8_000, 0, 2_000], [500, 1_000, 0]]
    assert found.nodes.tolist() == [2, 1, 1]
    assert found.submit_s.tolist() == [1767225600, 1767225700, 1767225800]
    assert found.wait_s.tolist() == pytest.approx([60, float("nan"), 0], nan_ok=True)
    assert (found.run_s.tolist(), found.estimate_s.tolist()) == ([3600, 1800, 5], [7200, 3600, 60])
    assert found.user.tolist() == [7, -1, 2147483000]
    assert found.has_estimates
    assert (found.machines, found.kind_names) == (None, ("",))


def test_jobs_run_on_the_nodes_of_their_partitions(log: Path, nodes: Path) -> None:
    found = read(log, nodes=nodes)
    assert found.kind_names == ("cpu", "cpu+long", "gpu")
    assert found.kinds.tolist() == [0b011, 0b100, 0b011]
    assert found.machines is not None
    assert found.machines.kind.tolist() == [2, 0, 1]  # n4 is in no partition
    assert found.machines.capacity.tolist() == [[64_000, 250_000, 6_000], [32_000, 125_000, 0], [32_000, 125_000, 0]]


def test_jobs_that_every_node_can_run_need_no_kind(log: Path, nodes: Path) -> None:
    """With a single set of partitions, machines without kinds run these jobs as well."""
    nodes.write_text("NodeName=n1 CPUTot=64 RealMemory=256000 Gres=gpu:2 Partitions=cpu,gpu,long\n")
    found = read(log, nodes=nodes)
    assert found.kind_names == ("cpu+gpu+long",)
    assert (found.kinds == ANY_KIND).all()


def test_rows_that_are_no_jobs_are_counted(tmp_path: Path, nodes: Path) -> None:
    path = tmp_path / "log.csv"
    wrong = (
        ",0,60,60,1,1,1,0,0,cpu\n"
        "1767225900,0,60,60,1,0,1,0,0,cpu\n"
        "1767225900,0,0,60,1,1,1,0,0,cpu\n"
        "1767225900,0,60,60,1,1,1,0,0,old\n"
    )
    path.write_text(HEADER + ROWS + wrong)
    found = read(path, nodes=nodes)
    assert len(found.id) == 3
    assert {one.reason: (one.rows, one.first_line) for one in found.dropped} == {
        UNKNOWN: (1, 5),
        NO_NODES: (2, 6),
        NO_PARTITION: (1, 8),
    }
    assert {one.reason for one in read(path).dropped} == {UNKNOWN, NO_NODES}  # without nodes, partitions do not matter


def test_nodes_have_the_gpus_of_all_types() -> None:
    found = nodes_of(NODES)
    assert [(node.name, node.gpus) for node in found] == [("n1", 6), ("n2", 0), ("n3", 0), ("n4", 0)]
    assert SlurmNode("n", 1, 1, "gpu:2", ()).gpus == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PartitionName=cpu\n", "nodes.txt: expected NodeName=..., found 'PartitionName=cpu'"),
        ("", "nodes.txt: expected nodes with partitions, as 'scontrol show node' prints them, found none"),
        ("NodeName=n1 CPUTot=x Partitions=a\n", "nodes.txt, n1: CPUTot: expected a whole number, found 'x'"),
        (
            "".join(f"NodeName=n{k} Partitions=p{k}\n" for k in range(64)),
            "nodes.txt: expected at most 63 different sets of partitions, found 64",
        ),
    ],
)
def test_another_file_of_nodes_is_one_line(log: Path, nodes: Path, text: str, said: str) -> None:
    nodes.write_text(text)
    with pytest.raises(UserError) as caught:
        read(log, nodes=nodes)
    assert str(caught.value).endswith(said)


def test_a_missing_file_of_nodes_is_one_line(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.txt"):
        read(log, nodes=tmp_path / "none.txt")
