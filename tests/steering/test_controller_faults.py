"""Each call of Slurm's commands and each write to the disk fails once, wherever it is: nothing stays held or set."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faulty_slurm import FaultySlurm, KilledError
from pydantic import BaseModel, ConfigDict

from pipeline.errors import UserError
from pipeline.steering import release, session, watchdog
from pipeline.steering.controller import Controller
from pipeline.steering.journal import Journal
from pipeline.steering.ledger import Ledger
from pipeline.steering.settings import Mode, Settings
from pipeline.steering.slurm import Slurm
from pipeline.steering.watchdog import retry_undo, undo_all

CALLS = ("timeout", "busy", "slow", "done all the same", "half", "killed before", "killed behind")
SAVES = ("disk once", "disk full")
MOST = 100  # calls or writes of a run; there are fewer
RELEASE = ({2: "JobHeldUser", 3: "JobHeldUser", 4: "JobHeldAdmin", 5: "JobHeldUser"},
           {2: "held", 3: "held", 4: "work", 5: "work"})  # fmt: skip
ORDER = ({2: "", 3: "", 4: "", 5: ""}, dict.fromkeys((2, 3, 4, 5), "work"))


class State(BaseModel):
    model_config = ConfigDict(extra="allow")


class Gateway:
    """A policy that starts one job a tick, and turns the queue round at each."""

    scenario, example = "machines", {"waiting": [{"demand": {"cpu": 1, "memory": 1}}]}
    active = SimpleNamespace(scenario="machines", policy="sjf", digest="d" * 8)
    served = SimpleNamespace(policy="sjf", digest="d" * 8, place="sjf")
    fallback, live = SimpleNamespace(policy="fcfs"), SimpleNamespace(state=State)

    def __init__(self) -> None:
        self.asked = 0

    async def watch(self) -> None:
        await asyncio.sleep(3600)

    async def decide(self, state: Any) -> Any:
        self.asked += 1
        jobs = sorted((job["id"] for job in state.waiting), reverse=bool(self.asked % 2))
        starts = [{"job": job, "machines": ["n1"]} for job in jobs[:1]]
        decision = {"order": [{"job": job, "score": None} for job in jobs], "starts": starts, "never": []}
        return SimpleNamespace(decision=decision, fell_back=False, why="")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FaultySlurm]:
    """Run a controller for four ticks with one fault, and let a watchdog take back what that left."""
    for module in (release, watchdog):
        monkeypatch.setattr(module, "sleep", lambda seconds: None)
    number = iter(range(1_000_000))

    def once(mode: Mode, fault: str, at: int) -> FaultySlurm:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        slurm = FaultySlurm(*(RELEASE if mode is Mode.RELEASE else ORDER), fault, at)
        slurm.factors[5] = 7  # somebody else's
        monkeypatch.setattr(subprocess, "run", slurm.run)
        monkeypatch.setattr(os, "fsync", slurm.fsync)
        held_in = ("held",) if mode is Mode.RELEASE else ()
        settings = Settings(mode, folder, tick_s=0.0, strength=5000, ticks=4, held_in=held_in, canary=0)
        _steer(Slurm({}), settings, killed=fault.startswith("killed"))
        _take_back(slurm, folder)
        return slurm

    return once


def _steer(slurm: Slurm, settings: Settings, killed: bool) -> None:
    try:
        controller = Controller(slurm, Gateway(), settings, Ledger(settings.folder), Journal(settings.folder))  # type: ignore[arg-type]
        controller.begin({})
        if killed:  # none of what a controller does when it ends is done
            asyncio.run(controller.run_loop(asyncio.Event(), None))
        else:
            asyncio.run(session._run(controller, None))
    except (UserError, KilledError):
        return


def _take_back(slurm: FaultySlurm, folder: Path) -> None:
    """Do what a watchdog does, and where that is killed, --reset; a disk that is full stays so at first."""
    while True:
        ledger = Ledger(folder)
        if slurm.fault in SAVES and not ledger.held_in:
            ledger.held_in = ("held",)  # it could not even begin, so a person names the partition
        try:
            assert retry_undo(Slurm({}), ledger, 0.0, 60.0)
            break
        except KilledError:
            continue
    assert_nothing_left(slurm)
    slurm.met_it, slurm.fault = slurm.met, ""
    assert undo_all(Slurm({}), Ledger(folder)) == ""  # what a restart begins with
    assert_nothing_left(slurm)


def assert_nothing_left(slurm: FaultySlurm) -> None:
    ours = [job for job, where in slurm.partitions.items() if where == "held"]
    assert [slurm.holds[job] for job in ours] == [""] * len(ours), f"{slurm.fault} at {slurm.at}: {slurm.holds}"
    assert [slurm.nodes[job] for job in ours] == [""] * len(ours), f"{slurm.fault} at {slurm.at}: {slurm.nodes}"
    theirs: Mapping[int, str] = {job: hold for job, hold in slurm.holds.items() if slurm.partitions[job] != "held"}
    assert set(theirs.values()) in ({"JobHeldAdmin", "JobHeldUser"}, {""})
    assert slurm.factors == {2: 0, 3: 0, 4: 0, 5: 7}, f"{slurm.fault} at {slurm.at}: {slurm.factors}"


@pytest.mark.parametrize("mode", [Mode.ORDER, Mode.RELEASE])
@pytest.mark.parametrize("fault", [*CALLS, *SAVES])
def test_wherever_one_thing_fails_nothing_stays_held_or_set(
    run: Callable[..., FaultySlurm], mode: Mode, fault: str
) -> None:
    for at in range(1, MOST):
        if not run(mode, fault, at).met_it:
            break
    assert 8 < at < MOST - 1


def test_factors_that_scontrol_accepted_are_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", FaultySlurm(*ORDER).run)
    settings, ledger = Settings(Mode.ORDER, tmp_path, tick_s=0.0, strength=5000, ticks=1, canary=0), Ledger(tmp_path)
    controller = Controller(Slurm({}), Gateway(), settings, ledger, Journal(tmp_path))  # type: ignore[arg-type]
    controller.begin({})
    asyncio.run(controller.run_loop(asyncio.Event(), None))
    assert [entry.confirmed for entry in ledger.jobs.values()] == [True] * len(ledger.jobs)
    assert ledger.jobs
