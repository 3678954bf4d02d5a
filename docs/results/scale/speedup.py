"""How much faster stages become with more workers of each engine, for ../../scale.md; leave the machine alone.

    python docs/results/scale/speedup.py stages    # some minutes; rows go to speedup.csv
    python docs/results/scale/speedup.py seeds     # three seeds of a small `deeprm3`, by `farm`; as long again

Stages are the real ones on the real scenario `online`, with one thread, so that a worker is a core's. All results are
compared with those of one process. Slurm is four nodes of a core on loopback; Ray is begun for the stage, or, for
`farm`, runs at an address. What an engine takes to begin is counted.
"""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engines import ROOT
from ruamel.yaml import YAML

sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
from executed import ray_cluster  # noqa: E402
from repositories import Folder, begin  # noqa: E402

from pipeline.slurm.configuration import Cluster  # noqa: E402
from pipeline.slurm.loopback import slurm  # noqa: E402

HERE = Path(__file__).resolve().parent
HEAD = ("what", "engine", "workers", "seconds", "same")
WORKERS = (1, 2, 4)
STAGES = {
    "heuristics": (("evaluate", "heuristics", "online"), "reports/tables/heuristics/online"),
    "hindsight": (("hindsight", "online"), "reports/tables/hindsight/online"),
}
SOLVED = {"scenarios": ["online"], "jobsets": 8, "limit": 0.2}  # of each load
PRETRAIN = {"jobsets": 40}
FINETUNE = {"updates": 60, "validate_every": 30}
SEEDS = 3


def stages() -> None:
    """Measure stages whose tasks are sent."""
    with tempfile.TemporaryDirectory(prefix="speedup-", dir="/tmp") as name, slurm(Cluster(nodes=4, cpus=1)) as running:
        place = Path(name)
        rows = YAML().load(ROOT / "params.yaml")
        rows |= {"threads": 1, "hindsight": SOLVED}
        with (place / "params.yaml").open("w") as stream:
            YAML().dump(rows, stream)
        for words in (("log",), ("generate", "online"), STAGES["heuristics"][0]):  # the last one compiles, too
            ran(place, words, {})
        told = {"SLURM_CONF": str(running.folder / "slurm.conf")}
        for what, (words, out) in STAGES.items():
            wanted: dict[str, bytes] = {}
            for engine in ("serial", "processes", "ray", "slurm"):
                for workers in WORKERS if engine != "serial" else (1,):
                    setting = engine if engine == "serial" else f"{engine}:{workers}"
                    shutil.rmtree(place / out, ignore_errors=True)
                    seconds = ran(place, words, {"PIPELINE_EXECUTOR": setting, **told})
                    found = {path.name: path.read_bytes() for path in (place / out).rglob("*") if path.is_file()}
                    wanted = wanted or found
                    keep([what, engine, str(workers), f"{seconds:.1f}", str(int(found == wanted))])


def ran(place: Path, words: tuple[str, ...], told: dict[str, str]) -> float:
    """Return how long a stage took."""
    environment = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(ROOT), **told}
    begun = time.monotonic()
    subprocess.run([sys.executable, "-m", "pipeline", *words], cwd=place, env=environment, check=True)
    return time.monotonic() - begun


def seeds() -> None:
    """Measure three seeds at a time; each setting has seeds of its own, for DVC would restore a training that ran."""
    with tempfile.TemporaryDirectory(prefix="speedup-", dir="/tmp") as name:
        folder = small(Path(name) / "repository")
        first = 1
        for engine, workers in (("serial", 1), ("serial", 2), ("ray", 2), ("ray", 4), ("slurm", 2), ("slurm", 4)):
            with at(engine, workers) as told:
                drawn = f"{first}..{first + SEEDS - 1}"
                begun = time.monotonic()
                words = ("farm", "--seeds", drawn, "--agent", "small", "--workers", str(workers))
                sys.stderr.write(folder.run(sys.executable, "-m", "pipeline", *words, **told))
                seconds = time.monotonic() - begun
            first += SEEDS
            keep(["seeds", engine, str(workers), f"{seconds:.1f}", "1"])


@contextmanager
def at(engine: str, workers: int) -> Iterator[dict[str, str]]:
    """Yield where a farm's trainings go."""
    if engine == "ray":
        place = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        with place as name, ray_cluster(Path(name), workers) as address:
            yield {"PIPELINE_EXECUTOR": f"ray@{address}"}
    elif engine == "slurm":
        with slurm(Cluster(nodes=workers, cpus=1)) as running:
            yield {"PIPELINE_EXECUTOR": f"slurm:{workers}", "SLURM_CONF": str(running.folder / "slurm.conf")}
    else:
        yield {"PIPELINE_EXECUTOR": "serial"}


def small(root: Path) -> Folder:
    """Return a repository with a `deeprm3` of fewer updates, and all ready that its seeds share."""
    row = YAML(typ="safe").load(ROOT / "params.yaml")
    folder = begin(root, {})
    scenario = row["scenarios"]["online"]
    agent = row["agents"]["deeprm3"]
    agent["pretrain"] |= PRETRAIN
    agent["finetune"] |= FINETUNE
    folder.edit(scenarios={"online": scenario}, agents={"small": agent}, hindsight__scenarios=[])
    folder.git("commit", "--quiet", "-a", "-m", "a small deeprm3")
    folder.dvc("repro")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "made")
    return folder


def keep(row: list[str]) -> None:
    """Add a row, in the place of that of the same setting."""
    path = HERE / "speedup.csv"
    old = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    rows = [*(one for one in old if one[:3] != row[:3]), row]
    path.write_text("\n".join(map(",".join, [HEAD, *rows])) + "\n")
    sys.stderr.write(f"{dict(zip(HEAD, row, strict=True))}\n")


if __name__ == "__main__":
    {"stages": stages, "seeds": seeds}[sys.argv[1]]()
