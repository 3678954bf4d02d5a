"""Pairs: all policies are compared with references and the best heuristic, agents also with their pretrained policy.

References are SJF and tuned Tetris; for controllers, `proportional`, `drf`, `fixed` and `lookahead`. Agents
are first compared by their own objective. Then all policies are compared by slowdown or, in continuous time,
by bounded slowdown and by mean waiting time.

Loads of test jobsets: a load in params.yaml is a mean over resources and, for a log, that of its training period. The
actual load of a resource in test jobsets may differ widely.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import ALL, comparison, summary
from pipeline.core.config import Agent, Evaluation, External
from pipeline.core.schemas import DELAY, OBJECTIVES, empty
from pipeline.core.schemas.tables import LOADS
from pipeline.simulation.results import COST_COLUMNS, PLAIN, slowdown_column

REFERENCES = ("sjf", "tetris", "proportional", "drf", "fixed", "lookahead")  # if the scenario has them
ALSO_SHOWN = ("hold", "hold_until", "hold_long", "undivided")
BEST = "best_heuristic"
START = "{agent}_pretrained"
UNFINISHED = "unfinished_jobs"

Metrics = dict[str, dict[str, float] | int]  # of each policy by name, and the number of unfinished jobs


class Compared(NamedTuple):
    """The evidence of one scenario."""

    summary: pd.DataFrame
    comparison: pd.DataFrame
    delay: pd.DataFrame  # the same as `comparison`, by mean waiting time
    objectives: pd.DataFrame  # the same for agents, each by its own objective


def compare(
    scenario: str,
    results: pd.DataFrame,
    best: Mapping[int, str],
    best_delay: Mapping[int, str],
    agents: Mapping[str, Agent | External],
    settings: Evaluation,
    seed: int,
) -> Compared:
    """Compare every policy of one scenario on the same jobsets.

    `best` and `best_delay` name the best heuristic at each load by slowdown and by delay, chosen on validation jobsets;
    without `best_delay`, delay is not compared. `results` has the column `unit` if loads share windows. Each agent is
    also compared with its own pretrained policy, if that was scored; agents that differ only by their seeds are also
    compared as one.
    """
    rng = np.random.default_rng(seed)
    shown = results.assign(mean_slowdown=results[slowdown_column(results)], unbounded_slowdown=results[PLAIN])
    summaries = summary(shown, scenario, settings, rng)
    compared = paired(shown, scenario, best, agents, settings, seed)
    by_delay = empty(DELAY)
    if best_delay:
        waits = results.assign(mean_slowdown=results["mean_wait"])
        by_delay = paired(waits, scenario, best_delay, agents, settings, seed)
    of = {slowdown_column(results): best, "mean_wait": best_delay}
    own = [empty(OBJECTIVES)]
    for objective in dict.fromkeys(row.objective for row in agents.values()):
        column, _ = COST_COLUMNS.get(objective, (objective, 1))  # a problem's own objective is a column
        mine = {name: row for name, row in agents.items() if row.objective == objective}
        rows = paired(results.assign(mean_slowdown=results[column]), scenario, of.get(column, {}), mine, settings, seed)
        rows.insert(0, "objective", objective.replace("_", " "))
        own.append(rows[rows["policy"].isin([*mine, *trainings(mine)])])
    return Compared(summaries, compared, by_delay, pd.concat(own, ignore_index=True))


def paired(
    results: pd.DataFrame,
    scenario: str,
    best: Mapping[int, str],
    agents: Mapping[str, Agent | External],
    settings: Evaluation,
    seed: int,
) -> pd.DataFrame:
    """Return every policy against every reference and the best heuristic, if given, by the column `mean_slowdown`."""
    rng, loads, there = np.random.default_rng(seed), sorted(results["load"].unique()), set(results["policy"])
    references = {name: dict.fromkeys(loads, name) for name in REFERENCES if name in there}
    references |= {BEST: dict(best)} if best else {}
    starts = {start: agent for agent in agents if (start := START.format(agent=agent)) in there}
    references |= {start: dict.fromkeys(loads, start) for start in starts}
    return comparison(
        *(results, scenario, references, settings, rng, trainings(agents)),
        asked=lambda policy, label: starts.get(label, policy) == policy,
    )


def trainings(agents: Mapping[str, Agent | External]) -> dict[str, list[str]]:
    """Return the agents that differ only by their training seeds, by their common name."""
    same: dict[str, list[str]] = {}
    for name, row in agents.items():
        same.setdefault(row.model_dump_json(exclude={"pretrain": {"seed"}, "finetune": {"seed"}}), []).append(name)
    return {f"{names[0]} ({len(names)} seeds)": names for names in same.values() if len(names) > 1}


def key_metrics(
    summaries: pd.DataFrame,
    comparisons: pd.DataFrame,
    delays: pd.DataFrame,
    objectives: pd.DataFrame,
    agents: Collection[str],
    bounded: Collection[str],
) -> dict[str, Metrics]:
    """Return a few numbers of each scenario for comparing two runs by eye; lower is better.

    Slowdowns and waiting times are means over loads. Only a few heuristics are included: those without parameters
    change only with the workload. The tables are SUMMARY, COMPARISON, DELAY and OBJECTIVES; agents with another
    objective also have its mean. `bounded` are scenarios with bounded slowdown.
    """
    found = {}
    for name, rows in summaries.groupby("scenario"):
        over_all, waits = (of[(of["scenario"] == name) & (of["load"] == ALL)] for of in (comparisons, delays))
        what = "bounded_slowdown" if name in bounded else "slowdown"
        means = rows.groupby("policy")["slowdown"].mean().to_dict()
        shown = [policy for policy in (*REFERENCES, *ALSO_SHOWN) if policy in means]
        policies = {policy: {what: means[policy]} for policy in shown}
        policies[BEST] = {what: over_all.loc[over_all["against"] == BEST, "mean_against"].iloc[0]}
        own = objectives[(objectives["scenario"] == name) & (objectives["load"] == ALL)]
        policies |= {
            agent: _from_references(agent, over_all) | {what: means[agent]} | _trained_for(agent, own, what)
            for agent in agents
            if agent in means
        }
        wait = waits.groupby("against")["mean_against"].first().to_dict()
        wait |= waits.groupby("policy")["mean"].first().to_dict()
        policies = {
            policy: dict(sorted((row | ({"wait": wait[policy]} if policy in wait else {})).items()))
            for policy, row in policies.items()
        }
        found[str(name)] = dict(sorted(policies.items())) | {UNFINISHED: int(rows["unfinished"].sum())}
    return found


def overload_metrics(streams: pd.DataFrame, agents: Collection[str]) -> Metrics:
    """Return the key metrics of an overload from its STREAM_SUMMARY; `agents` are all of them."""
    rows = streams[streams["policy"].isin([*REFERENCES, *ALSO_SHOWN, *agents])].groupby("policy")
    means = rows[["growth", "finished"]].mean().T.to_dict()
    policies = {str(name): {"growth": row["growth"], "finished": row["finished"]} for name, row in means.items()}
    return policies | {UNFINISHED: int(streams["never_started"].sum())}


def _from_references(agent: str, over_all: pd.DataFrame) -> dict[str, float]:
    percent = 100 * over_all[over_all["policy"] == agent].set_index("against")["difference"]
    against = BEST, next(name for name in REFERENCES if name in percent)
    best, other = (round(percent[reference], 2) for reference in against)
    return {"percent_from_best": best, f"percent_from_{against[1]}": other}


def _trained_for(agent: str, own: pd.DataFrame, what: str) -> dict[str, float]:
    """Return an agent's mean by its own objective (except waiting time), and the distance from the first reference.

    The result is empty if the objective is `what`.
    """
    rows = own[(own["policy"] == agent) & own["against"].isin(REFERENCES)]
    if rows.empty:
        return {}
    first = rows.iloc[0]
    measure = str(first["objective"]).replace(" ", "_")
    if measure == what:
        return {}
    gap = {f"{measure}_percent_from_{first['against']}": round(100 * first["difference"], 2)}
    return gap if measure == "delay" else {measure: first["mean"]} | gap


def slowdown_curves(summaries: pd.DataFrame) -> list[dict[str, str | float]]:
    """Return mean slowdown and its interval as records, one per scenario, load and policy, for `dvc plots`."""
    columns = {"slowdown_low": "low", "slowdown_high": "high"}
    rows = summaries.rename(columns=columns)[["scenario", "load", "policy", "slowdown", "low", "high"]]
    return cast("list[dict[str, str | float]]", rows.sort_values(["scenario", "policy", "load"]).to_dict("records"))


def loads_of(
    scenario: str, jobs: pd.DataFrame, capacity: Mapping[str, float], span: float | None, wanted: int
) -> pd.DataFrame:
    """Return LOADS of a scenario: units of jobs times run times, divided by all units times the time of arrivals.

    `jobs` is the stored table, `capacity` is in the units of its demands. The jobs of a jobset arrive within the time
    `span`; None: from the first to the last, plus a mean gap. `wanted` jobsets of each load were requested.
    """
    ends = jobs.groupby(["load", "jobset"])["arrival"].agg(["min", "max", "size"])
    gaps = (ends["size"] - 1).clip(lower=1)
    time_of = (ends["max"] - ends["min"]) * ends["size"] / gaps if span is None else ends["size"] * 0.0 + span
    time, count = time_of.groupby("load").sum(), time_of.groupby("load").size()
    nodes = jobs.get("nodes", 1)
    parts = []
    for name, units in capacity.items():
        held = (jobs["duration"] * nodes * jobs[name]).groupby(jobs["load"]).sum()
        offered = (units * time).where(units * time > 0)
        columns = {"scenario": scenario, "load": count.index, "jobsets": count, "wanted": wanted, "resource": name}
        parts.append(pd.DataFrame({**columns, "percent": 100.0 * held / offered}).reset_index(drop=True))
    return pd.concat(parts, ignore_index=True).sort_values("load", kind="stable")[list(LOADS.columns)]


def loads_markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table of the loads of test jobsets, one row per scenario and load."""
    lines = [
        "**Test jobsets**: how many, and what they ask of each resource. A load by its name is a mean over resources.",
        "",
        "| scenario | load | jobsets | of each resource |",
        "| --- | ---: | ---: | --- |",
    ]
    for (scenario, load), rows in table.groupby(["scenario", "load"], sort=False):
        jobsets, wanted = rows.iloc[0][["jobsets", "wanted"]]
        count = f"{jobsets}" + ("" if jobsets >= wanted else f" of {wanted}")
        asked = (
            f"{name} all at once" if np.isnan(percent) else f"{name} {percent:.0f} %"
            for name, percent in zip(rows["resource"], rows["percent"], strict=True)
        )
        lines.append(f"| {scenario} | {load} | {count} | {', '.join(asked)} |")
    return "\n".join(lines)


def short(table: pd.DataFrame) -> list[str]:
    """Return a line for each scenario and load with fewer test jobsets than requested."""
    few = table[table["jobsets"] < table["wanted"]].drop_duplicates(["scenario", "load"])
    return [
        f"{row.scenario}, load {row.load}: {row.jobsets} test jobsets; {row.wanted} were asked for"
        for row in few.itertuples()
    ]
