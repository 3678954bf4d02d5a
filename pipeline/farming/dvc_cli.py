"""DVC's command line: the graph of stages, stale stages, and DVC's messages while it makes one.

`dvc status --json` and `dvc dag --mermaid` are documented and stable; there is no JSON of the graph. No command lists
the parameters that a stage reads: only these come from DVC's Python. Failures of DVC are a UserError.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pipeline.errors import UserError

# DVC's own lock is held for seconds where outputs are large; without the option it is waited for three.
DVC = (sys.executable, "-m", "dvc", "--wait-for-lock")
# Message about a stage that another DVC runs; a killed one counts until the system has removed its process.
BUSY, BUSY_S = "is busy, it is being blocked by", 10.0
LONGEST = 300  # characters of a message
NODE, EDGE = re.compile(r'^\s*(node\d+)\["(.+)"\]$'), re.compile(r"^\s*(node\d+)-->(node\d+)$")
RAN, CACHED, UNCHANGED = "ran", "from DVC's cache", "unchanged"
FATES = {
    RAN: re.compile(r"^Running stage '(.+)':$"),
    CACHED: re.compile(r"^Stage '(.+)' is cached - skipping run"),
    UNCHANGED: re.compile(r"^(?:Stage )?'(.+)' didn't change, skipping$"),
}
# Other messages of DVC: the command that it runs, notes on dvc.lock, advice on git.
NOISE = (
    "> ",
    "Updating lock file",
    "Generating lock file",
    "To track the changes",
    "\tgit add",
    "To enable auto staging",
    "\tdvc config",
    "Use `dvc push`",
    "Verifying ",
    "Data and pipelines are up to date",
)

Graph = Mapping[str, frozenset[str]]  # the stages that each stage needs


def graph() -> Graph:
    """Return the stages of dvc.yaml, each with the stages that it needs, from DVC, which compares their outputs."""
    return parse_graph(_run("dag", "--mermaid").splitlines())


def parse_graph(lines: Iterable[str]) -> Graph:
    """Return the graph in DVC's Mermaid.

    >>> parse_graph(['flowchart TD', '  node1["eat"]', '  node2["cook"]', '  node2-->node1'])
    {'eat': frozenset({'cook'}), 'cook': frozenset()}
    """
    names: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for line in lines:
        if node := NODE.match(line):
            names[node[1]] = node[2]
            needs[node[2]] = set()
        elif edge := EDGE.match(line):
            needs[names[edge[2]]].add(names[edge[1]])
    return {stage: frozenset(others) for stage, others in needs.items()}


def stale() -> set[str]:
    """Return the stages whose code, parameters, inputs or outputs differ from dvc.lock, without their dependents."""
    return set(json.loads(_run("status", "--json")))


def cache_folder() -> str:
    """Return the path of DVC's cache."""
    return str(Path(_run("cache", "dir").strip()).absolute())


def stages_reading(keys: Collection[str]) -> set[str]:
    """Return the stages that read one of some dotted keys of params.yaml, or a part of one."""
    from dvc.dependency import ParamsDependency
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(".") as repo:
            read = [
                (stage.addressing, name)
                for stage in repo.index.stages
                if hasattr(stage, "name")
                for dep in stage.deps
                if isinstance(dep, ParamsDependency)
                for name in dep.params
            ]
    except DvcException as error:
        raise UserError(f"dvc.yaml: {' '.join(str(error).split())[:LONGEST]}") from error
    dotted = [f"{key}." for key in keys]
    return {stage for stage, name in read if any(f"{name}.".startswith(k) or k.startswith(f"{name}.") for k in dotted)}


def repro(stage: str = "") -> list[str]:
    """Return DVC's command for one stage, without the stages that it needs; or for all."""
    return [*DVC, "repro", *(["--single-item", stage] if stage else [])]


def fate(line: str) -> tuple[str, str] | None:
    """Return the stage in a message of DVC and DVC's action, if the line has them.

    >>> fate("Running stage 'gate':"), fate("Stage 'log' didn't change, skipping"), fate("gate: done")
    (('gate', 'ran'), ('log', 'unchanged'), None)
    """
    found = ((match[1], what) for what, said in FATES.items() if (match := said.match(line)))
    return next(found, None)


def is_noise(line: str) -> bool:
    """Return whether a line is a message of DVC's own that users do not need."""
    return not line.strip() or line.startswith(NOISE) or fate(line) is not None


def _run(*words: str) -> str:
    until = time.monotonic() + BUSY_S
    while True:
        done = subprocess.run([*DVC, *words], check=False, capture_output=True, text=True)
        if not done.returncode:
            return done.stdout
        if BUSY not in done.stderr or time.monotonic() > until:
            break
    said = done.stderr.partition("ERROR: ")[2] or done.stderr
    raise UserError(f"dvc {words[0]}: {' '.join(said.split())[:LONGEST] or 'failed'}")
