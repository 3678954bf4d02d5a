"""The comparison in words: formats of numbers, Markdown tables and one-line findings."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from pipeline.comparing.comparing import BEST
from pipeline.comparing.resampling import FEW
from pipeline.comparing.statistics import ALL

CLOSES = ("closes", "closes_low", "closes_high")
MUCH = {"slowdown": "slow", "bounded slowdown": "slow", "waiting time": "long"}
# Columns of the tables of streams.
OF_STREAMS = ("Mean slowdown", "99th percentile", "Longest wait", "Never started", "Finished", "Utilisation", "Growth")


def side(low: float, high: float) -> str:
    """Return the sign of a whole interval of a difference.

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
    """Return an interval of a relative difference; large ones without a decimal.

    >>> span(-0.298, 0.004), span(0.9, 1.285)
    ('-29.8 to +0.4', '+90 to +128')
    """
    digits = 0 if max(abs(low), abs(high)) >= 1 else 1
    return f"{100 * low:+.{digits}f} to {100 * high:+.{digits}f}"


def gap(row: pd.Series) -> str:
    """Return the difference of a comparison with its interval, in percent."""
    return f"{percent(row['difference'])} ({100 * row['difference_low']:+.1f} to {100 * row['difference_high']:+.1f})"


def relative(row: pd.Series) -> str:
    """Return the same as `gap`, but an interval with large ends without decimals."""
    return f"{percent(row['difference'])} ({span(row['difference_low'], row['difference_high'])})"


def listed(parts: Sequence[str]) -> str:
    """Join words as in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def table_head(columns: Sequence[str]) -> list[str]:
    """Return the two head lines of a Markdown table: policies, then columns of numbers."""
    return [f"| policy | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]


def shown_loads(rows: pd.DataFrame) -> list[str]:
    """Return the loads of a comparison, without `all` if there is only one."""
    loads = list(rows["load"].unique())
    return loads if len(loads) > 2 else loads[:1]


def document(
    comparison: pd.DataFrame,
    delay: pd.DataFrame,
    first: Sequence[str] = (),
    sections: Sequence[str] = (),
    bounded: Collection[str] = (),
    single: Collection[str] = (),
) -> str:
    """Return all tables (COMPARISON, DELAY) as one Markdown text, after the texts `first` and before `sections`.

    `bounded` are scenarios with bounded slowdown, `single` those with one best heuristic for all loads.
    """
    tables = [*first, table(comparison, bounded=bounded, single=single), table(delay, "waiting time"), *sections]
    return "\n\n".join(filter(None, tables)) + "\n"


def objectives(table: pd.DataFrame) -> str:
    """Return a Markdown table of OBJECTIVES: each agent over all loads, by its own objective."""
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
    """Return the findings on each agent: by its own objective and, if that is another measure, by slowdown."""
    general = {name: "bounded slowdown" if name in bounded else "slowdown" for name in objectives["scenario"].unique()}
    others = objectives.loc[objectives["objective"] != objectives["scenario"].map(general), "policy"]
    own = headline(objectives, list(objectives["policy"].unique()), confidence)
    return own + headline(comparison, list(others.unique()), confidence, bounded)


def table(
    comparison: pd.DataFrame, what: str = "slowdown", bounded: Collection[str] = (), single: Collection[str] = ()
) -> str:
    """Return a Markdown table for each scenario and reference: policies by loads, with the lowest mean first."""
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
    """Return the findings on each policy and reference: over all loads, and at its best and worst load."""
    lines = []
    chosen = comparison[comparison["policy"].isin(policies)]
    for _, rows in chosen.groupby(["scenario", "policy", "against"], sort=False):
        single = rows[rows["load"] != ALL].sort_values("difference", kind="stable")
        if len(single) > 1:
            single = pd.concat([rows[rows["load"] == ALL], single.iloc[[0, -1]]])
        lines += [_sentence(row, confidence, bounded) for _, row in single.iterrows()]
    return lines


def closing(foreseen: pd.DataFrame, policies: Collection[str], confidence: float) -> list[str]:
    """Return the share of the distance to hindsight that policies close over all loads, one sentence per scenario."""
    over = foreseen[foreseen["policy"].isin(policies) & (foreseen["load"] == ALL)]
    sentences = []
    for name, rows in over.groupby("scenario", sort=False):
        about = f"(the best schedules found with all jobs known; {rows['n'].iloc[0]} jobsets)"
        if rows["closes"].isna().all():  # no clear distance, for any policy
            sentences.append(f"Scenario {name}: the best heuristic and hindsight do not differ clearly {about}.")
            continue
        parts = []
        for place, (_, row) in enumerate(rows.iterrows()):
            mean, low, high = ("-" if np.isnan(row[c]) else f"{100 * row[c]:.0f}" for c in CLOSES)
            word = "" if place else f"{100 * confidence:g} % interval "
            parts.append(f"{row['policy']} closes {mean} % ({word}{low} to {high})")
        sentences.append(
            f"Scenario {name}: {listed(parts)} of the distance from the best heuristic to hindsight {about}."
        )
    return sentences


def stream_tables(streams: pd.DataFrame) -> str:
    """Return a Markdown table for each stream and load, ordered by slowdown; of an overload, by growth."""
    tables = []
    for (scenario, load), rows in streams.groupby(["scenario", "load"], sort=False):
        overload = " An overload: judge by what is finished and by growth." if rows["overload"].iloc[0] else ""
        about = (
            f"**{scenario}**, load {load}: jobs that arrive in the measured steps of {rows['n'].iloc[0]} streams."
            f"{overload} Means over streams with their interval: slowdown, its 99th percentile, the longest wait in "
            "steps (then that of all streams), and in 100 measured steps the jobs that finish and the growth of the "
            "jobs waiting. †: some jobs never started, so at least this slow."
        )
        body = [f"| {policy} | {' | '.join(cells)} |" for policy, cells in stream_rows(rows)]
        tables.append("\n".join([about, "", *table_head(OF_STREAMS), *body]))
    return "\n\n".join(tables)


def stream_rows(rows: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """Return the cells of each policy of one stream at one load, in the order of OF_STREAMS; see `stream_tables`."""

    def within(row: pd.Series, name: str, digits: str, mark: str = "") -> str:
        return f"{row[name]:{digits}}{mark} ({row[f'{name}_low']:{digits}} to {row[f'{name}_high']:{digits}})"

    found = []
    for _, row in rows.sort_values("growth" if rows["overload"].iloc[0] else "slowdown", kind="stable").iterrows():
        cut = "†" if row["never_started"] else ""
        cells = [
            within(row, "slowdown", ".2f", cut),
            within(row, "p99_slowdown", ".1f", cut),
            f"{within(row, 'mean_longest_wait', '.0f', cut)}, {row['longest_wait']}",
            str(row["never_started"]),
            within(row, "finished", ".2f"),
            f"{100 * row['utilisation']:.1f} %",
            within(row, "growth", "+.2f"),
        ]
        found.append((str(row["policy"]), cells))
    return found


def means_of(rows: pd.DataFrame, against: str) -> pd.DataFrame:
    """Return the mean of each policy at each load, including the reference, which has no rows of its own."""
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
    few, cells = compared["n"].min() < FEW, {}
    for _, row in compared.iterrows():
        half = (row["difference_high"] - row["difference_low"]) / 2
        mark, cut = "**" if row["difference_high"] < 0 else "", "†" if row["unfinished"] else ""
        difference = gap(row) if few else f"{100 * row['difference']:+.1f} ±{100 * half:.1f} %"
        cells[row["policy"], row["load"]] = f"{mark}{row['mean']:.2f}{mark}{cut} ({difference})"
    loads, shown = compared["load"].unique(), shown_loads(compared)
    n = compared.drop_duplicates("load").set_index("load")["n"]
    span, whole = ("its range over so few", "range") if few else ("± half its interval", "interval")
    lines = [
        f"**{scenario}**: mean {what} (difference from {against}, {span}). n = {n.iloc[0]}"
        f"{f' at each load, {n[ALL]} over all' if len(loads) > 2 else ''}. "
        f"Bold: the whole {whole} is below. †: some jobs unfinished, so at least this {MUCH[what]}."
        f"{' It is one heuristic for all loads, as no policy knows the load.' if single and len(loads) > 2 else ''}",
        "",
        *table_head([load.lstrip("0") for load in shown]),
    ]
    for policy, row in means_of(rows, against).sort_values(ALL, kind="stable").iterrows():
        lines.append(f"| {policy} | " + " | ".join(cells.get((policy, at), f"{row[at]:.2f}") for at in shown) + " |")
    return "\n".join(lines)


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
