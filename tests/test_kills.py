"""Kills at random moments and during writes: the next `dvc repro` resumes, to the same bytes as an undisturbed run.

`python -m pytest -m slow tests/test_kills.py -s` prints a table of the kills.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from repositories import CLONE, NOTHING, STAGES, Folder, begin, bytes_of, ran

SEED = 20260101
KILLS = {  # number for each stage; half of them during writes
    "log": 8,
    "generate@online": 8,
    "heuristics@online": 8,
    "pretrain@plain": 3,
    "pretrain@cloned": 5,
    "finetune@plain": 5,
    "finetune@cloned": 4,
    "evaluate@plain": 3,
    "evaluate@cloned": 3,
    "compare": 7,
    "papers": 6,
}
FEW_WRITES = {"log": 1, "evaluate@plain": 2, "evaluate@cloned": 2}  # the others write three files or more
LONG = {"pretrain@cloned", "finetune@plain", "finetune@cloned"}  # they resume, so less work is left after each kill
MOMENTS = ("half", "whole", "named", "half")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ANSWERS = {signal.SIGTERM: "terminated; run again to resume", signal.SIGINT: "interrupted; run again to resume"}

# Python runs this at the start of every process that has it on PYTHONPATH. KILL_AT="compare 1 named 9,log 3 half 9"
# sends signal 9 to the process group at the third write of the stage `log`, when half of the file is written. With
# `whole`, all of it is written but not yet renamed; with `named`, it is renamed and the next file is not yet begun.
HOOK = """
import os

def install():
    kills = dict(line.split(maxsplit=1) for line in os.environ["KILL_AT"].split(",") if line)
    if os.environ["DVC_STAGE"] not in kills:
        return
    number, moment, sent = kills[os.environ["DVC_STAGE"]].split()
    fsync, replace, seen = os.fsync, os.replace, 0

    def strike():
        print("struck by the test", flush=True)
        os.killpg(0, int(sent))

    def synced(at):
        nonlocal seen
        if os.readlink(f"/proc/self/fd/{at}").endswith(".part"):
            seen += 1
            if seen == int(number) and moment == "half":
                os.ftruncate(at, os.fstat(at).st_size // 2)
                strike()
        fsync(at)

    def replaced(source, target, **more):
        ours = str(source).endswith(".part") and seen == int(number)
        if ours and moment == "whole":
            strike()
        replace(source, target, **more)
        if ours and moment == "named":
            strike()

    os.fsync, os.replace = synced, replaced

if "KILL_AT" in os.environ and "DVC_STAGE" in os.environ:
    install()
"""


class Kill(NamedTuple):
    """A planned or past kill."""

    stage: str
    sent: signal.Signals
    moment: str  # of a write: half, whole, named; or random
    share: float = 0.0  # for random moments: fraction of the stage's duration
    number: int = 0  # otherwise: number of the write


class Seen(NamedTuple):
    """Observations of a `dvc repro` that ended or was killed."""

    said: list[str]
    struck: str  # the stage that was killed; "" if `dvc repro` ended first
    seconds: float  # for which the stage had run


def planned(rng: random.Random) -> dict[str, list[Kill]]:
    """Plan the kills of each stage."""
    plan: dict[str, list[Kill]] = {}
    for stage, count in KILLS.items():
        for k in range(count):
            moment = rng.choice(MOMENTS) if k % 2 == 0 else "random"
            share = rng.uniform(0, 0.5)  # later, the stage could have ended already
            kill = Kill(stage, rng.choice(SIGNALS), moment, share, rng.randint(1, FEW_WRITES.get(stage, 3)))
            plan.setdefault(stage, []).append(kill)
    return plan


class Victim(Folder):
    """A repository whose `dvc repro` is watched and killed."""

    def watched(self, kills: Sequence[Kill] = (), lasts: Mapping[str, float] | None = None) -> Seen:
        """Run `dvc repro` in its own process group, until its end or the first kill; each stage has at most one."""
        of_writes = (kill for kill in kills if kill.moment != "random")
        at = ",".join(f"{kill.stage} {kill.number} {kill.moment} {int(kill.sent)}" for kill in of_writes)
        process = subprocess.Popen(
            [sys.executable, "-m", "dvc", "repro"],
            cwd=self.root,
            env={**self._environment, "KILL_AT": at},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            return self._watch(process, {kill.stage: kill for kill in kills}, lasts or {})
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            ended(process.pid)

    def _watch(self, process: subprocess.Popen[str], kills: Mapping[str, Kill], lasts: Mapping[str, float]) -> Seen:
        assert process.stdout is not None
        said, stage, begun, struck = [], "", time.monotonic(), ("", 0.0)
        for line in process.stdout:
            said.append(line.rstrip())
            if line.startswith("Running stage '"):
                stage, begun = line.split("'")[1], time.monotonic()
                self.lasted[stage] = 0.0
                kill = kills.get(stage)
                if kill and kill.moment == "random":
                    time.sleep(kill.share * lasts[stage])
                    with suppress(ProcessLookupError):  # it was faster than in the undisturbed run
                        os.killpg(process.pid, kill.sent)
                        struck = (stage, time.monotonic() - begun)
            elif line.startswith("struck by the test"):
                struck = (stage, time.monotonic() - begun)
            elif line.startswith(("Generating lock file", "Updating lock file")):
                self.lasted[stage] = time.monotonic() - begun
        process.wait()
        return Seen(said, *struck)

    def __init__(self, root: Path, more: Mapping[str, str]) -> None:
        super().__init__(root, more)
        self.lasted: dict[str, float] = {}


def ended(group: int) -> None:
    """Wait until all processes of a group have ended."""
    until = time.monotonic() + 60
    while any(_of(group, process) for process in psutil.process_iter(["status"])):
        assert time.monotonic() < until, "a process outlived its signal"
        time.sleep(0.02)


def _of(group: int, process: psutil.Process) -> bool:
    try:
        return process.info["status"] != psutil.STATUS_ZOMBIE and os.getpgid(process.pid) == group
    except ProcessLookupError:
        return False


def victim(root: Path, environment: Mapping[str, str]) -> Victim:
    """Make the small problem, with training runs of some seconds and a checkpoint every 0.1 s."""
    hook = root.parent / "hook"
    hook.mkdir(parents=True)
    (hook / "sitecustomize.py").write_text(HOOK)
    path = f"{hook}{os.pathsep}{environment['PYTHONPATH']}"
    more = {**environment, "PYTHONPATH": path, "PIPELINE_CHECKPOINT_S": "0.1"}
    folder = begin(root, more)
    folder.edit(
        agents__plain__finetune__updates=60,
        agents__plain__finetune__validate_every=20,
        agents__cloned__finetune__updates=20,
        agents__cloned__finetune__validate_every=10,
        agents__cloned__pretrain={**CLONE, "jobsets": 16, "epochs": 24, "patience": 24},
    )
    return Victim(root, more)


def after(kill: Kill, seen: Seen) -> str:
    """Return what the next run did with a killed stage."""
    title = kill.stage.replace("@", " ")
    resumed = [line for line in seen.said if re.match(rf"{title}: resumed at update \d+ of \d+$", line)]
    if resumed:
        return resumed[0].partition(": ")[2]
    if seen.struck == kill.stage and kill.stage in LONG:
        return "killed again before it said"
    return "started again" if kill.stage in ran("\n".join(seen.said)) else "had finished"


def parts(root: Path) -> list[Path]:
    return list(root.rglob(".*.part"))


@pytest.mark.slow
def test_whatever_is_killed_the_next_repro_goes_on_to_the_same_bytes(
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    first, calm, hit = (victim(tmp_path / name / "repository", environment) for name in ("first", "calm", "hit"))
    first.watched()  # compiles, so that a stage takes equally long in the calm and in the killed run
    assert set(ran("\n".join(calm.watched().said))) == STAGES == set(KILLS)
    plan = planned(random.Random(SEED))
    sys.stdout.write("\n| stage | signal | moment | s into it | the next run |\n| --- | --- | --- | ---: | --- |\n")
    fates: list[tuple[Kill, str]] = []
    before: tuple[Kill, Seen] | None = None  # the kill whose effect the next run shows
    while before or not fates:
        left = set(parts(hit.root))
        seen = hit.watched([kills[0] for kills in plan.values() if kills], calm.lasted)
        if before:
            fates.append((before[0], after(before[0], seen)))
            sys.stdout.write(row(*before, fates[-1][1]))
            sys.stdout.flush()
        before = (plan[seen.struck].pop(0), seen) if seen.struck else None
        if before and before[0].sent != signal.SIGKILL:
            assert set(parts(hit.root)) <= left
            assert before[0].moment == "random" or ANSWERS[before[0].sent] in seen.said, seen.said

    assert hit.dvc("status").strip() == NOTHING
    assert (hit.root / "dvc.lock").read_bytes() == (calm.root / "dvc.lock").read_bytes()
    assert bytes_of(hit.root) == bytes_of(calm.root)
    assert parts(hit.root) == list((hit.root / ".dvc" / "tmp" / "checkpoints").rglob("*.safetensors")) == []

    met = [(kill, fate) for kill, fate in fates if fate != "had finished"]
    struck = Counter(kill.stage.partition("@")[0] for kill, _ in met)
    assert set(struck) == {stage.partition("@")[0] for stage in STAGES}
    assert min(struck.values()) >= 5
    assert len(met) >= 50
    assert 2 * sum(kill.moment != "random" for kill, _ in met) >= len(met)
    assert sum("resumed" in fate for _, fate in met) >= 5


def row(kill: Kill, seen: Seen, fate: str) -> str:
    """Return a line of the table."""
    moment = "random" if kill.moment == "random" else f"write {kill.number}, {kill.moment}"
    return f"| {seen.struck} | {kill.sent.name} | {moment} | {seen.seconds:.1f} | {fate} |\n"
