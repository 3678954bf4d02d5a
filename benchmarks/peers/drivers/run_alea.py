"""Run Alea on a queue: CHECKOUT CLASSES FOLDER SWF RULE; it reads the log while it simulates.

A run with ten jobs is subtracted: it starts the Java machine and loads the program.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

RULES = {"fcfs": "0", "easy": "2"}  # numbers of its algorithms
NONE = "false,false,false,false"


def run(checkout: Path, classes: str, folder: Path, lines: list[str], rule: str) -> tuple[float, float, float]:
    """Return wall and processor time of a run, and the mean wait that it reports."""
    machines = int(lines[0].split(":")[1])
    jobs = [line for line in lines if not line.startswith(";")]
    (folder / "data-set").mkdir(parents=True)
    (folder / "data-set" / "jobs.swf").write_text("".join(jobs), encoding="utf-8")
    (folder / "data-set" / "jobs.swf.machines").write_text(f"0\tcluster\t{machines}\t1\t1\t1048576\n", encoding="utf-8")
    own = {
        "data_sets": "jobs.swf", "data_set_dir": "./data-set", "total_gridlet": str(len(jobs)), "first_arrival": "0",
        "algorithms": RULES[rule], "use_RAM": "false", "skip": "1", "estimate": NONE,
        "plugins": "AverageWaitTimePlugin",
    }  # fmt: skip
    text = (checkout / "configuration.properties").read_text(encoding="utf-8").splitlines()
    kept = [line for line in text if line.partition("=")[0].strip() not in own]
    settings = [*kept, *(f"{key}={value}" for key, value in own.items())]
    (folder / "configuration.properties").write_text("\n".join(settings) + "\n", encoding="utf-8")
    path = os.pathsep.join([classes, *(str(checkout / "lib" / name) for name in ("simjava.jar", "gridsim.jar"))])
    command = ["java", "-Djava.awt.headless=true", "-cp", path, "xklusac.environment.ExperimentSetup"]
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as java:
        _, status, used = os.wait4(java.pid, 0)
        java.returncode = os.waitstatus_to_exitcode(status)
    if java.returncode:
        raise SystemExit(f"Alea ended with {java.returncode}")
    (written,) = folder.glob("results/*/Results(*).csv")
    head, row = (line.split("\t") for line in written.read_text(encoding="utf-8").splitlines()[:2])
    mean = float(row[head.index("wait")].replace(",", "."))
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, mean


def main() -> None:
    """Run ten jobs and the whole log."""
    checkout, classes, folder, log, rule = sys.argv[1:]
    lines = Path(log).read_text(encoding="utf-8").splitlines(keepends=True)
    started = run(Path(checkout), classes, Path(folder) / "start", lines[:12], rule)
    whole = run(Path(checkout), classes, Path(folder) / "whole", lines, rule)
    count = len(lines) - 2
    wall, cpu = (max(whole[k] - started[k], 0.001) for k in range(2))
    result = {"jobs": count, "decisions": count, "wall_s": wall, "cpu_s": cpu, "mean": whole[2]}
    print("RESULT", json.dumps(result))


if __name__ == "__main__":
    main()
