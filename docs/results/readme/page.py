"""The table of the README: which policy for which situation, what it gains, what measured it, how to use it.

Figures of short runs and streams are of confirming jobsets; of the others, of the test jobsets of the default run.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from layout import number, table

from pipeline.config import load_params

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tables import ROOT, page  # the folder of all pages

ON = "schedule jobs.csv --out plan.csv --scenario"
TESTED = "`make repro` (`reports/{}.csv`)"
SHOWN = 4  # policies of a row, the best first
RULES = ("hold_until", "linear", "hold", "sjf")
LEARNED = ("deeprm", "deeprm2", "deeprm3", "deeprm_off", "deepk8s_ppo", "controller")


class Row(NamedTuple):
    """A situation, and what was measured of its policies."""

    situation: str
    measured: str
    scenario: str
    means: "pd.Series[float]"
    by: str  # what prints the numbers


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
        _confirming(f"{run}, at medium load", "online", 70, agents),
        _confirming("the same, overloaded", "online", 130, agents),
        _confirming("the same, nearly empty", "online", 10, agents),
        _confirming("jobs keep arriving (stream)", "streams", 90, agents[2:]),
        Row(
            "all jobs are known before the first starts",
            "slowdown",
            "offline",
            _tested("comparison", "offline", (*RULES, "deeprm_off")),
            TESTED.format("comparison"),
        ),
        Row(
            "many machines, in real time",
            "wait",
            "machines",
            _tested("delay", "machines", machines),
            TESTED.format("delay"),
        ),
        Row(
            "user groups share a cluster",
            "wait",
            "shares",
            _tested("delay", "shares", ("controller", "lookahead", "proportional", "drf")),
            TESTED.format("delay"),
        ),
    ]
    head = ["your situation", "policy", "measured (lower is better)", "printed by", "for your own jobs"]
    return table(head, [_cells(row) for row in found], words=5)


def _confirming(situation: str, scenario: str, load: int, agents: tuple[str, ...]) -> Row:
    means = _confirmed(scenario, load, agents)
    return Row(situation, f"slowdown, {load} %", scenario, means, f"`confirm {scenario}`")


def _cells(row: Row) -> list[str]:
    means = row.means.sort_values(kind="stable")[:SHOWN]
    best = means.index[0]
    listed = ", ".join(f"{policy} {_fine(mean)}" for policy, mean in means.items())
    named = f"models/{best}" if best in LEARNED else best
    scenario = load_params(ROOT / "params.yaml").scenario(row.scenario)
    ends = getattr(scenario, "arrivals_end", None)
    command = f"{ON} {row.scenario} --policy {named}" + (f" --arrivals-end {ends}" if ends else "")
    return [row.situation, f"`{best}`", f"{row.measured}: {listed}", row.by, f"`{command}`"]


def _fine(mean: float) -> str:
    return f"{mean:.3f}" if mean < 2 else number(mean)


TABLES = {"situations": situations}
