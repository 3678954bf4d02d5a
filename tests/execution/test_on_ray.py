"""Ray finds what is found here, on a cluster of its own or at an address; what is not there is one line."""

import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import torch
from executed import count, killed_once, ray_cluster, refused, sums, threads, total, wait_until

from benchmarks.slurm.loopback import own_ports
from pipeline.errors import UserError
from pipeline.execution import on_ray, worker
from pipeline.execution.commands import FOLDER, Setting
from pipeline.execution.executor import executor

TWO = Setting(backend="ray", workers=2)


def test_without_ray_it_is_said_what_to_install(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "ray.py").write_text("raise ModuleNotFoundError(name='ray')")
    monkeypatch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
    with pytest.raises(UserError, match=r"^needs ray: pip install 'deeprm-pipeline\[ray\]'"):
        found(TWO)


def test_where_nobody_answers_it_is_said() -> None:
    with own_ports(1) as (port,):
        address = f"127.0.0.1:{port}"
        said = rf"^executor: no answer from {address} .*expected the head of a Ray cluster$"
        with pytest.raises(UserError, match=said):
            found(Setting(backend="ray", workers=2, address=address))
    with pytest.raises(UserError, match=r"no answer from nowhere\.invalid:6379"):
        found(Setting(backend="ray", workers=2, address="nowhere.invalid:6379"))


def found(setting: Setting) -> list[int]:
    with executor(1, setting) as workers:
        return workers.map(abs, [-1, -2])


@pytest.mark.slow
def test_actors_find_what_is_found_here_on_their_threads_also_when_one_is_killed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = sums(place, 7)
    torch.set_num_threads(3)
    with executor(3, TWO) as workers:
        assert [one.tobytes() for one in workers.map(total, tasks)] == [total(task).tobytes() for task in tasks]
        assert workers.map(threads, [0, 1]) == [(3, 3, "3")] * 2
        assert workers.map(killed_once, tasks) == [float(task.values.sum()) for task in tasks]
        assert "a worker was lost" in capsys.readouterr().err
        with pytest.raises(UserError, match=r"^task 2: expected another$"):
            workers.map(refused, [0, 1, 2])
    assert list((place / FOLDER).glob("*.work")) == []


@pytest.mark.slow
def test_a_cluster_at_an_address_is_used_and_one_of_another_version_is_refused(
    tmp_path_factory: pytest.TempPathFactory, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # there may be a token of a Ray that a stage has started
    with ray_cluster(Path(tempfile.mkdtemp(prefix="ray-"))) as address:
        there = Setting(backend="ray", address=address)
        tasks = sums(place, 3)
        with executor(1, there) as workers:
            assert [one.tobytes() for one in workers.map(total, tasks)] == [total(task).tobytes() for task in tasks]
        monkeypatch.setattr(worker, "code_digest", lambda: "0123456789abcdef")
        with pytest.raises(
            UserError, match=r"^executor: \S+ has another version of the code .* expected 0123456789ab, "
        ):
            found(there)


def test_what_ray_says_of_a_head_that_is_gone_is_said_as_what_to_do() -> None:
    said = "rpc_client.h:204: Failed to connect to GCS within 20 seconds. GCS may have been killed."
    gone = "error: executor: the head of Ray at head:6379 is gone; begin the cluster again, then run again to resume"
    assert on_ray.understood(said, "head:6379") == gone
    assert on_ray.understood("another line", "head:6379") == "another line"


@pytest.mark.slow
def test_when_the_head_is_killed_it_is_said_before_ray_ends_the_stage(place: Path) -> None:
    threading.Thread(target=kill_head_once_begun, args=(place,)).start()
    gone = pytest.raises(UserError, match=r"^executor: the head of Ray at this machine is gone; run again to resume$")
    with gone, executor(1, TWO) as workers:
        workers.map(total, sums(place, 2, takes_s=100))


def kill_head_once_begun(place: Path) -> None:
    wait_until(lambda: count(place) == 2)
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            if "gcs_server" in " ".join(one.cmdline()):
                one.kill()
