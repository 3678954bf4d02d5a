"""The comparison in words: Markdown tables and one-line findings."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pandas as pd

from pipeline.comparing.comparing import BEST
from pipeline.comparing.resampling import FEW
from pipeline.comparing.statistics import ALL

MUCH = {"slowdown": "slow", "bounded slowdown": "slow", "waiting time": "long"}
# Columns.
OF_STREAMS = ("Mean slowdown", "99th percentile", "Longest wait", "Never started", "Finished", "Utilisation", "Growth")


def document(
    comparison: pd.DataFrame,
    delay: pd.DataFrame,
    first: Sequence[str] = (),
    sections: Sequence[str] = (),
    bounded: Collection[str] = (),
    single: Collection[str] = (),
) -> str:
    """Return all tables as one Markdown text; what there are no rows of is left out.

    Args:
        comparison: COMPARISON.
        delay: DELAY.
        first: Markdown, to stand above.
        sections: Markdown of the problems, to stand below.
        bounded: scenarios whose slowdown is bounded.
        single: scenarios whose best heuristic is one for all loads.
    """
    tables = [*first, table(comparison, bounded=bounded, single=single), table(delay, "waiting time"), *sections]
    return "\n\n".join(filter(None, tables)) + "\n"


def objectives(table: pd.DataFrame) -> str:
    """Return a Markdown table of OBJECTIVES: each agent over all loads, by what it was trained for."""
    lines = [
        "**Agents by what each was trained for**, over all loads of a scenario. n: what is independent, jobsets or "
        "windows of a log. Differences from each reference, with their interval; of n below 10, their range.",
        "",
        "| agent | scenario | trained for | mean | n | difference |",
        "| --- | --- | --- | ---: | ---: | --- |",
    ]
    over = table[table["load"] == ALL]
    for (agent, scenario), rows in over.groupby(["policy", "scenario"], sort=False):
        first, gaps = rows.iloc[0], [f"{row['against']} {gap(row)}" for _, row in rows.iterrows()]
        mean = f"{first['mean']:.2f}{'†' if first['unfinished'] else ''}"
        lines.append(f"| {agent} | {scenario} | {first['objective']} | {mean} | {first['n']} | {'; '.join(gaps)} |")
    return "\n".join(lines) if len(over) else ""


def headlines(
    objectives: pd.DataFrame, comparison: pd.DataFrame, confidence: float, bounded: Collection[str] = ()
) -> list[str]:
    """Return what to say of each agent: by what it was trained for, then, if that is another measure, by slowdown."""
    general = {name: "bounded slowdown" if name in bounded else "slowdown" for name in objectives["scenario"].unique()}
    others = objectives.loc[objectives["objective"] != objectives["scenario"].map(general), "policy"]
    own = headline(objectives, list(objectives["policy"].unique()), confidence)
    return own + headline(comparison, list(others.unique()), confidence, bounded)


def table(
    comparison: pd.DataFrame, what: str = "slowdown", bounded: Collection[str] = (), single: Collection[str] = ()
) -> str:
    """Return a Markdown table for each scenario and reference: policies by loads, lowest over all first."""
    scenarios = comparison.groupby("scenario", sort=False)
    words = {name: f"bounded {what}" if name in bounded else what for name in comparison["scenario"].unique()}
    return "\n\n".join(
        _table(rows, str(name), str(label), words[name], name in single and label == BEST)
        for name, rows in scenarios
        for label in rows["against"].unique()
    )


def headline(
    comparison: pd.DataFrame, policies: Collection[str], confidence: float, bounded: Collection[str] = ()
) -> list[str]:
    """Return what to say of each policy against each reference: over all loads, and at its best and worst load."""
    chosen = comparison[comparison["policy"].isin(policies)]
    keys = ["scenario", "policy", "against"]
    return [line for _, rows in chosen.groupby(keys, sort=False) for line in _findings(rows, confidence, bounded)]


def closing(foreseen: pd.DataFrame, policies: Collection[str], confidence: float) -> list[str]:
    """Return how much of the distance to hindsight policies close over all loads: a sentence a scenario."""
    over = foreseen[foreseen["policy"].isin(policies) & (foreseen["load"] == ALL)]
    return [_closing(rows, str(name), confidence) for name, rows in over.groupby("scenario", sort=False)]


def _closing(rows: pd.DataFrame, scenario: str, confidence: float) -> str:
    about = f"(the best schedules found with all jobs known; {rows['n'].iloc[0]} jobsets)"
    if rows["closes"].isna().all():  # no clear distance: it is the same for all
        return f"Scenario {scenario}: the best heuristic and hindsight do not differ clearly {about}."
    word = f"{100 * confidence:g} % interval "
    parts = [
        f"{row['policy']} closes {_percent(row, 'closes')} % "
        f"({'' if place else word}{_percent(row, 'closes_low')} to {_percent(row, 'closes_high')})"
        for place, (_, row) in enumerate(rows.iterrows())
    ]
    return f"Scenario {scenario}: {listed(parts)} of the distance from the best heuristic to hindsight {about}."


def _percent(row: pd.Series, column: str) -> str:
    return "-" if np.isnan(row[column]) else f"{100 * row[column]:.0f}"


def side(low: float, high: float) -> str:
    """Return where a whole interval of a difference is.

    >>> side(-0.3, -0.1), side(0.1, 0.2), side(-0.1, 0.0)
    ('below', 'above', 'open')
    """
    return "below" if high < 0 else "above" if low > 0 else "open"


def percent(value: float) -> str:
    """Return a relative difference with its sign.

    >>> percent(-0.2871), percent(0.0)
    ('-28.7 %', '+0.0 %')
    """
    return f"{100 * value:+.1f} %"


def span(low: float, high: float) -> str:
    """Return an interval of a relative difference; large ones without a digit that nobody needs.

    >>> span(-0.298, 0.004), span(0.9, 1.285)
    ('-29.8 to +0.4', '+90 to +128')
    """
    digits = 0 if max(abs(low), abs(high)) >= 1 else 1
    return f"{100 * low:+.{digits}f} to {100 * high:+.{digits}f}"


def gap(row: pd.Series) -> str:
    """Return the difference of a comparison, with its interval, in percent."""
    return f"{percent(row['difference'])} ({100 * row['difference_low']:+.1f} to {100 * row['difference_high']:+.1f})"


def relative(row: pd.Series) -> str:
    """Return the same, large differences without a digit that nobody needs."""
    return f"{percent(row['difference'])} ({span(row['difference_low'], row['difference_high'])})"


def listed(parts: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def stream_tables(streams: pd.DataFrame) -> str:
    """Return a Markdown table for each stream and load, lowest slowdown first; of an overload, slowest growth."""
    loads = streams.groupby(["scenario", "load"], sort=False)
    return "\n\n".join("\n".join(_stream(rows, str(name), str(load))) for (name, load), rows in loads)


def _stream(rows: pd.DataFrame, scenario: str, load: str) -> Iterator[str]:
    overload = " An overload: judge by what is finished and by growth." if rows["overload"].iloc[0] else ""
    yield (
        f"**{scenario}**, load {load}: jobs that arrive in the measured steps of {rows['n'].iloc[0]} streams."
        f"{overload} Means over streams with their interval: slowdown, its 99th percentile, the longest wait in steps "
        "(then that of all streams), and in 100 measured steps the jobs that finish and the growth of the jobs "
        "waiting. †: some jobs never started, so at least this slow."
    )
    yield ""
    yield f"| policy | {' | '.join(OF_STREAMS)} |"
    yield "| --- |" + " ---: |" * len(OF_STREAMS)
    for policy, cells in stream_rows(rows):
        yield f"| {policy} | {' | '.join(cells)} |"


def stream_rows(rows: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Return the cells of each policy of one stream at one load, in the order of OF_STREAMS; see `stream_tables`."""
    ordered = rows.sort_values("growth" if rows["overload"].iloc[0] else "slowdown", kind="stable")
    return [(str(row["policy"]), _stream_cells(row)) for _, row in ordered.iterrows()]


def _stream_cells(row: pd.Series) -> list[str]:
    cut = "†" if row["never_started"] else ""
    return [
        _within(row, "slowdown", ".2f", cut),
        _within(row, "p99_slowdown", ".1f", cut),
        f"{_within(row, 'mean_longest_wait', '.0f', cut)}, {row['longest_wait']}",
        str(row["never_started"]),
        _within(row, "finished", ".2f"),
        f"{100 * row['utilisation']:.1f} %",
        _within(row, "growth", "+.2f"),
    ]


def _within(row: pd.Series, name: str, digits: str, mark: str = "") -> str:
    return f"{row[name]:{digits}}{mark} ({row[f'{name}_low']:{digits}} to {row[f'{name}_high']:{digits}})"


def means_of(rows: pd.DataFrame, against: str) -> pd.DataFrame:
    """Return the mean of each policy at each load; a policy has no row of its own where it is the reference."""
    means = rows.drop_duplicates(["policy", "load"]).pivot(index="policy", columns="load", values="mean")
    compared = rows[rows["against"] == against]
    if compared.empty:
        return means
    reference = compared.drop_duplicates("load").set_index("load")["mean_against"]
    if against not in means.index:
        means.loc[against] = reference
    return means.fillna(reference)


def _table(rows: pd.DataFrame, scenario: str, against: str, what: str, single: bool) -> str:
    compared = rows[rows["against"] == against]
    loads = list(compared["load"].unique())
    means = means_of(rows, against)
    few = compared["n"].min() < FEW
    cells = {(row["policy"], row["load"]): _cell(row, few) for _, row in compared.iterrows()}
    shown, n = loads if len(loads) > 2 else loads[:1], compared.drop_duplicates("load").set_index("load")["n"]
    span, whole = ("its range over so few", "range") if few else ("± half its interval", "interval")
    lines = [
        f"**{scenario}**: mean {what} (difference from {against}, {span}). n = {n.iloc[0]}"
        f"{f' at each load, {n[ALL]} over all' if len(loads) > 2 else ''}. "
        f"Bold: the whole {whole} is below. †: some jobs unfinished, so at least this {MUCH[what]}."
        f"{' It is one heuristic for all loads, as no policy knows the load.' if single and len(loads) > 2 else ''}",
        "",
        "| policy | " + " | ".join(load.lstrip("0") for load in shown) + " |",
        "| --- |" + " ---: |" * len(shown),
    ]
    for policy, row in means.sort_values(ALL, kind="stable").iterrows():
        lines.append(f"| {policy} | " + " | ".join(cells.get((policy, at), f"{row[at]:.2f}") for at in shown) + " |")
    return "\n".join(lines)


def _cell(row: pd.Series, few: bool) -> str:
    half = (row["difference_high"] - row["difference_low"]) / 2
    mark = "**" if row["difference_high"] < 0 else ""
    cut = "†" if row["unfinished"] else ""
    shown = gap(row) if few else f"{100 * row['difference']:+.1f} ±{100 * half:.1f} %"
    return f"{mark}{row['mean']:.2f}{mark}{cut} ({shown})"


def _findings(rows: pd.DataFrame, confidence: float, bounded: Collection[str]) -> Iterator[str]:
    single = rows[rows["load"] != ALL].sort_values("difference", kind="stable")
    if len(single) == 1:
        yield _sentence(single.iloc[0], confidence, bounded)
        return
    chosen = pd.concat([rows[rows["load"] == ALL], single.iloc[[0, -1]]])
    for _, row in chosen.iterrows():
        yield _sentence(row, confidence, bounded)


def _sentence(row: pd.Series, confidence: float, bounded: Collection[str]) -> str:
    low, high = row["difference_low"], row["difference_high"]
    ends = (-high, -low) if high < 0 else (low, high)
    span = f"{_side(low)} to {_side(high)}" if low < 0 <= high else " to ".join(f"{100 * end:.1f}" for end in ends)
    where = "over all loads" if row["load"] == ALL else f"at load {int(row['load'])}"
    cut = f"; {row['unfinished']} jobs unfinished, so at least this slow" if row["unfinished"] else ""
    what = row.get("objective", "bounded slowdown" if row["scenario"] in bounded else "slowdown")
    spread = f"{100 * confidence:g} % interval" if row["n"] >= FEW else "range"
    return (
        f"{row['policy']} ({row['scenario']}): mean {what} {_side(row['difference'], ' %')} {row['against']} {where} "
        f"({spread} {span}, n = {row['n']} jobsets{cut})"
    )


def _side(difference: float, unit: str = "") -> str:
    """Return a relative difference in words.

    >>> _side(-0.271, " %")
    '27.1 % below'
    """
    return f"{100 * abs(difference):.1f}{unit} {'below' if difference < 0 else 'above'}"
