"""Comparison of controllers in addition to slowdown: waits, fairness, shares over time, expectations, estimates."""

from collections.abc import Sequence

import pandas as pd

from pipeline.comparing.kept import KEPT, picture
from pipeline.core import storage
from pipeline.core.config import GroupsLog, Params
from pipeline.core.schemas import empty
from pipeline.core.storage import Chosen
from pipeline.problems.groups import plots
from pipeline.problems.groups.env.evaluation.metrics import fairness, summary
from pipeline.problems.groups.env.tables import GROUPS_FAIRNESS, GROUPS_SUMMARY, OFF_POLICY, TABLES, jobs_schema
from pipeline.problems.groups.heuristics.names import REFERENCES
from pipeline.problems.parts import Comparison, Evidence, Tested, Validated, validation_label

SHOWN = ("proportional", "drf", "fixed", "lookahead")  # rules in the figure of shares


def evidence(params: Params, scenarios: Sequence[str]) -> Evidence:
    """Return the tables and figures of shared clusters."""
    found = {
        "groups_summary.csv": (
            [summary(storage.read_jobset_results(params, name, TABLES), name) for name in scenarios],
            GROUPS_SUMMARY,
        ),
        "groups_fairness.csv": (
            [fairness(storage.read_also(params, name, TABLES, "groups"), name) for name in scenarios],
            GROUPS_FAIRNESS,
        ),
        "off_policy.csv": (
            [storage.read_also(params, name, TABLES, "off_policy") for name in scenarios],
            OFF_POLICY,
        ),
    }
    tables = {
        name: (pd.concat(frames, ignore_index=True) if frames else empty(schema), schema)
        for name, (frames, schema) in found.items()
    }
    figures = [_drawn(params, name) for name in scenarios]
    return Evidence(tables, {title: content for drawn in figures for title, content in drawn.items()})


def validated(params: Params, agent: str, chosen: Chosen) -> Validated:
    """Return the label of an agent's learning curve; there are no levels of rules."""
    return Validated({}, validation_label(params.agents[agent].objective, "time units"))


def _drawn(params: Params, name: str) -> dict[str, bytes]:
    agents = [agent for agent, row in params.agents.items() if row.scenario == name]
    intervals = storage.read_also(params, name, TABLES, "intervals")
    heaviest = intervals[(intervals["load"] == intervals["load"].max()) & (intervals["jobset"] == 0)]
    waits = summary(storage.read_jobset_results(params, name, TABLES), name)
    over_time = f"Share of each group over time, scenario {name}"
    waiting = f"Mean waiting time on test jobsets, scenario {name}"
    shown = [*agents, *SHOWN]
    shares = heaviest[heaviest["policy"].isin(shown)]
    figures = {
        f"shares_{name}": picture(KEPT, plots.shares_over_time, shares, over_time, shown),
        f"delay_{name}": picture(KEPT, plots.delay_by_load, waits, waiting, agents),
    }
    for agent in agents:
        mine = intervals[intervals["policy"] == agent]
        if mine["q"].notna().any():  # otherwise the agent has no expectations
            title = f"{agent}: what was expected and what came"
            figures[f"calibration_{agent}"] = picture(KEPT, plots.calibration, mine, title)
    return figures


def tested(params: Params, scenario: str) -> Tested:
    """Return a scenario's test jobsets; if they are cut from a log, all loads share windows."""
    row = params.groups_scenario(scenario)
    jobs = storage.read_table(storage.jobsets_folder(scenario) / "test.parquet", jobs_schema(list(row.resources)))
    return Tested(jobs, row.resources, same_windows=isinstance(row.workload, GroupsLog))


COMPARISON = Comparison(evidence, validated, tested, REFERENCES)
