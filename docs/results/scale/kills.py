"""Kill a process at a random time of a stage, let the stage end or run it again, and compare its output byte by byte.

    python docs/results/scale/kills.py hindsight processes:worker:1-3 slurm:node:4-7 ray:head:8-12
    python docs/results/scale/kills.py finetune slurm:node:1-2 raynode:node:1-2

The first word is the stage: `hindsight`, which sends tasks, on a few short jobsets of `online`, or `finetune` of a
small `deeprm`, which is sent as a whole. Each other word is an engine, the victim of `kill -9`, and seeds that draw
time and process. Rows are written to kills.csv and trainings.csv in this folder. Slurm has two nodes on loopback, Ray a
head and a node with a core each (`raynode`: only the node has one). `rayown` is the cluster that a stage starts for
itself. A killed node or head is restarted as by an operator: Slurm's head 3 s later, Ray's when the stage has ended.
"""

import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from engines import ENGINES, ROOT, Engine, family, said
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
HEAD = ("engine", "killed", "seed", "moment_s", "tasks_done", "runs", "hung", "same", "left", "wall_s")
LONGEST_S = 240.0  # wait for a stage after a kill, before it counts as hung
MOST = 4  # runs
Rows = dict[str, Any]  # of params.yaml


class Kind(NamedTuple):
    """Stage to kill."""

    file: str  # of the rows
    change: Callable[[Rows], None]  # changes params.yaml
    before: Sequence[tuple[str, ...]]  # commands that must run first
    words: tuple[str, ...]
    written: tuple[str, ...]  # folders of its results
    work: str  # folder from which a later run resumes
    done: str  # files there that show its progress
    wanted: Callable[[Path, int], bool]  # takes its folder and process; returns whether it needs workers


def few_jobsets(rows: Rows) -> None:
    """Solve ten jobsets."""
    rows["hindsight"] = {"scenarios": ["online"], "jobsets": 1, "limit": 0.2}
    rows["scenarios"]["online"]["jobsets"] |= {"validation": 4, "test": 5}


def few_updates(rows: Rows) -> None:
    """Train for some seconds."""
    rows["scenarios"]["online"]["jobsets"] |= {"validation": 4, "test": 4}
    rows["agents"]["deeprm"]["finetune"] |= {"updates": 400, "jobsets": 10, "episodes": 8, "validate_every": 20}


def mark_there(folder: Path, _: int) -> bool:
    """Return whether the stage listens to workers."""
    return any((folder / ".cache/tasks").glob("*.mark"))


def sent(folder: Path, stage: int) -> bool:
    """Return whether the command was sent: a process other than the stage runs it."""
    return any(
        one.pid != stage and "-m pipeline" in said(one) and in_folder(one, folder) for one in psutil.process_iter()
    )


def in_folder(one: psutil.Process, folder: Path) -> bool:
    """Return whether a process works in a folder."""
    with suppress(psutil.Error):
        return one.cwd() == str(folder)
    return False


KINDS = {
    "hindsight": Kind(
        file="kills.csv",
        change=few_jobsets,
        before=(("log",), ("generate", "online"), ("evaluate", "heuristics", "online")),
        words=("hindsight", "online"),
        written=("reports/tables/hindsight/online",),
        work=".cache/tasks",
        done="*.task",
        wanted=mark_there,
    ),
    "finetune": Kind(
        file="trainings.csv",
        change=few_updates,
        before=(("log",), ("generate", "online"), ("pretrain", "deeprm")),
        words=("finetune", "deeprm"),
        written=("models/deeprm/policy", "reports/curves"),
        work=".dvc/tmp/checkpoints",
        done="*/*.safetensors",
        wanted=sent,
    ),
}


class Stage:
    """Stage in its own folder."""

    def __init__(self, folder: Path, kind: Kind) -> None:
        self.folder, self.kind = folder, kind
        rows = YAML().load(ROOT / "params.yaml")
        rows["threads"] = 1
        kind.change(rows)
        (folder / ".dvc").mkdir()  # where checkpoints go
        with (folder / "params.yaml").open("w") as stream:
            YAML().dump(rows, stream)
        for words in kind.before:
            assert self.begin({}, *words).wait() == 0, self.said()

    def begin(self, variables: Mapping[str, str], *words: str) -> "subprocess.Popen[bytes]":
        """Start a command."""
        own = {"PIPELINE_TRACKING": "off", "PIPELINE_CHECKPOINT_S": "1", "PYTHONPATH": str(ROOT)}
        with (self.folder / "said").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "pipeline", *(words or self.kind.words)],
                cwd=self.folder,
                env={**os.environ, **own, **variables},
                stdout=out,
                stderr=out,
            )

    def begun(self, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Start the stage from scratch, and wait until it needs workers."""
        for place in (*self.kind.written, self.kind.work):
            shutil.rmtree(self.folder / place, ignore_errors=True)
        going = self.begin(variables)
        while not self.kind.wanted(self.folder, going.pid) and going.poll() is None:
            time.sleep(0.02)
        return going

    def left(self) -> dict[str, bytes]:
        """Return the files that it wrote."""
        found = [path for place in self.kind.written for path in (self.folder / place).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def done(self) -> int:
        """Return the number of files that show its progress."""
        return len(list((self.folder / self.kind.work).glob(self.kind.done)))

    def said(self) -> str:
        """Return its output."""
        return (self.folder / "said").read_text()


def once(
    stage: Stage, place: Engine, what: str, seed: int, works_s: float, wanted: dict[str, bytes]
) -> list[str] | None:
    """Kill once; return a row, or None if the stage ended before."""
    rng = random.Random(seed)
    moment = rng.uniform(0.0, works_s)
    begun = time.monotonic()
    going = stage.begun(place.variables)
    time.sleep(moment)
    own = psutil.Process(going.pid)
    members = family(going.pid)
    killed = False
    while going.poll() is None and not (killed := place.kills[what](rng, own)):
        time.sleep(0.05)  # no workers yet, or none left
    done = stage.done()
    if not killed:
        going.wait()
        return None
    place.soon()
    runs, hung = ended(stage, place, going)
    place.later()
    time.sleep(1.0)
    alive = sum(one.is_running() and one.status() != "zombie" for one in members)
    cells = (f"{moment:.2f}", done, runs, hung, int(stage.left() == wanted), alive, f"{time.monotonic() - begun:.1f}")
    return [str(cell) for cell in cells]


def ended(stage: Stage, place: Engine, going: "subprocess.Popen[bytes]") -> tuple[int, int]:
    """Wait for a stage, running it again until it ends; return the number of runs and of hung runs."""
    runs, hung = 1, 0
    while runs <= MOST:
        try:
            if going.wait(LONGEST_S) == 0:
                break
        except subprocess.TimeoutExpired:
            hung += 1
            going.kill()
            going.wait()
        place.later()
        going = stage.begin(place.variables)
        runs += 1
    return runs, hung


def main() -> None:
    """Kill the named processes."""
    kind = KINDS[sys.argv[1]]
    with tempfile.TemporaryDirectory(prefix="kills-", dir="/tmp") as name, ExitStack() as open_:
        stage = Stage(Path(name), kind)
        open_.callback(lambda: shutil.copy(stage.folder / "said", Path(tempfile.gettempdir()) / "kills-said.txt"))
        assert stage.begun({"PIPELINE_EXECUTOR": "serial"}).wait() == 0, stage.said()
        wanted, works, engines = stage.left(), dict[str, float](), dict[str, Engine]()
        assert wanted
        for word in sys.argv[2:]:
            engine, what, seeds = word.split(":")
            first, _, last = seeds.partition("-")
            if engine not in engines:
                engines[engine] = open_.enter_context(ENGINES[engine]())
                works[engine] = calm(stage, engines[engine], wanted)
            for seed in range(int(first), int(last or first) + 1):
                for again in range(5):
                    if row := once(stage, engines[engine], what, seed, works[engine] / 2**again, wanted):
                        keep(HERE / kind.file, [engine, what, str(seed), *row])
                        break


def calm(stage: Stage, place: Engine, wanted: dict[str, bytes]) -> float:
    """Return the duration of the stage without kills, from the time when it needs workers."""
    going = stage.begun(place.variables)
    begun = time.monotonic()
    assert going.wait() == 0, stage.said()
    assert stage.left() == wanted
    sys.stderr.write(f"{place.variables['PIPELINE_EXECUTOR']}: works {time.monotonic() - begun:.1f} s\n")
    return time.monotonic() - begun


def keep(path: Path, row: list[str]) -> None:
    """Add a row, replacing that of the same seed."""
    old = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    rows = sorted([*(one for one in old if one[:3] != row[:3]), row], key=lambda one: (*one[:2], int(one[2])))
    path.write_text("\n".join(map(",".join, [HEAD, *rows])) + "\n")
    sys.stderr.write(f"{dict(zip(HEAD, row, strict=True))}\n")


if __name__ == "__main__":
    main()
