"""A policy that is worse than the fallback is taken back, and one that does not stays."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from steered import steered, until_free

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not
from pipeline.core.types import Json
from pipeline.stages.serve import heuristic
from pipeline.steering.canary import Canary, judge, rows_under
from pipeline.steering.journal import Journal
from pipeline.steering.release import WITHDRAWN

DIGEST = heuristic("sjf").digest
NODES: dict[str, Json] = {f"n{k}": {"cpu": 1.0, "memory": 0.9765625, "gpu": 0.0} for k in range(1, 5)}


def recorded(folder: Path, right_limits: bool, count: int = 750) -> None:
    """Jobs of four nodes, short and long ones, more than they can do; the limits of the short ones are the long ones.

    Under limits that are told right, shortest first is better than order of arrival; told wrong, it is longest first.
    """
    folder.mkdir(exist_ok=True)
    journal, rng = Journal(folder), np.random.default_rng(3)
    journal.add("begin", 0.0, mode="order", policy="sjf", digest=DIGEST)
    journal.add("pool", 0.0, partitions=["work"], machines=NODES)
    units: dict[str, Json] = {"cpu": 4.0, "memory": 0.4, "gpu": 0.0}
    for k, run in enumerate(rng.choice([10, 100], count)):
        limit = float(run if right_limits else 110 - run)
        journal.add("ran", 500.0, job=k, partition="work", eligible=40.0 * k, start=40.0 * k + 5, user="u",
                    end=40.0 * k + 5 + float(run), limit_s=limit, nodes=4, units=units)  # fmt: skip
    journal.close()


@pytest.mark.parametrize("right_limits", [True, False])
def test_a_policy_that_is_worse_is_found(tmp_path: Path, right_limits: bool) -> None:
    recorded(tmp_path, right_limits)
    found = judge(tmp_path, "machines", "sjf", DIGEST, 50, 1.0)
    assert found.windows == 15
    assert found.worse is not right_limits
    assert (found.regret > 0.2) is not right_limits
    assert (found.regret < -0.2) is right_limits


def test_of_another_policy_nothing_is_said(tmp_path: Path) -> None:
    recorded(tmp_path, right_limits=False)
    assert judge(tmp_path, "machines", "sjf", "another", 50, 1.0) == (0, 0.0, False)


def test_a_process_that_still_judges_when_the_controller_ends_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else asyncio warns of a loop that is closed, from a thread."""
    before = set(threading.enumerate())

    async def ends_early() -> None:
        canary = Canary(tmp_path, "machines", 50, 1.0)
        assert await canary.look("sjf", DIGEST) is None
        await asyncio.sleep(0.2)
        await canary.close()

    asyncio.run(ends_early())
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert [row.getMessage() for row in caplog.records if row.name == "asyncio"] == []


def test_what_another_policy_did_and_what_was_taken_back_does_not_count() -> None:
    def rows(*kinds: str) -> Iterator[Mapping[str, Json]]:
        for kind in kinds:
            yield {"kind": kind, "pools": [{"digest": "b"}]} if kind == "tick" else {"kind": kind, "digest": "a"}

    def kept(*kinds: str) -> list[Json]:
        return [row["kind"] for row in rows_under(rows(*kinds), "a")]

    assert kept("begin", "pool", "ran", "end", "begin", "ran") == ["pool", "ran", "ran"]
    assert kept("begin", "pool", "ran", "tick", "ran") == ["pool"]
    assert kept("begin", "pool", "ran", "tick", "begin", "ran") == ["pool", "ran"]
    assert kept("begin", "pool", "ran", "taken back", "ran") == ["pool"]


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.slow
def test_a_real_controller_takes_it_back_and_only_looks_on(tmp_path: Path) -> None:
    recorded(tmp_path / "steering", right_limits=False)
    with slurm(Cluster(nodes=4, cpus=1)) as cluster, steered(cluster, tmp_path / "steering") as one:
        one.busy()
        long, short = one.waits(5), one.waits(1)
        controller = one.steer("--canary", "50")
        one.slurm.until(lambda: bool(one.journal("taken back")), "a policy that is taken back", 300)
        one.until_reset()
        (row,) = one.journal("taken back")
        assert row["why"].startswith("sjf is worse than fcfs: 15 windows, mean regret +")
        assert row["back"] == "SiteFactor of 2 jobs taken back"
        first = one.journal("tick")[0]
        assert (first["set"], [int(job) for job in first["wanted"]]) == (True, [short, long])
        before = len(one.journal("tick"))
        one.slurm.until(lambda: len(one.journal("tick")) > before + 2, "ticks", 60)
        assert one.journal("tick")[-1]["set"] is False
        assert one.in_order() == []
        controller.terminate()
        assert "until another policy or --reset it only observes" in one.ended(controller)
        again = one.steer("--canary", "50", "--ticks", "2")
        assert "steer: it only observes: sjf is worse than fcfs" in one.ended(again)
        assert one.in_order() == []
        until_free(one.folder)
        assert "steer: it may act again: sjf is worse than fcfs" in one.by_hand().stderr
        assert json.loads((one.folder / "set.json").read_text())["withdrawn"] == {}


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.slow
def test_what_it_held_is_let_go_and_slurms_own_order_stands(tmp_path: Path) -> None:
    recorded(tmp_path / "steering", right_limits=False)
    ours = ("--hold", "--partition=held")
    with slurm(Cluster(nodes=4, cpus=1)) as cluster, steered(cluster, tmp_path / "steering") as one:
        cluster.ask("scontrol", "create", "partitionname=held", "nodes=n[1-4]", "state=up")
        busy = one.busy()
        long, short = one.waits(5, *ours), one.waits(1, *ours)
        theirs = one.waits(1, "--hold")
        controller = one.steer("--canary", "50", "--held-in", "held", mode="release")
        one.slurm.until(lambda: bool(one.journal("tick")), "a first tick", 300)
        assert one.held() == {long, short, theirs}
        one.slurm.until(lambda: bool(one.journal("taken back")), "a policy that is taken back", 300)
        one.kill_slurmctld()  # it may not have saved yet that it let them go
        (row,) = one.journal("taken back")
        assert row["why"].startswith("sjf is worse than fcfs: 15 windows, mean regret +")
        assert row["back"] == "2 held jobs let go"
        one.slurm.until(lambda: one.held() == {theirs}, "jobs let go again", 60)
        later = one.waits(1, *ours)
        one.slurm.until(lambda: one.held() == {theirs}, "a job that came later let go, too", 60)
        one.slurm.ask("scancel", busy)
        one.slurm.until(lambda: later in one.starts(busy), "all to start", 60)
        assert one.starts(busy) == [long, short, later]
        released = {job: how for row in one.journal("tick") for job, how in row["released"].items()}
        assert released[str(later)] == {"nodes": [], "why": WITHDRAWN}
        controller.terminate()
        said = one.ended(controller)
        assert "until another policy or --reset it only observes; 2 held jobs let go" in said
        again = one.steer("--canary", "50", "--ticks", "2", "--held-in", "held", mode="release")
        assert "steer: it only observes: sjf is worse than fcfs" in one.ended(again)
