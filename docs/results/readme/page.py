"""Tables of the README: the recommended policy for each situation, and gains that have a catch."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from layout import change, difference, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tables import page  # the folder of all pages

SHOWN = ("online", "offline", "streams", "machines", "machines_steady", "shares")
# Gains over the first rule that are losses against the second one, at some loads or at all (empty).
CATCHES = (
    ("online", "in short runs", "deeprm2", "sjf", "hold_long", ()),
    ("shares", "for user groups", "allocator", "expecting", "undivided", (60, 80)),
)
GAIN = "openb_ppo"


def results() -> str:
    """Return a row for each scenario over all its loads, with the interval of the gain and the longest waits."""
    here, data = page("situations"), page("default")
    params, validation, played = data.repository(), pd.read_csv(data.VALIDATION), pd.read_csv(data.DATA)
    cells = []
    for scenario in SHOWN:
        row = here.recommended(validation, scenario, sorted(params.scenario(scenario).loads))
        rows = data.paired(played, scenario, {row.best, row.runner_up}, row.loads)
        means = rows.groupby("policy")["mean_slowdown"].mean()
        longest = rows.groupby("policy")["longest_wait"].max()
        both = (row.best, row.runner_up)
        cells.append(
            [
                here.situation(params, row),
                here.measure(params, row),
                *(f"`{name}` {here.fine(means[name])}" for name in both),
                here.gap_of(params, rows, row),
                " / ".join(f"{longest[name]:,.0f}" for name in both) if longest.notna().all() else "",
                f"{rows['jobset'].nunique()} x {rows['load'].nunique()}",
            ]
        )
    head = [
        "jobs",
        "measure (lower is better)",
        "policy",
        "runner-up",
        "difference (95 %)",
        "longest wait of both (steps or time units)",
    ]
    return table([*head, "jobsets x loads"], cells, words=4)


def limits() -> str:
    """Return gains that come with costs, that a better rule does not leave, or that other jobs do not confirm."""
    head = ["gain", "measured", "but"]
    return table(head, [*map(_catch, CATCHES), _openb(), *_ahead()], words=3)


def _catch(one: tuple[str, str, str, str, str, tuple[int, ...]]) -> list[str]:
    """Return an agent's gain over a rule, and its difference from a better one."""
    scenario, words, agent, rule, better, some = one
    here, data = page("situations"), page("default")
    params, played = data.repository(), pd.read_csv(data.DATA)
    every = sorted(params.scenario(scenario).loads)

    def against(other: str, loads: list[int], sign: str) -> str:
        rows = data.paired(played, scenario, {agent, other}, loads)
        said = here.gap_of(params, rows, here.Row(scenario, loads, "", agent, other))
        if not said.startswith(sign):
            raise ValueError(f"{agent} against {other}: expected {sign}, found {said}: no longer a gain with a catch")
        return f"{said} against `{other}`" + (f" at {' and '.join(map(str, loads))} %" if loads != every else "")

    return [f"`{agent}` {words}", against(rule, every, "-"), against(better, list(some) or every, "+")]


def _openb() -> list[str]:
    """Return PPO's gain on openb and its costs: its means relative to SJF's, over loads."""
    here = page("deepk8s")
    _, gaps, costs = here.compared("openb")
    said = ", ".join(f"{words} {change(costs[name][GAIN], costs[name]['sjf'])}" for name, words in here.COSTS.items())
    gap = f"{difference(gaps.loc[GAIN])} against `sjf` (n = {gaps['n'][GAIN]:.0f}, one training run)"
    return ["PPO (Deepk8s) on openb, Alibaba's GPU log", gap, said]


def _ahead() -> Iterator[list[str]]:
    """Yield the difference of look-ahead from the best of five rules by RLScheduler's protocol, over logs."""
    here = page("rlscheduler")
    ten, apart = here.ten(), here.played()
    for backfill, words in enumerate(("without backfilling", "with backfilling")):
        cells = [f"`{here.AHEAD}` (smallest area first, looking ahead) on real logs, {words}, against the best rule"]
        sources = (("the ten published sequences", ten), ("sequences that do not overlap", apart))
        for source, logs in ((name, found[backfill]) for name, found in sources):
            others = {log: wide for log, wide in logs.items() if log != here.TUNED}
            counts = f"{len(others)} logs, n = {sum(map(len, others.values()))}"
            cells.append(f"{difference(here.over_logs(others))} on {source} ({counts})")
        yield cells


TABLES = {"results": results, "limits": limits}
