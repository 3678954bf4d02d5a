"""Asking DVC: the graph of stages, what is stale, and what it said while it worked on one; by its command line.

`dvc status --json` and `dvc dag --mermaid` are documented and stay; for the graph there is no JSON. Which parameters a
stage reads, no command tells: that one thing comes from DVC's Python. What DVC cannot tell is a UserError.
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
# Of a stage that another DVC runs; one that was killed counts until the system has forgotten its process.
BUSY, BUSY_S = "is busy, it is being blocked by", 10.0
LONGEST = 300  # letters of what DVC says
NODE, EDGE = re.compile(r'^\s*(node\d+)\["(.+)"\]$'), re.compile(r"^\s*(node\d+)-->(node\d+)$")
RAN, CACHED, UNCHANGED = "ran", "from DVC's cache", "unchanged"
FATES = {
    RAN: re.compile(r"^Running stage '(.+)':$"),
    CACHED: re.compile(r"^Stage '(.+)' is cached - skipping run"),
    UNCHANGED: re.compile(r"^(?:Stage )?'(.+)' didn't change, skipping$"),
}
# What DVC says beside: the command that it runs, notes on dvc.lock, advice for git.
BESIDE = (
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

Graph = Mapping[str, frozenset[str]]  # of each stage, those that it needs


def graph() -> Graph:
    """Return the stages of dvc.yaml, each with those that it needs; from DVC, which alone knows whose outputs meet."""
    return parsed(_ask("dag", "--mermaid").splitlines())


def parsed(lines: Iterable[str]) -> Graph:
    """Return the graph that is drawn in DVC's mermaid.

    >>> parsed(['flowchart TD', '  node1["eat"]', '  node2["cook"]', '  node2-->node1'])
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
    """Return the stages whose code, parameters, inputs or outputs are not those of dvc.lock; not those behind them."""
    return set(json.loads(_ask("status", "--json")))


def cache_folder() -> str:
    """Return where DVC's cache is."""
    return str(Path(_ask("cache", "dir").strip()).absolute())


def by_params(keys: Collection[str]) -> set[str]:
    """Return the stages that read one of some dotted keys of params.yaml, or a part of one."""
    from dvc.dependency import ParamsDependency
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(".") as repo:
            stages = [stage for stage in repo.index.stages if hasattr(stage, "name")]
            read = {
                stage.addressing: [
                    name for dep in stage.deps if isinstance(dep, ParamsDependency) for name in dep.params
                ]
                for stage in stages
            }
    except DvcException as error:
        raise UserError(f"dvc.yaml: {' '.join(str(error).split())[:LONGEST]}") from error
    return {stage for stage, names in read.items() if any(_meet(name, key) for name in names for key in keys)}


def _meet(one: str, other: str) -> bool:
    """Is one of two dotted keys the other, or in it?"""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def repro(stage: str = "") -> list[str]:
    """Return the command that has DVC make one stage, and none that it needs; or all."""
    return [*DVC, "repro", *(["--single-item", stage] if stage else [])]


def fate(line: str) -> tuple[str, str] | None:
    """Return the stage that DVC decided about, and what it did: nothing if a line does not say.

    >>> fate("Running stage 'gate':"), fate("Stage 'log' didn't change, skipping"), fate("gate: done")
    (('gate', 'ran'), ('log', 'unchanged'), None)
    """
    found = ((match[1], what) for what, said in FATES.items() if (match := said.match(line)))
    return next(found, None)


def beside(line: str) -> bool:
    """Tell whether a line is DVC's own and says nothing about the work."""
    return not line.strip() or line.startswith(BESIDE) or fate(line) is not None


def _ask(*words: str) -> str:
    until = time.monotonic() + BUSY_S
    while True:
        done = subprocess.run([*DVC, *words], check=False, capture_output=True, text=True)
        if not done.returncode:
            return done.stdout
        if BUSY not in done.stderr or time.monotonic() > until:
            break
    said = done.stderr.partition("ERROR: ")[2] or done.stderr
    raise UserError(f"dvc {words[0]}: {' '.join(said.split())[:LONGEST] or 'failed'}")
