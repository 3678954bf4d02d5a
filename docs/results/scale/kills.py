"""Kill something at a random moment of `hindsight`, let it end or run it again, and compare what it left, byte by byte.

    python docs/results/scale/kills.py processes:worker:1-3 slurm:node:4-7 ray:head:8-12

Each word is an engine, what is killed by `kill -9`, and seeds that draw the moment and the victim; rows go to kills.csv
beside this file. The stage is the real one, on a few short jobsets of `online`. Slurm has two nodes on loopback, Ray a
head and a node with a core each; `rayown` is the cluster that a stage starts for itself. What dies with its machine (a
node, a head) is begun again, Slurm's 3 s later, Ray's head when the stage has ended, as somebody would who sees it.
"""

import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from engines import ENGINES, ROOT, Engine, family
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
HEAD = ("engine", "killed", "seed", "moment_s", "tasks_done", "runs", "hung", "same", "left", "wall_s")
OUT = Path("reports/tables/hindsight/online")
LONGEST_S = 240.0  # that a stage is waited for behind a kill, before it counts as hung
MOST = 4  # runs


class Stage:
    """`hindsight` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = YAML().load(ROOT / "params.yaml")
        rows["hindsight"] = {"scenarios": ["online"], "jobsets": 1, "limit": 0.2}
        rows["threads"] = 1
        rows["scenarios"]["online"]["jobsets"] |= {"validation": 4, "test": 5}
        with (folder / "params.yaml").open("w") as stream:
            YAML().dump(rows, stream)
        for words in (["log"], ["generate", "online"], ["evaluate", "heuristics", "online"]):
            self.begin({}, *words).wait()

    def begin(self, told: dict[str, str], *words: str) -> "subprocess.Popen[bytes]":
        """Begin a command."""
        environment = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(ROOT), **told}
        with (self.folder / "said").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "pipeline", *(words or ("hindsight", "online"))],
                cwd=self.folder,
                env=environment,
                stdout=out,
                stderr=out,
            )

    def left(self) -> dict[str, bytes]:
        """Return what it wrote."""
        place = self.folder / OUT
        return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}

    def tasks(self, suffix: str = ".task") -> int:
        """Return how many files of tasks, or of stages that listen, there are."""
        return len(list((self.folder / ".cache/tasks").glob(f"*{suffix}")))


def once(
    stage: Stage, place: Engine, what: str, seed: int, works_s: float, wanted: dict[str, bytes]
) -> list[str] | None:
    """Kill once; return a row, or nothing if the stage had ended before."""
    rng = random.Random(seed)
    moment = rng.uniform(0.0, works_s)
    shutil.rmtree(stage.folder / OUT, ignore_errors=True)
    shutil.rmtree(stage.folder / ".cache/tasks", ignore_errors=True)
    begun = time.monotonic()
    going = stage.begin(place.told)
    runs = 1
    while not stage.tasks(".mark") and going.poll() is None:
        time.sleep(0.02)
    time.sleep(moment)
    own = psutil.Process(going.pid)
    members = family(going.pid)
    killed = False
    while going.poll() is None and not (killed := place.kills[what](rng, own)):
        time.sleep(0.05)  # workers have not begun, or are gone
    done = stage.tasks()
    if not killed:
        return None
    place.soon()
    hung = 0
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
    place.later()
    time.sleep(1.0)
    alive = sum(one.is_running() and one.status() != "zombie" for one in members)
    cells = (f"{moment:.2f}", done, runs, hung, int(stage.left() == wanted), alive, f"{time.monotonic() - begun:.1f}")
    return [str(cell) for cell in cells]


def main() -> None:
    """Kill what is named."""
    with ExitStack() as open_, tempfile.TemporaryDirectory(prefix="kills-", dir="/tmp") as name:
        stage = Stage(Path(name))
        assert stage.begin({"PIPELINE_EXECUTOR": "serial"}).wait() == 0, (stage.folder / "said").read_text()
        wanted, works, engines = stage.left(), dict[str, float](), dict[str, Engine]()
        assert wanted
        for word in sys.argv[1:]:
            engine, what, seeds = word.split(":")
            first, _, last = seeds.partition("-")
            if engine not in engines:
                engines[engine] = open_.enter_context(ENGINES[engine]())
                works[engine] = calm(stage, engines[engine], wanted)
            for seed in range(int(first), int(last or first) + 1):
                for again in range(5):
                    if row := once(stage, engines[engine], what, seed, works[engine] / 2**again, wanted):
                        keep([engine, what, str(seed), *row])
                        break
        shutil.copy(stage.folder / "said", Path(tempfile.gettempdir()) / "kills-said.txt")


def calm(stage: Stage, place: Engine, wanted: dict[str, bytes]) -> float:
    """Return how long the stage works with nobody killing anything, from when its workers are wanted."""
    going = stage.begin(place.told)
    while not stage.tasks(".mark") and going.poll() is None:
        time.sleep(0.02)
    begun = time.monotonic()
    assert going.wait() == 0, (stage.folder / "said").read_text()
    assert stage.left() == wanted
    sys.stderr.write(f"{place.told['PIPELINE_EXECUTOR']}: works {time.monotonic() - begun:.1f} s\n")
    return time.monotonic() - begun


def keep(row: list[str]) -> None:
    """Add a row, in the place of that of the same seed."""
    path = HERE / "kills.csv"
    old = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    rows = sorted([*(one for one in old if one[:3] != row[:3]), row], key=lambda one: (*one[:2], int(one[2])))
    path.write_text("\n".join(map(",".join, [HEAD, *rows])) + "\n")
    sys.stderr.write(f"{dict(zip(HEAD, row, strict=True))}\n")


if __name__ == "__main__":
    main()
