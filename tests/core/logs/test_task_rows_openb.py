"""Reader of openb logs. Expected numbers are computed by hand from the few rows of each log."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.core.logs.task_rows import read_pods
from pipeline.core.logs.trace import Trace, fits_somewhere
from pipeline.core.types import ANY_KIND
from pipeline.errors import UserError

SHARED = Path(__file__).parents[4] / "shared" / "traces"
PODS, NODES = SHARED / "openb_pod_list_default.csv.gz", SHARED / "openb_node_list_all_node.csv.gz"
HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
MACHINES = ("a,32000,65536,0,", "b,8000,32768,2,P100", "c,64000,131072,4,T4", "d,8000,32768,2,P100")


def pod(
    wants: tuple[object, ...] = (1000, 1024, 0, 0), spec: str = "", times: tuple[object, ...] = (10, 30, 20)
) -> str:
    """Return a pod of (cpu_milli, memory_mib, num_gpu, gpu_milli) and (creation, deletion, scheduled)."""
    return ",".join(map(str, ("pod", *wants, spec, "LS", "Running", *times)))


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def read(folder: Path, *pods: str, machines: tuple[str, ...] | None = None) -> Trace:
    nodes = machines and written(folder, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model", *machines)
    return read_pods(written(folder, "pods.csv", HEADER, *pods), nodes=nodes or None)


def test_every_field_comes_from_its_place(tmp_path: Path) -> None:
    trace = read(tmp_path, pod((6500, 12288, 1, 460), times=(100, 160, 104)))
    assert (trace.id, trace.submit_s, trace.wait_s, trace.run_s, trace.estimate_s) == (1, 100, 4, 56, 56)
    assert trace.demand.tolist() == [[6500, 12_000, 460]]
    assert (trace.nodes, trace.user, trace.kinds, trace.has_estimates) == (1, -1, ANY_KIND, False)
    assert (trace.resources, trace.units) == (("cpu", "memory", "gpu"), ("cores", "GiB", "GPUs"))
    assert (trace.machines, trace.kind_names) == (None, ("",))


def test_gpus_are_their_number_times_the_part_of_each(tmp_path: Path) -> None:
    trace = read(tmp_path, pod((1, 1, 4, 1000)), pod((1, 1, 1, 220)), pod((1, 1, 0, 500)), pod((1, 1, 0, "")))
    assert trace.demand[:, 2].tolist() == [4000, 220, 0, 0]


def test_pods_that_cannot_be_jobs_are_dropped_each_for_its_first_cause(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        pod(times=(10, 30, "")),
        pod(times=("", 30, "")),
        pod(times=(10, 30, 5)),
        pod(times=(10, "", 20)),
        pod(times=(10, 20, 20)),  # a job of one second
        pod((1000, "", 0, 0)),
        pod((1000, 1024, 1, "")),
        pod((-1, 1024, 0, 0)),
        pod(),
    )
    assert (trace.id.tolist(), trace.run_s.tolist()[0], trace.rows) == ([5, 9], 1, 9)
    assert trace.dropped == (
        ("time of creation unknown", 1, 3),
        ("never scheduled", 1, 2),
        ("scheduled before it was created", 1, 4),
        ("time of deletion unknown", 1, 5),
        ("CPU, memory or GPU unknown", 2, 7),
        ("CPU, memory or GPU below 0", 1, 9),
    )
    assert trace.repaired == (("ran less than a second: 1 s taken", 1, 6),)


def test_machines_and_their_kinds_come_from_the_file_of_nodes(tmp_path: Path) -> None:
    trace = read(tmp_path, pod(), machines=MACHINES)
    assert trace.kind_names == ("", "P100", "T4")
    assert trace.machines is not None
    assert trace.machines.kind.tolist() == [0, 1, 2, 1]
    assert trace.machines.resources == ("cpu", "memory", "gpu")
    small = [8000, 32_000, 2000]
    assert trace.machines.capacity.tolist() == [[32_000, 64_000, 0], small, [64_000, 128_000, 4000], small]


def test_a_pod_runs_on_the_models_that_it_names(tmp_path: Path) -> None:
    trace = read(tmp_path, pod(spec="T4"), pod(spec="P100|T4"), pod(), pod(spec="A10|T4"), machines=MACHINES)
    assert trace.kinds.tolist() == [0b100, 0b110, int(ANY_KIND), 0b100]


def test_a_pod_whose_models_no_node_has_is_dropped(tmp_path: Path) -> None:
    trace = read(tmp_path, pod(spec="A10"), pod(), machines=MACHINES)
    assert (trace.id, trace.dropped) == (2, (("wants GPU models that no node has", 1, 2),))


def test_without_nodes_the_kinds_are_the_models_that_pods_name(tmp_path: Path) -> None:
    trace = read(tmp_path, pod(spec="V100M32"), pod(spec="V100M16|V100M32"))
    assert trace.kind_names == ("V100M32", "V100M16")
    assert trace.kinds.tolist() == [0b01, 0b11]


def test_jobs_fit_where_kind_and_amount_allow_on_enough_machines(tmp_path: Path) -> None:
    pods = (
        pod((8000, 1024, 2, 1000), "P100"),
        pod((8001, 1024, 2, 1000), "P100"),
        pod((1000, 1024, 3, 1000)),
        pod((1000, 1024, 5, 1000)),
    )
    trace = read(tmp_path, *pods, machines=MACHINES)
    assert fits_somewhere(trace).tolist() == [True, False, True, False]
    assert fits_somewhere(trace._replace(nodes=np.array([2, 1, 2, 1]))).tolist() == [True, False, False, False]
    assert fits_somewhere(trace._replace(machines=None)).all()


def test_a_node_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nodes\.csv:3: expected a number as gpu, found 'many'$"):
        read(tmp_path, pod(), machines=("a,1,1,0,", "b,1,1,many,T4"))
    with pytest.raises(UserError, match=r"nodes\.csv:2: expected a number as gpu, found nothing$"):
        read(tmp_path, pod(), machines=("a,1,1,,T4",))
    with pytest.raises(UserError, match=r"nodes\.csv:2: expected amounts of at least 0, found less$"):
        read(tmp_path, pod(), machines=("a,1,-1,0,T4",))
    with pytest.raises(UserError, match=r"nodes\.csv: expected nodes, found none$"):
        read_pods(
            written(tmp_path, "pods.csv", HEADER, pod()),
            nodes=written(tmp_path, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model"),
        )


def test_more_kinds_than_a_job_has_bits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected at most 63 models of GPUs, found 'model63' as well$"):
        read(tmp_path, *(pod(spec=f"model{k}") for k in range(64)))


# The real log


def test_the_default_pods_are_read_whole() -> None:
    for path in (PODS, NODES):
        if not path.exists():
            pytest.skip(f"the trace files stand beside the project, and {path} is not there")
    trace = read_pods(PODS, nodes=NODES)
    assert (len(trace.id), trace.rows) == (8152 - 897, 8152)
    ((reason, rows, _),) = trace.dropped
    assert (reason, rows) == ("never scheduled", 897)
    assert trace.repaired == ()
    assert trace.machines is not None
    assert len(trace.machines.kind) == 1523
    assert len(np.unique(np.column_stack([trace.machines.capacity, trace.machines.kind]), axis=0)) == 27
    assert len(trace.kind_names) == 8
    assert (trace.submit_s >= 1e7).mean() == pytest.approx(0.99, abs=0.005)
    assert fits_somewhere(trace).all()
