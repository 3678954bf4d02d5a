"""Made-up evidence for Deepk8s's claims: four jobsets per load, with the same variation under every policy."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from machine_rows import AGENT
from papers_evidence import OURS, curve, falling

from pipeline.core.config import MachinesAgent
from pipeline.papers.deepk8s import HEURISTICS, policies_shown
from pipeline.papers.evidence import Evidence
from pipeline.papers.figures import gathered
from pipeline.papers.roles import Roles
from pipeline.problems.machines.env.tables import TABLES

LOADS = (50, 110)
UPS = 3 * (-0.05, 0.05, 0.0, 0.0)  # deviations of the jobsets from their load's mean
SLOWDOWN = {"fcfs": 1.60, "random": 1.58, "sjf": 1.55, "tetris": 1.54, "ppo": 1.40, "a3c": 1.40, "dagger": 1.55}
COMPLETION = {"fcfs": 120.0, "random": 110.0, "tetris": 101.0, "ppo": 99.7, "a3c": 99.8, "dagger": 100.0}
COMPLETION |= {"sjf": COMPLETION["ppo"] / 0.998}
# Completion times of the short task, which runs for 10 time units, and of the long one, which runs for 100.
TASKS = dict.fromkeys(SLOWDOWN, (20.0, 110.0)) | {"ppo": (15.0, 130.0)}
BY = {"ppo": {"episodes": 4}, "a3c": {"workers": 2}, "dagger": {"teacher": "sjf"}}
VALIDATION = {
    "ppo": {0: 3.0, 500: 1.6, 1000: 1.42, 2000: 1.40},
    "a3c": {0: 3.0, 1000: 2.0, 4000: 1.6, 6000: 1.43, 8000: 1.41},
    "dagger": {0: 3.0, 250: 2.0, 500: 1.56, 1000: 1.55},
}
# Costs fall until the first update, and stay constant until the second.
FALLS = {"ppo": (800, 2000), "a3c": (4000, 8000), "dagger": (400, 1000)}
LEVELS = {"fcfs": 1.6, "random": 1.58, "sjf": 1.55, "tetris": 1.54, "saf": 1.5}

ByLoad = Mapping[int, float]


def learner(algorithm: str, loads: Sequence[int] = (110,), **changes: Any) -> MachinesAgent:
    """An agent of the scenario "few"; `changes` apply to its row."""
    part = {name: AGENT["finetune"][name] for name in ("jobsets", "validate_every")}
    part |= {"name": algorithm, "recipe": "r", "loads": list(loads), "updates": FALLS[algorithm][1], **BY[algorithm]}
    part |= changes.pop("finetune", {})
    return MachinesAgent.model_validate_json(json.dumps({**AGENT, **changes, "finetune": part}))


ALL = {name: learner(name) for name in BY}


def by_load(value: float | ByLoad) -> ByLoad:
    return value if isinstance(value, Mapping) else dict.fromkeys(LOADS, value)


def jobset_table(
    slowdown: Mapping[str, float | ByLoad],
    completion: Mapping[str, float | ByLoad],
    makespan: Mapping[str, float | ByLoad],
) -> pd.DataFrame:
    """Results of jobsets with these means."""
    lines = []
    for policy, value in slowdown.items():
        for load, mean in by_load(value).items():
            done, whole = by_load(completion[policy])[load], by_load(makespan.get(policy, 1000.0))[load]
            for jobset, up in enumerate(UPS):
                slow = [mean + up] * 5
                lines.append((policy, load, jobset, 2, *slow, 1.0, 1.0, 1.0, done + up, done, whole, 0.5, 0))
    return pd.DataFrame(lines, columns=list(TABLES.jobsets.columns))


def job_table(tasks: Mapping[str, tuple[float, float]], long: float = 100.0) -> pd.DataFrame:
    """Results of jobs: in each jobset a short task and a long one."""
    lines = []
    for policy, took in tasks.items():
        for load in LOADS:
            for jobset, up in enumerate(UPS):
                for job, (run, time) in enumerate(zip((10.0, long), took, strict=True)):
                    finish = 3.0 + time + up
                    lines.append((policy, load, jobset, job, 3.0, run, 3.0, finish, 0.0, 1.5, 1.5, 0, False))
    return pd.DataFrame(lines, columns=list(TABLES.jobs.columns))


def few(
    agents: Mapping[str, MachinesAgent] | None = None,
    slowdown: Mapping[str, float | ByLoad] | None = None,
    completion: Mapping[str, float | ByLoad] | None = None,
    makespan: Mapping[str, float | ByLoad] | None = None,
    tasks: Mapping[str, tuple[float, float]] | None = None,
    falls: Mapping[str, tuple[int, int]] | None = None,
    long: float = 100.0,
) -> Evidence:
    """The evidence of the scenario "few", in which by default every part of every claim holds."""
    roles = Roles("few", "machines", dict(ALL if agents is None else agents))
    there = (*HEURISTICS, *roles.agents)
    slow = {name: ({**SLOWDOWN, **(slowdown or {})}).get(name, 1.4) for name in there}
    took = {name: ({**COMPLETION, **(completion or {})}).get(name, 99.7) for name in there}
    spent = {name: ({**TASKS, **(tasks or {})}).get(name, (15.0, 130.0)) for name in policies_shown(roles)}
    learned = {**FALLS, **(falls or {})}
    lines = {
        name: curve(validation=VALIDATION.get(name, {0: 2.0}), cost=falling(*learned.get(name, FALLS["ppo"])))
        for name in roles.agents
    }
    levels = dict.fromkeys(roles.agents, LEVELS)
    results = jobset_table(slow, took, makespan or {})
    return gathered(OURS, roles, results, job_table(spent, long), lines, levels, dict.fromkeys(LOADS, "tetris"))
