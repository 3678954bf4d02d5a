"""Train the policy of arm `trained` in ../steering.md, on jobs of the same distribution as the measured ones.

    mkdir /tmp/trained && cd /tmp/trained
    python REPOSITORY/docs/results/steering/trained.py REPOSITORY    # a minute of one core; writes models/loop/policy

Its jobs are drawn as by `measure.py plays`, with another seed. They are in a log in SWF, with a limit in minutes for a
run of seconds. The log counts processors, so a job of two nodes becomes one of one node. The policy is trained only in
the simulator, whose backfill is EASY.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.fidelity.jobs import drawn
from pipeline.core.storage.files import write
from pipeline.progress import say

COUNT, SEED = 6000, 101  # jobs; the measured ones have another seed
SCENARIO = {
    "problem": "machines",
    "machines": [{"count": 4, "has": {"cpu": 4}}],
    "slots": 64,
    "dispatch": "easy",
    "policies_know": "estimates",
    "pause": 16,
    "time_limit": 1000000,
    "workload": {"name": "log", "format": "swf", "path": "jobs.swf", "window": 100},
    "loads": [100, 165],
    "jobsets": {"train": 20, "validation": 8, "test": 12},
}
AGENT = {
    "problem": "machines",
    "scenario": "loop",
    "objective": "completion_time",
    "network": {"name": "deepsets", "hidden": 32},
    "pretrain": {"name": "none"},
    "finetune": {"name": "ppo", "recipe": "ppo", "loads": [100, 165], "updates": 60, "jobsets": 6, "episodes": 4,
                 "validate_every": 10},
}  # fmt: skip


def log() -> str:
    """Return the jobs as a log in SWF."""
    jobs, rows = drawn(COUNT, SEED), []
    for k in range(COUNT):
        cells = [k + 1, round(float(jobs.arrival_s[k]), 3), 0, jobs.run_s[k], jobs.cpus[k], -1, -1, jobs.cpus[k]]
        rows.append(" ".join(str(cell) for cell in [*cells, 60 * jobs.limit_min[k], -1, 1, 1, *[-1] * 6]))
    return "; MaxProcs: 16\n" + "\n".join(rows) + "\n"


def params(repository: Path) -> str:
    """Return params.yaml: the repository's recipes, one scenario, one agent."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    values = yaml.load((repository / "params.yaml").read_text())
    values |= {
        "threads": 1,
        "hindsight": {**values["hindsight"], "scenarios": []},
        "transfers": {},
        "scenarios": {"loop": SCENARIO},
        "agents": {"loop": AGENT},
    }
    return "".join(f"{name}: {_flow(value)}\n" for name, value in values.items())


def _flow(value: object) -> str:
    import json

    return json.dumps(value)  # YAML is a superset


def main(repository: Path) -> None:
    """Write log and parameters, then train."""
    write(Path("jobs.swf"), log().encode())
    write(Path("params.yaml"), params(repository).encode())
    for words in (["log"], ["generate", "loop"], ["pretrain", "loop"], ["finetune", "loop"]):
        say(" ".join(words))
        subprocess.run([sys.executable, "-m", "pipeline", *words], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
