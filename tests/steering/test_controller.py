"""A controller next to a real Slurm cluster: its order is the order of starts, and it can always be taken away."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from steered import Steered, killed, steered, until_free

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
DENIED = "SiteFactor may be set only by Slurm's operators and administrators, not by you"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LoopbackSlurm]:
    with slurm(Cluster(nodes=4, cpus=1)) as found:
        yield found


@pytest.fixture
def one(cluster: LoopbackSlurm, tmp_path: Path) -> Iterator[Steered]:
    with steered(cluster, tmp_path / "steering") as found:
        yield found


def test_jobs_start_in_the_order_that_the_policy_wants(one: Steered) -> None:
    busy = one.busy()
    long, short, middle = one.waits(5), one.waits(1), one.waits(3, "--array=0-1")
    frozen = one.waits(2, "--priority=7")
    later = one.waits(1, f"--dependency=afterok:{busy}")
    held = one.waits(1, "--hold")
    controller = one.steer()
    one.until_ordered(short, middle, long)
    one.slurm.ask("scancel", busy)
    one.slurm.until(lambda: one.starts(busy)[-1:] == [frozen], "all to start")
    assert one.starts(busy) == [short, middle, middle, long, frozen]
    one.slurm.ask("scontrol", "release", str(held))
    controller.terminate()
    said = one.ended(controller)
    assert controller.returncode == 0
    assert f"job {frozen} has a priority of its own" in said
    assert "steer: ended; SiteFactor of" in said
    assert one.slurm.jobs()[str(later)]["Priority"] == "1"
    kinds = {str(row["kind"]) for row in one.journal("begin") + one.journal("ran") + one.journal("end")}
    assert kinds == {"begin", "ran", "end"}
    assert {row["left"].get("frozen", 0) for row in one.journal("tick")} == {0, 1}


def test_what_a_killed_controller_set_is_taken_back_and_nothing_else(one: Steered) -> None:
    one.busy()
    long, short, theirs = one.waits(5), one.waits(1), one.waits(2)
    one.slurm.ask("scontrol", "update", f"jobid={theirs}", "SiteFactor=-5")
    controller = one.steer()
    one.slurm.until(lambda: one.in_order()[:2] == [short, long], "an order")
    second = one.steer()
    said = one.ended(second)
    assert second.returncode == 2
    assert (
        said
        == f"error: {one.folder}: a controller (process {controller.pid}) is at work here; expected one at a time\n"
    )
    killed(controller)
    one.slurm.until(lambda: one.factors() == {long: 0, short: 0, theirs: -5}, "factors taken back")
    until_free(one.folder)
    assert set(one.slurm.states().values()) == {"R", "PD"}


def test_slurmctld_dies_with_the_controller(alone: Steered) -> None:
    alone.busy()
    long, short = alone.waits(5), alone.waits(1)
    controller = alone.steer()
    alone.until_ordered(short, long)
    (words,) = alone.slurm.kill("slurmctld")
    killed(controller)
    alone.slurm.begin(*words)
    alone.until_reset()
    until_free(alone.folder)
    assert alone.by_hand().stderr == f"steer: {alone.folder}: no changes to take back\n"


@pytest.mark.slow
def test_both_are_killed_and_it_is_taken_back_by_hand(one: Steered) -> None:
    one.busy()
    long, short = one.waits(5), one.waits(1)
    controller = one.steer()
    one.until_ordered(short, long)
    one.kill_watchdog()
    killed(controller)
    until_free(one.folder)
    assert one.in_order() == [short, long]
    assert one.by_hand().stderr == "steer: SiteFactor of 2 jobs taken back\n"
    assert one.factors() == {long: 0, short: 0}


def test_who_only_looks_sets_nothing(one: Steered) -> None:
    one.busy()
    one.slurm.ask("scontrol", "create", "partitionname=urgent", "nodes=n[1-4]", "prioritytier=9", "state=up")
    long, short = one.waits(5), one.waits(1)
    first_of_all, both = one.waits(9, "--partition=urgent"), one.waits(2, "--partition=work,urgent")
    watching = one.steer("--ticks", "2", mode="observe")
    said = one.ended(watching)
    assert watching.returncode == 0, said
    assert set(one.factors().values()) == {0}
    (first, second) = one.journal("tick")
    assert [pool["order"] for pool in first["pools"]] == [[both, first_of_all], [short, long]]
    assert [pool["partitions"] for pool in first["pools"]] == [["urgent"], ["work"]]
    assert [pool["same"] for pool in second["pools"]] == [True, True]
    assert first["set"] is False


@pytest.mark.slow
def test_a_policy_that_dies_leaves_slurms_own_order_until_it_is_back(one: Steered) -> None:
    one.busy()
    long, short = one.waits(5), one.waits(1)
    one.steer()
    one.until_ordered(short, long)
    one.kill_policy()
    one.until_reset()
    one.until_ordered(short, long)
    assert any("fell_back" in pool for row in one.journal("tick") for pool in row["pools"])


@pytest.mark.slow
def test_who_may_not_order_is_told_so_and_may_look(one: Steered, tmp_path: Path) -> None:
    """Slurm's commands are those of another user, the controller is not: his Python may lie where he may not read."""
    one.busy()
    one.waits(5)
    for name in ("scontrol", "squeue", "sinfo", "sprio"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups {shutil.which(name)} "$@"\n'
        )
        (tmp_path / name).chmod(0o755)
    found = {mode: one.steer("--ticks", "1", mode=mode, path=tmp_path) for mode in ("observe", "order")}
    said = {mode: one.ended(process) for mode, process in found.items()}
    assert {mode: process.returncode for mode, process in found.items()} == {"observe": 0, "order": 2}, said
    assert said["order"].splitlines()[-1] == f"error: scontrol: {DENIED}"
    assert set(one.factors().values()) == {0}
