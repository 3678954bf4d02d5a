"""Table of the policy for each situation, its command and measurement: the one that would run.

Policy and runner-up have the lowest means on validation jobsets. The numbers are from confirming jobsets, on which no
choice was made.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from layout import difference, number, table

from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import Params

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tables import page  # the folder of all pages

SHOWN = 3  # policies in a row, if no other is always shown
ALWAYS = ("undivided", "hold_long", "hold_until")  # shown wherever they have results
MANY = 3  # loads; of more, some also have their own rows if they are known
SITUATIONS = {
    "online": "jobs arrive for a while, then the cluster drains (short run)",
    "unknown_load": "a short run, and you do not know the load",
    "streams": "jobs keep arriving (stream)",
    "overload": "more jobs keep arriving than the cluster can finish",
    "offline": "all jobs are known before the first starts",
    "machines": "many machines, in continuous time; arrivals end",
    "machines_steady": "many machines, and jobs keep arriving",
    "shares": "user groups share a cluster",
}
WORDS = {"mean_wait": "wait", "mean_bounded_slowdown": "bounded slowdown", "mean_slowdown": "slowdown"}


class Row(NamedTuple):
    """Row of the table: a scenario at some of its loads, and the policies recommended by validation."""

    scenario: str
    loads: list[int]
    measure: str
    best: str
    runner_up: str


def situations() -> str:
    """Return a row for each scenario over all its loads and, if there are many, rows for some loads."""
    validation, played = pd.read_csv(page("default").VALIDATION), pd.read_csv(page("default").DATA)
    params = page("default").repository()
    rows = [
        recommended(validation, scenario, loads)
        for scenario in validation["scenario"].unique()
        for loads in _loads(params, scenario)
    ]
    head = ["situation", "policy, in `schedule jobs.csv --out plan.csv ...`", "first to runner-up", "gate"]
    return table(
        [*head, "measured, beginning with the first (lower is better)"],
        [_cells(params, played, row) for row in rows],
        words=5,
    )


def _loads(params: Params, scenario: str) -> list[list[int]]:
    """Return the loads of a scenario's rows: all together; if many and known, also the lowest, middle and highest."""
    every, knows = sorted(params.scenario(scenario).loads), getattr(params.scenario(scenario), "known_load", None)
    known = knows is not None and knows(every[0]) is not None
    single = (every[0], every[len(every) // 2 - 1], every[-1]) if len(every) > MANY and known else ()
    return [every, *([load] for load in single)]


def recommended(validation: pd.DataFrame, scenario: str, loads: list[int]) -> Row:
    """Return a scenario's row: the policies with the two lowest means on validation jobsets."""
    rows = validation[(validation["scenario"] == scenario) & validation["load"].isin(loads)]
    means = rows.groupby("policy")["mean"].mean().sort_values(kind="stable")
    return Row(scenario, loads, str(rows["measure"].iloc[0]), str(means.index[0]), str(means.index[1]))


def _cells(params: Params, played: pd.DataFrame, row: Row) -> list[str]:
    shown = {*pd.read_csv(page("default").VALIDATION)["policy"], *ALWAYS}
    rows = page("default").paired(played, row.scenario, shown, row.loads)
    means = rows.groupby("policy")["mean_slowdown"].mean().sort_values(kind="stable")
    wanted = [row.best, row.runner_up, *(name for name in ALWAYS if name in means)]
    listed = dict.fromkeys([*wanted, *means.index[:SHOWN]])
    others = [name for name in listed if name != row.best][: max(SHOWN, len(set(wanted))) - 1]
    others.sort(key=lambda name: float(means[name]))
    if getattr(params.scenario(row.scenario), "overload", False):
        return _overload(params, row, others)
    measured = ", ".join(f"{name} {fine(means[name])}" for name in (row.best, *others)) + _tails(rows, row)
    said = verdict(row.scenario, row.best)
    return [
        situation(params, row),
        f"`{_command(params, row, row.runner_up if said.startswith('refused') else row.best)}`",
        f"`{row.runner_up}`: {gap_of(params, rows, row)}",
        said,
        f"{measure(params, row)}: {measured}",
    ]


def _overload(params: Params, row: Row, others: list[str]) -> list[str]:
    """Return the cells of a scenario judged by growth and by finished jobs, on its test jobsets."""
    kept = pd.read_csv(page("default").ROOT / "reports" / "stream_summary.csv").query("scenario == @row.scenario")
    means = kept[kept["load"].isin(row.loads)].groupby("policy")[["growth", "finished"]].mean()
    each = (
        f"{name} {of['growth']:+.2f}, {of['finished']:.1f}" for name, of in means.loc[[row.best, *others]].iterrows()
    )
    gap = means["growth"][row.best] - means["growth"][row.runner_up]
    loads = f"{row.loads[0]} to {row.loads[-1]} %"
    return [
        situation(params, row),
        f"`{_command(params, row, row.best)}`",
        f"`{row.runner_up}`: growth {gap:+.2f}, no interval",
        verdict(row.scenario, row.best),
        f"growth of the jobs waiting, and (higher is better) jobs finished, in 100 steps, mean of {loads}, "
        f"n = {kept['n'].iloc[0]} test jobsets: {'; '.join(each)}",
    ]


def _tails(rows: pd.DataFrame, row: Row) -> str:
    """Return the 99th percentile and the longest wait of the recommended policy and its runner-up."""
    tails = rows.groupby("policy").agg({"p99": "mean", "longest_wait": "max"}).loc[[row.best, row.runner_up]]
    said = {"p99": [fine(mean) for mean in tails["p99"]]}
    if tails["longest_wait"].notna().all():
        said["longest wait"] = [f"{longest:,.0f}" for longest in tails["longest_wait"]]
    return "".join(f"; {name} {own} ({other})" for name, (own, other) in said.items())


def situation(params: Params, row: Row) -> str:
    """Return a row's situation in words."""
    words = SITUATIONS.get(row.scenario, f"scenario `{row.scenario}`")
    return words if len(row.loads) == len(params.scenario(row.scenario).loads) else f"the same, at {row.loads[0]} %"


def measure(params: Params, row: Row) -> str:
    """Return what a row's numbers are."""
    word, every = WORDS.get(row.measure, row.measure.replace("_", " ")), params.scenario(row.scenario).loads
    if len(row.loads) > 1:
        return f"{word}, mean of {row.loads[0]} to {row.loads[-1]} %"
    return f"{word}, {row.loads[0]} %" if len(every) > 1 else word


def gap_of(params: Params, rows: pd.DataFrame, row: Row) -> str:
    """Return the recommended policy's difference from the runner-up on the same confirming jobsets."""
    two = rows[rows["policy"].isin([row.best, row.runner_up])]
    to = {row.runner_up: dict.fromkeys(row.loads, row.runner_up)}
    rng = np.random.default_rng(params.seed)
    found = comparison(two, row.scenario, to, params.evaluation, rng)
    return difference(found[(found["policy"] == row.best) & (found["load"] == ALL)].iloc[0])


def verdict(scenario: str, policy: str) -> str:
    """Return the gate's verdict on a policy, over all loads of a scenario."""
    rows = pd.read_csv(page("gate").VERDICTS, dtype={"load": str})
    rows = rows[rows["scenario"] == scenario]
    if policy in set(rows["champion"]):
        passed = [name for name, part in rows.groupby("candidate", sort=False) if part["passed"].all()]
        return f"judged against; {', '.join(map(str, passed))} passed" if passed else "stays: no candidate passed"
    own = rows[rows["candidate"] == policy]
    return str(page("gate").verdict(own)) if len(own) else "not judged"


def _command(params: Params, row: Row, policy: str) -> str:
    named = f"models/{policy}" if policy in params.agents else policy
    scenario = params.scenario(row.scenario)
    ends, knows = getattr(scenario, "arrivals_end", None), getattr(scenario, "known_load", None)
    load = knows(row.loads[0]) if knows and len(row.loads) == 1 else None
    options = (f" --load {load:g}" if load else "") + (f" --arrivals-end {ends}" if ends else "")
    return f"--scenario {row.scenario} --policy {named}{options}"


def fine(mean: float) -> str:
    """Return a mean, with more digits if it is near its minimum of 1."""
    return f"{mean:.3f}" if mean < 2 else number(mean)


TABLES = {"situations": situations}
