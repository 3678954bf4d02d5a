"""Kill something at a random moment of a stage, let it end or run it again, and compare what it left, byte by byte.

    python docs/results/scale/kills.py hindsight processes:worker:1-3 slurm:node:4-7 ray:head:8-12
    python docs/results/scale/kills.py finetune slurm:node:1-2 raynode:node:1-2

The first word is the stage: `hindsight`, whose tasks are sent, on a few short jobsets of `online`, or `finetune`, which
is sent whole, of a small `deeprm`. Each other word is an engine, what is killed by `kill -9`, and seeds that draw the
moment and the victim; rows go to kills.csv and trainings.csv beside this file. Slurm has two nodes on loopback, Ray a
head and a node with a core each (`raynode`: the node alone has one); `rayown` is the cluster that a stage starts for
itself. What dies with its machine (a node, a head) is begun again, Slurm's 3 s later, Ray's head when the stage has
ended, as somebody would who sees it.
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
LONGEST_S = 240.0  # that a stage is waited for behind a kill, before it counts as hung
MOST = 4  # runs
Rows = dict[str, Any]  # of params.yaml


class Kind(NamedTuple):
    """A stage of which something is killed."""

    file: str  # of the rows
    change: Callable[[Rows], None]  # what params.yaml has otherwise
    before: Sequence[tuple[str, ...]]  # commands that it needs
    words: tuple[str, ...]
    written: tuple[str, ...]  # folders of its results
    work: str  # folder of what a later run goes on with
    done: str  # files there that tell how far it is
    wanted: Callable[[Path, int], bool]  # tells, of its folder and process, whether workers are wanted


def few_jobsets(rows: Rows) -> None:
    """Solve ten jobsets."""
    rows["hindsight"] = {"scenarios": ["online"], "jobsets": 1, "limit": 0.2}
    rows["scenarios"]["online"]["jobsets"] |= {"validation": 4, "test": 5}


def few_updates(rows: Rows) -> None:
    """Train for some seconds."""
    rows["scenarios"]["online"]["jobsets"] |= {"validation": 4, "test": 4}
    rows["agents"]["deeprm"]["finetune"] |= {"updates": 400, "jobsets": 10, "episodes": 8, "validate_every": 20}


def mark_there(folder: Path, _: int) -> bool:
    """Tell whether the stage listens to workers."""
    return any((folder / ".cache/tasks").glob("*.mark"))


def sent(folder: Path, stage: int) -> bool:
    """Tell whether the command was sent: somebody else than the stage runs it."""
    return any(
        one.pid != stage and "-m pipeline" in said(one) and in_folder(one, folder) for one in psutil.process_iter()
    )


def in_folder(one: psutil.Process, folder: Path) -> bool:
    """Tell whether a process works in a folder."""
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
    """A stage in a folder of its own."""

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

    def begin(self, told: Mapping[str, str], *words: str) -> "subprocess.Popen[bytes]":
        """Begin a command."""
        own = {"PIPELINE_TRACKING": "off", "PIPELINE_CHECKPOINT_S": "1", "PYTHONPATH": str(ROOT)}
        with (self.folder / "said").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "pipeline", *(words or self.kind.words)],
                cwd=self.folder,
                env={**os.environ, **own, **told},
                stdout=out,
                stderr=out,
            )

    def begun(self, told: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Begin the stage from nothing, and wait until its workers are wanted."""
        for place in (*self.kind.written, self.kind.work):
            shutil.rmtree(self.folder / place, ignore_errors=True)
        going = self.begin(told)
        while not self.kind.wanted(self.folder, going.pid) and going.poll() is None:
            time.sleep(0.02)
        return going

    def left(self) -> dict[str, bytes]:
        """Return what it wrote."""
        found = [path for place in self.kind.written for path in (self.folder / place).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def done(self) -> int:
        """Return how many files there are that tell how far it is."""
        return len(list((self.folder / self.kind.work).glob(self.kind.done)))

    def said(self) -> str:
        """Return all that it said."""
        return (self.folder / "said").read_text()


def once(
    stage: Stage, place: Engine, what: str, seed: int, works_s: float, wanted: dict[str, bytes]
) -> list[str] | None:
    """Kill once; return a row, or nothing if the stage had ended before."""
    rng = random.Random(seed)
    moment = rng.uniform(0.0, works_s)
    begun = time.monotonic()
    going = stage.begun(place.told)
    time.sleep(moment)
    own = psutil.Process(going.pid)
    members = family(going.pid)
    killed = False
    while going.poll() is None and not (killed := place.kills[what](rng, own)):
        time.sleep(0.05)  # workers have not begun, or are gone
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
    """Let a stage end, or run it again until it does; return how often it ran, and how many of those runs hung."""
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
        going = stage.begin(place.told)
        runs += 1
    return runs, hung


def main() -> None:
    """Kill what is named."""
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
    """Return how long the stage works with nobody killing anything, from when its workers are wanted."""
    going = stage.begun(place.told)
    begun = time.monotonic()
    assert going.wait() == 0, stage.said()
    assert stage.left() == wanted
    sys.stderr.write(f"{place.told['PIPELINE_EXECUTOR']}: works {time.monotonic() - begun:.1f} s\n")
    return time.monotonic() - begun


def keep(path: Path, row: list[str]) -> None:
    """Add a row, in the place of that of the same seed."""
    old = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    rows = sorted([*(one for one in old if one[:3] != row[:3]), row], key=lambda one: (*one[:2], int(one[2])))
    path.write_text("\n".join(map(",".join, [HEAD, *rows])) + "\n")
    sys.stderr.write(f"{dict(zip(HEAD, row, strict=True))}\n")


if __name__ == "__main__":
    main()
