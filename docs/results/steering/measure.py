"""Measure the results of ../steering.md on temporary Slurm clusters on loopback; needs root and an idle machine.

    python docs/results/steering/measure.py plays     # one workload under three orders, ten repeats: plays.csv.gz
    python docs/results/steering/measure.py trained FOLDER  # with a trained policy, six repeats: trained.csv.gz
    python docs/results/steering/measure.py bulk      # a thousand waiting jobs: ticks.csv
    python docs/results/steering/measure.py kills     # twenty kills at random times: kills.csv

Each arm of `plays` has its own cluster and controller. In arm `slurm` the controller only observes, so that all arms
cost the machine the same. The arms run in parallel, and each repeat submits the same jobs at the same times to all.
FOLDER is the folder in which trained.py ran; the trained policy runs there.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pandas as pd

from benchmarks.fidelity.jobs import ShortJobs, drawn
from benchmarks.fidelity.played import PATIENCE, await_end, submitted, told
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import LoopbackSlurm, slurm
from pipeline.core.storage.files import write_table
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.steering.journal import rows

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
JOBS, REPEATS, SEED = 100, 10, 23
REPEATS_OF_TRAINED = 6  # fewer give no interval
BEGUN_S = 300.0  # limit for the start of a controller on a busy machine
ARMS = {"slurm": ("observe", "sjf"), "sjf": ("order", "sjf"), "saf_aged": ("order", "saf_aged")}
BULK, TICKS, KILLS = 1000, 30, 20
DIGITS = 12
AWAY = "no answer"
SAVED_S = 6.0  # slurmctld has saved its state after this time


def begun(one: LoopbackSlurm, folder: Path, mode: str, policy: str, where: Path = ROOT) -> "subprocess.Popen[bytes]":
    """Start a controller and wait for its first tick; outside the root it uses the scenario of that folder."""
    words = [sys.executable, "-m", "pipeline", "steer", "slurm", "--tick", "1", "--folder", str(folder)]
    words += ["--scenario", "machines" if where == ROOT else "loop", "--mode", mode, "--policy", policy]
    before = len(ticks(folder))
    found = subprocess.Popen(words, env=one.environment, cwd=where)
    one.until(lambda: len(ticks(folder)) > before, "a first tick", BEGUN_S)
    return found


def ticks(folder: Path) -> list[Mapping[str, object]]:
    """Return the ticks of a journal."""
    return [row for row in rows(folder) if row["kind"] == "tick"] if (folder / "journal.jsonl").exists() else []


@contextmanager
def steered(mode: str, policy: str, cluster: Cluster, where: Path = ROOT) -> Iterator[tuple[LoopbackSlurm, Path]]:
    """Yield a cluster with a controller, and the controller's folder."""
    with tempfile.TemporaryDirectory() as name, slurm(cluster) as one:
        controller = begun(one, Path(name), mode, policy, where)
        yield one, Path(name)
        controller.send_signal(signal.SIGTERM)
        controller.wait(60)


def plays() -> None:
    """Run one workload under every order, several times."""
    with ExitStack() as stack:
        found = {arm: stack.enter_context(steered(*how, Cluster()))[0] for arm, how in ARMS.items()}
        repeated(found, REPEATS, "plays.csv.gz")


def trained(folder: Path) -> None:
    """Run it under a trained policy, Slurm's own order and SJF."""
    model = str(folder.resolve() / "models" / "loop" / "policy")
    with ExitStack() as stack:
        found = {arm: stack.enter_context(steered(*ARMS[arm], Cluster()))[0] for arm in ("slurm", "sjf")}
        last, journal = stack.enter_context(steered("order", model, Cluster(), folder))
        repeated(found | {"trained": last}, REPEATS_OF_TRAINED, "trained.csv.gz")
        fallen = sum("fell_back" in pool for row in ticks(journal) for pool in row["pools"])  # type: ignore[attr-defined]
        say(f"{fallen} of {len(ticks(journal))} ticks had no order from the trained policy")


def repeated(found: Mapping[str, LoopbackSlurm], repeats: int, name: str) -> None:
    """Run the workload several times, writing the results after each repeat."""
    jobs, parts = drawn(JOBS, SEED), []
    for repeat in range(repeats):
        say(f"repeat {repeat + 1} of {repeats}")
        parts += [part.assign(repeat=repeat) for part in _play(jobs, found)]
        table = pd.concat(parts, ignore_index=True)[list(PLAYS.columns)]
        write_table(HERE / name, table, PLAYS, DIGITS)


def _play(jobs: ShortJobs, found: Mapping[str, LoopbackSlurm]) -> Iterator[pd.DataFrame]:
    numbers: dict[str, list[str]] = {arm: [] for arm in found}
    begin, began_s = time.monotonic(), time.time()
    for job, arrival in enumerate(jobs.arrival_s):
        time.sleep(max(0.0, begin + arrival - time.monotonic()))
        for arm, one in found.items():
            numbers[arm].append(submitted(one, jobs, job, 0, Cluster()))
    for arm, one in found.items():
        await_end(one, arm, PATIENCE * float(jobs.run_s.sum()))
        yield told(one, numbers[arm], jobs, float(int(began_s))).assign(order=arm)


def bulk() -> None:
    """Start a controller on a thousand waiting jobs, add ten now and then, and record the duration of ticks."""
    with tempfile.TemporaryDirectory() as name, slurm(Cluster()) as one:
        one.submit("sleep 900", "--time=20", "--nodes=4", "--exclusive")
        rng, folder = random.Random(SEED), Path(name)
        for _ in range(BULK):
            one.submit("sleep 1", f"--time={rng.randint(1, 600)}", "--nodes=4", "--exclusive")
        controller = begun(one, folder, "order", "sjf")
        one.until(lambda: len(ticks(folder)) > 10, "ticks", 120)
        while len(ticks(folder)) < TICKS:
            for _ in range(10):
                one.submit("sleep 1", f"--time={rng.randint(1, 600)}", "--nodes=4", "--exclusive")
            time.sleep(1.0)
        write_down(ticks(folder), "ticks.csv")
        began = time.monotonic()
        controller.send_signal(signal.SIGTERM)
        controller.wait(60)
        say(f"factors reset in {time.monotonic() - began:.1f} s")


def write_down(found: list[Mapping[str, object]], name: str) -> None:
    """Write the duration of ticks in milliseconds."""
    table = []
    for row in found:
        spent, pools, wanted = row["ms"], row["pools"], row["wanted"]
        assert isinstance(spent, list)
        assert isinstance(pools, list)
        assert isinstance(wanted, dict)
        waiting = sum(pool["waiting"] for pool in pools)
        table.append([waiting, len(wanted), *spent])
    columns = ["waiting", "changes", "read_ms", "decide_ms", "set_ms"]
    pd.DataFrame(table, columns=columns).to_csv(HERE / name, index=False, lineterminator="\n")


def kills() -> None:
    """Kill the controller, slurmctld, both, or the slurmds at random times, and record the outcome."""
    rng, found, numbers = random.Random(SEED), list[list[object]](), list[str]()
    with tempfile.TemporaryDirectory() as name, slurm(Cluster()) as one:
        folder = Path(name)
        controller = begun(one, folder, "order", "sjf")
        for number in range(KILLS):
            numbers += [_short(one, rng) for _ in range(16)]
            time.sleep(SAVED_S + rng.uniform(0.2, 3.0))  # otherwise a killed slurmctld loses jobs
            what = rng.choice(["controller", "slurmctld", "slurmd", "both"])
            set_before = sum(factor != 0 for factor in factors(one).values())
            if what in ("controller", "both"):
                controller.kill()
                controller.wait()
            if what != "controller":
                words = one.kill("slurmd" if what == "slurmd" else "slurmctld")
                time.sleep(rng.uniform(0.0, 2.0))
                for server in words:
                    one.begin(*server)
            began, taken = time.monotonic(), None
            if what in ("controller", "both"):
                one.until(lambda: not any(factors(one).values()), "factors to be reset", 120)
                taken = round(time.monotonic() - began, 1)
                controller = begun(one, folder, "order", "sjf")
            say(f"kill {number + 1} of {KILLS}: {what}: {set_before} set, reset in {taken} s")
            found.append([number + 1, what, set_before, taken, held(one)])
        write_kills(found)
        for node in one.ask("sinfo", "-hN", "-o", "%N %t").splitlines():
            if "drain" in node:  # Slurm drains nodes in an inconsistent state
                say(f"node {node}")
                one.ask("scontrol", "update", f"nodename={node.split()[0]}", "state=resume")
        for number, row in one.jobs().items():
            if "launch_failed" in row["Reason"]:  # Slurm holds a job that a killed slurmd could not start
                say(f"job {number}: {row['Reason']}")
                one.ask("scontrol", "release", number)
        one.until(lambda: not one.states(), "all jobs to end", 600)
        controller.send_signal(signal.SIGTERM)
        controller.wait(60)
        states = pd.Series([one.jobs().get(number, {}).get("JobState", "LOST") for number in numbers]).value_counts()
    say(f"{len(numbers)} jobs submitted: {states.to_dict()}")


def write_kills(found: list[list[object]]) -> None:
    """Write a row for each kill."""
    columns = ["kill", "what", "set", "taken_back_s", "held"]
    pd.DataFrame(found, columns=columns).to_csv(HERE / "kills.csv", index=False, lineterminator="\n")


def _short(one: LoopbackSlurm, rng: random.Random) -> str:
    options = (f"--time={rng.randint(1, 3)}", f"--cpus-per-task={rng.randint(1, 4)}")
    return one.submit(f"sleep {rng.randint(1, 3)}", *options)


def factors(one: LoopbackSlurm) -> dict[str, int]:
    """Return the factor of each waiting job; a cluster that does not answer gives AWAY."""
    try:
        said = one.ask("sprio", "--noheader", "-o", "%i|%S").splitlines()
    except UserError:
        return {AWAY: 1}
    return {number: int(factor) for number, factor in (line.split("|") for line in said)}


def held(one: LoopbackSlurm) -> int:
    """Return the number of held jobs."""
    one.until(lambda: AWAY not in factors(one), "slurmctld")
    return sum("Held" in row["Reason"] for row in one.jobs().values() if row["JobState"] == "PENDING")


if __name__ == "__main__":
    known = {"plays": plays, "bulk": bulk, "kills": kills}
    if len(sys.argv) == 3 and sys.argv[1] == "trained":
        trained(Path(sys.argv[2]))
    elif len(sys.argv) == 2 and sys.argv[1] in known:
        known[sys.argv[1]]()
    else:
        sys.exit(f"expected one of {', '.join(known)}, or trained FOLDER")
