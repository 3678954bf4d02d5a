"""The simulators that are compared, how they are installed, and the commands that run them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DRIVERS = Path(__file__).resolve().parent / "drivers"
# serial: fcfs with jobs of one machine; sjf: DeepRM's environments; picks: RLScheduler's, also under sjf.
FCFS, EASY, SERIAL, SJF, PICKS = "fcfs", "easy", "serial", "sjf", "picks"


class Entry(NamedTuple):
    """A simulator."""

    words: str  # in tables
    rules: tuple[str, ...]
    driver: str
    python: str | None = None  # version that it needs; None: ours
    packages: tuple[str, ...] = ()  # from PyPI, with the versions that were measured
    checkout: str | None = None  # folder of its repository
    inside: str = ""  # folder of the checkout that is used
    mine: str | None = None  # our simulators: the name that the driver expects


SIMULATORS = {
    "reference": Entry("ours, reference (Python)", (FCFS, EASY, SERIAL), "run_ours", mine="reference"),
    "compiled": Entry("ours, compiled", (FCFS, EASY, SERIAL), "run_ours", mine="compiled"),
    "fcfs_vector": Entry("ours, 1,024 environments", (FCFS,), "run_our_environment", mine="fcfs_vector"),
    "replay": Entry("ours, site replay", (EASY,), "run_ours", mine="replay"),
    "replay_pooled": Entry("ours, site replay, one pool", (EASY,), "run_ours", mine="replay_pooled"),
    "rlscheduler": Entry(
        "RLScheduler", (FCFS, EASY), "run_rlscheduler", "3.8", ("numpy==1.23.5", "scipy==1.10.1", "gym==0.21.0"),
        "deep-batch-scheduler",
    ),
    "schedgym": Entry(
        "sched-rl-gym", (FCFS, EASY), "run_schedgym", "3.8",
        ("numpy==1.23.5", "scipy==1.10.1", "gym==0.21.0", "intervaltree==3.1.0", "parallelworkloads"), "sched-rl-gym",
    ),
    "accasim": Entry("AccaSim", (FCFS, EASY), "run_accasim", "3.8", ("accasim==1.1.3",)),
    "alea": Entry("Alea (Java)", (FCFS, EASY), "run_alea", checkout="alea", inside="Alea"),
    "spark": Entry(
        "spark-sched-sim", (SERIAL,), "run_spark", "3.11", ("gymnasium==0.29.1", "numpy<2", "networkx"),
        "spark-sched-sim",
    ),
    "one": Entry("ours, one environment", (SJF,), "run_our_environment", mine="one"),
    "vector": Entry("ours, 1,024 environments", (SJF,), "run_our_environment", mine="vector"),
    "deeprm": Entry("original DeepRM", (SJF,), "run_deeprm", "2.7", ("numpy==1.16.6",), "deeprm"),
    "schedgym_env": Entry(
        "sched-rl-gym, DeepRM-v0", (SJF,), "run_schedgym_environment", "3.8",
        ("numpy==1.23.5", "scipy==1.10.1", "gym==0.21.0", "intervaltree==3.1.0", "parallelworkloads"), "sched-rl-gym",
    ),
    "picks": Entry("ours, RLScheduler's protocol", (PICKS,), "run_our_environment", mine="picks"),
    "picks_vector": Entry(
        "ours, RLScheduler's protocol, 1,024 environments", (PICKS,), "run_our_environment", mine="picks_vector"
    ),
    "rlscheduler_env": Entry(
        "RLScheduler, HPCEnv", (PICKS,), "run_rlscheduler_environment", "3.8",
        ("numpy==1.23.5", "scipy==1.10.1", "gym==0.21.0"), "deep-batch-scheduler",
    ),
}  # fmt: skip
OURS = {SJF: "one", PICKS: "picks"}  # of environments, the one that others are compared with
# Repositories on GitHub, with the commits that were measured.
CHECKOUTS = {
    "deep-batch-scheduler": "DIR-LAB/deep-batch-scheduler at cd433e3d62a01705f255bd48cb55b393862800e7",
    "sched-rl-gym": "renatolfc/sched-rl-gym at 44b7f1471739bc239877e2da3b49c98056d23107",
    "alea": "aleasimulator/alea at a3315f00d9e0c9e984b6094624703230dd8bf7cb",
    "spark-sched-sim": "ArchieGertsman/spark-sched-sim at 2ba8d80c2ce57ccb4f20e753476a69295db223c9",
    "deeprm": "hongzimao/deeprm at fa7841122d4c2993fa0a7ce1667ea1f171865d9d",
}
MISSING = {"Batsim": "needs intervalset, which is neither in PyPI nor in Debian; its repository cannot be reached here"}


class Ready(NamedTuple):
    """An installed simulator."""

    command: list[str]
    path: str | None  # PYTHONPATH of its packages
    folder: bool  # whether it needs an empty folder before its arguments


def interpreter(version: str) -> str | None:
    """Return an interpreter of a Python version, from pyenv or the system."""
    found = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    return str(found[-1]) if found else shutil.which(f"python{version}")


def prepare(name: str, checkouts: Path, work: Path) -> Ready | str:
    """Install a simulator into a folder, unless it is there; return how to run it, or why it is not available."""
    entry = SIMULATORS[name]
    if entry.mine is not None:
        return Ready([sys.executable, "-m", f"benchmarks.peers.drivers.{entry.driver}", entry.mine], None, False)
    source = [] if entry.checkout is None else [str(checkouts / entry.checkout / entry.inside)]
    if source and not Path(source[0]).is_dir():
        return f"no checkout {checkouts / str(entry.checkout)} of {CHECKOUTS[str(entry.checkout)]}"
    driver = str(DRIVERS / f"{entry.driver}.py")
    if entry.driver == "run_alea":
        classes = work / "alea-classes"
        problem = None if classes.is_dir() else _compile(Path(source[0]), classes)
        return problem or Ready([sys.executable, driver, *source, str(classes)], None, True)
    python = interpreter(str(entry.python))
    if python is None:
        return f"no Python {entry.python}"
    packages = work / f"packages-{name}"
    if not packages.is_dir():
        words = [python, "-m", "pip", "install", "--quiet", "--target", str(packages), *entry.packages]
        if subprocess.run(words, check=False).returncode:
            return f"pip cannot install {' '.join(entry.packages)}"
    return Ready([python, driver, *source], str(packages), not source)


def _compile(source: Path, classes: Path) -> str | None:
    """Compile Alea; return the reason if that is impossible."""
    if shutil.which("javac") is None:
        return "no javac"
    files = [str(path) for path in (source / "src").rglob("*.java")]
    libraries = f"{source}/lib/simjava.jar:{source}/lib/gridsim.jar"
    words = ["javac", "-nowarn", "-encoding", "UTF-8", "-cp", libraries, "-d", str(classes), *files]
    return "javac fails" if subprocess.run(words, check=False, capture_output=True).returncode else None
