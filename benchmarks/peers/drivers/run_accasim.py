"""Run AccaSim on a queue: FOLDER SWF RULE; it reads the log while it simulates."""

import json
import sys
import time
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Write its description of the cluster, run, and read the waits from the schedule that it writes."""
    folder, path, rule = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with Path(path).open(encoding="utf-8") as lines:
        machines = int(next(lines).split(":")[1])
    groups = {"groups": {"g0": {"core": 1}}, "resources": {"g0": machines}}
    config = folder / "cluster.json"
    config.write_text(json.dumps({"start_time": 0, "equivalence": {"processor": {"core": 1}}, **groups}))
    schedulers, allocators = (import_module(f"accasim.base.{name}_class") for name in ("scheduler", "allocator"))
    kind = {"fcfs": "FirstInFirstOut", "easy": "EASYBackfilling"}[rule]
    dispatcher = getattr(schedulers, kind)(allocators.FirstFit())
    simulator = import_module("accasim.base.simulator_class").Simulator(
        path, str(config), dispatcher, scheduling_output=True, statistics_output=False, show_statistics=False,
        RESULTS_FOLDER_PATH=str(folder), RESULTS_FOLDER_NAME="results", LOG_LEVEL="ERROR",
        SCHEDULE_OUTPUT={"format": "{wait}", "attributes": {"wait": ("waiting_time", "int")}},
    )  # fmt: skip
    began, cpu = time.perf_counter(), time.process_time()
    simulator.start_simulation()
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    (written,) = folder.glob("sched-*")
    waits = [int(line) for line in written.read_text().split()]
    result = {"jobs": len(waits), "decisions": len(waits), "wall_s": wall, "cpu_s": cpu}
    print("RESULT", json.dumps({**result, "mean": sum(waits) / len(waits)}))


if __name__ == "__main__":
    main()
