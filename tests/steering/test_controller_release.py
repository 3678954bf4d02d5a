"""A controller releases the held jobs of a real Slurm cluster, in the policy's order, and nothing stays held."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from steered import Steered, killed, steered

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
OURS = ("--hold", "--partition=held")
RELEASE = ("--held-in", "held")
BEGUN_S = 240.0  # in which a controller has begun, however busy the machine is
SAVED_S = 7.0  # behind which slurmctld has saved what it was told


@pytest.fixture(scope="module")
def cluster() -> Iterator[LoopbackSlurm]:
    with slurm(Cluster(nodes=4, cpus=1)) as found:
        found.ask("scontrol", "create", "partitionname=held", "nodes=n[1-4]", "state=up")
        yield found


@pytest.fixture
def one(cluster: LoopbackSlurm, tmp_path: Path) -> Iterator[Steered]:
    with steered(cluster, tmp_path / "steering") as found:
        yield found


def let_go(one: Steered) -> dict[int, tuple[list[str], str]]:
    """Who was let go, in order: where to, and why."""
    rows = [row["released"] for row in one.journal("tick")]
    return {int(job): (how["nodes"], how["why"]) for row in rows for job, how in row.items()}


@pytest.mark.slow
def test_jobs_start_in_the_order_in_which_they_are_let_go_and_where_the_policy_wants(one: Steered) -> None:
    busy = one.busy()
    long, short, middle = one.waits(5, *OURS), one.waits(1, *OURS), one.waits(3, *OURS)
    elsewhere = one.waits(1, "--hold")
    small = int(one.slurm.submit("sleep 1", "--time=2", *OURS))
    tied = one.waits(1, *OURS, f"--dependency=afterok:{busy}")
    controller = one.steer(*RELEASE, mode="release")
    one.slurm.until(lambda: tied in let_go(one), "a first tick", BEGUN_S)
    one.slurm.ask("scontrol", "hold", str(middle))  # by root, which is another hold than that of its user
    one.slurm.ask("scancel", busy)
    one.slurm.until(lambda: long in one.starts(busy), "the last to start", BEGUN_S)
    order = list(let_go(one))
    assert order == [tied, *(job for job in one.starts(busy))]
    assert sorted(order[1:]) == [long, short, small]
    assert order.index(short) < order.index(long)
    assert let_go(one)[tied] == ([], "depends on others")
    place = one.slurm.jobs()[str(small)]
    assert let_go(one)[small] == ([place["NodeList"]], "")
    assert place["ReqNodeList"] == place["NodeList"]
    controller.terminate()
    said = one.ended(controller)
    assert controller.returncode == 0, said
    assert "steer: what is submitted held in held from now on stays held, until somebody lets it go" in said
    reasons = {number: row["Reason"] for number, row in one.slurm.jobs().items()}
    assert [reasons[str(job)] for job in (elsewhere, middle)] == ["JobHeldUser", "JobHeldAdmin"]


def test_nothing_stays_held_when_the_controller_is_killed(one: Steered) -> None:
    one.busy()
    jobs, elsewhere = [one.waits(5, *OURS), one.waits(1, *OURS)], one.waits(1, "--hold")
    controller = one.steer(*RELEASE, mode="release")
    one.slurm.until(lambda: len(one.journal("tick")) > 1, "ticks", BEGUN_S)
    assert one.held() == {*jobs, elsewhere}
    killed(controller)
    one.slurm.until(lambda: one.held() == {elsewhere}, "jobs let go", BEGUN_S)
    later = one.waits(1, *OURS)
    one.slurm.until(lambda: later not in one.held(), "a job that came later let go, too", BEGUN_S)
    assert one.by_hand().returncode == 0
    assert one.waits(1, *OURS) in one.held()


@pytest.mark.slow
def test_two_controllers_from_two_folders_are_one_too_many(one: Steered, tmp_path: Path) -> None:
    first = one.steer()
    one.slurm.until(lambda: bool(one.journal("tick")), "a first tick", BEGUN_S)
    second = Steered(one.slurm, tmp_path / "other" / "steering")
    second.folder.parent.mkdir()
    refused = second.steer("--ticks", "1")
    assert second.ended(refused) == (
        f"error: cluster loop: another controller is at work from another folder (process {first.pid}, or its "
        "watchdog); expected one at a time\n"
    )
    assert refused.returncode == 2
    looks = second.steer("--ticks", "1", mode="observe")
    second.ended(looks)
    assert looks.returncode == 0


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Steered]:
    """A cluster for one test: a slurmctld that is killed forgets its last seconds, and then of other tests, too."""
    with slurm(Cluster(nodes=4, cpus=1)) as found, steered(found, tmp_path / "steering") as of:
        found.ask("scontrol", "create", "partitionname=held", "nodes=n[1-4]", "state=up")
        yield of


@pytest.mark.slow
def test_what_slurmctld_forgot_is_let_go_again_and_a_number_used_again_is_another_job(alone: Steered) -> None:
    busy, theirs = alone.busy(), alone.waits(1, "--hold")
    tied = ("--hold", "--partition=held", f"--dependency=afterok:{busy}")  # it is let go at once
    alone.steer(*RELEASE, mode="release")
    alone.slurm.until(lambda: bool(alone.journal("tick")), "a first tick", BEGUN_S)
    saved = alone.waits(1, *OURS)
    time.sleep(SAVED_S)
    alone.slurm.ask("scontrol", "update", f"jobid={saved}", f"dependency=afterok:{busy}")
    alone.slurm.until(lambda: saved in let_go(alone), "a job that is let go")
    lost = alone.waits(1, *tied)
    alone.slurm.until(lambda: lost in let_go(alone), "another")
    with stopped(alone.started[-1]):
        alone.kill_slurmctld()
        alone.slurm.until(lambda: alone.held() == {saved, theirs}, "a slurmctld that forgot")
        assert alone.waits(1, *tied) == lost
    alone.slurm.until(lambda: alone.held() == {theirs}, "both let go", BEGUN_S)
    rows = [row["released"] for row in alone.journal("tick")]
    assert [sum(str(job) in row for row in rows) for job in (saved, lost)] == [2, 2]


@contextmanager
def stopped(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Let a process do nothing for a while."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
