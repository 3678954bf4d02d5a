"""The table of the README: which policy for which situation, what it gains, and the command that plays it.

Figures of short runs and streams are of confirming jobsets; of the others, of the test jobsets of the default run.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from layout import number, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tables import page  # the folder of all pages

ON = "schedule jobs.csv --out plan.csv --scenario"
SHOWN = 4  # policies of a row, the best first
RULES = ("hold_until", "linear", "hold", "sjf")
LEARNED = ("deeprm", "deeprm2", "deeprm3", "deeprm_off", "deepk8s_ppo", "controller")


class Row(NamedTuple):
    """A situation, and what was measured of its policies."""

    situation: str
    measured: str
    scenario: str
    means: "pd.Series[float]"
    more: str = ""  # of the command


def _confirmed(scenario: str, load: int, agents: tuple[str, ...]) -> "pd.Series[float]":
    data = pd.read_csv(page("default").DATA)
    data = data[(data["scenario"] == scenario) & (data["load"] == load) & data["policy"].isin([*agents, *RULES])]
    return data.groupby("policy")["slowdown"].mean()


def _tested(name: str, scenario: str, policies: tuple[str, ...]) -> "pd.Series[float]":
    found = page("default").report(name)
    found = found[(found["scenario"] == scenario) & (found["load"] == "all") & found["policy"].isin(policies)]
    return found.groupby("policy")["mean"].first()


def situations() -> str:
    """Return the README's table: the policy with the lowest mean in each situation, beside others."""
    agents, machines = ("deeprm", "deeprm2", "deeprm3"), ("sjf_most_allocated", "sjf", "deepk8s_ppo", "fcfs")
    run = "jobs arrive for a while, then the cluster drains (short run)"
    found = [
        Row(f"{run}, at half load", "slowdown, 70 %", "online", _confirmed("online", 70, agents)),
        Row("the same, overloaded", "slowdown, 130 %", "online", _confirmed("online", 130, agents)),
        Row("the same, nearly empty", "slowdown, 10 %", "online", _confirmed("online", 10, agents)),
        Row("jobs keep arriving (stream)", "slowdown, 90 %", "streams", _confirmed("streams", 90, agents[2:])),
        Row(
            "all jobs are known before the first starts",
            "slowdown",
            "offline",
            _tested("comparison", "offline", (*RULES, "deeprm_off")),
            " --search 50000",
        ),
        Row("many machines, in real time", "wait", "machines", _tested("delay", "machines", machines)),
        Row(
            "user groups share a cluster",
            "wait",
            "shares",
            _tested("delay", "shares", ("controller", "lookahead", "proportional", "drf")),
        ),
    ]
    head = ["your situation", "policy", "measured (lower is better)", "`python -m pipeline ...`"]
    return table(head, [_cells(row) for row in found], words=4)


def _cells(row: Row) -> list[str]:
    means = row.means.sort_values(kind="stable")[:SHOWN]
    best = means.index[0]
    listed = ", ".join(f"{policy} {_fine(mean)}" for policy, mean in means.items())
    named = f"models/{best}" if best in LEARNED else best
    command = f"{ON} {row.scenario} --policy {named}{row.more}"
    return [row.situation, f"`{best}`", f"{row.measured}: {listed}", f"`{command}`"]


def _fine(mean: float) -> str:
    return f"{mean:.3f}" if mean < 2 else number(mean)


TABLES = {"situations": situations}
