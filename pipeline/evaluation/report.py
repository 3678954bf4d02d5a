"""The comparison in words: Markdown tables and one-line findings."""

from collections.abc import Collection, Iterator

import pandas as pd

from pipeline.evaluation.statistics import ALL

MUCH = {"slowdown": "slow", "waiting time": "long"}


def table(comparison: pd.DataFrame, what: str = "slowdown") -> str:
    """Return a Markdown table for each scenario and reference: policies by loads, lowest over all first."""
    scenarios = comparison.groupby("scenario", sort=False)
    return "\n\n".join(
        _table(rows, str(name), str(label), what) for name, rows in scenarios for label in rows["against"].unique()
    )


def headline(comparison: pd.DataFrame, policies: Collection[str], confidence: float) -> list[str]:
    """Return what to say of each policy against each reference: over all loads, and at its best and worst load."""
    chosen = comparison[comparison["policy"].isin(policies)]
    keys = ["scenario", "policy", "against"]
    return [said for _, rows in chosen.groupby(keys, sort=False) for said in _findings(rows, confidence)]


def _table(rows: pd.DataFrame, scenario: str, against: str, what: str) -> str:
    compared = rows[rows["against"] == against]
    loads = list(compared["load"].unique())
    means = rows.drop_duplicates(["policy", "load"]).pivot(index="policy", columns="load", values="mean")
    reference = compared.drop_duplicates("load").set_index("load")["mean_against"]
    if against not in means.index:
        means.loc[against] = reference
    means = means.fillna(reference)  # a policy has no row of its own where it is the reference
    cells = {(row["policy"], row["load"]): _cell(row) for _, row in compared.iterrows()}
    shown = loads if len(loads) > 2 else loads[:1]
    lines = [
        f"**{scenario}**: mean {what} (difference from {against}, ± half its interval). "
        f"Bold: the whole interval is below. †: some jobs unfinished, so at least this {MUCH[what]}.",
        "",
        "| policy | " + " | ".join(load.lstrip("0") for load in shown) + " |",
        "| --- |" + " ---: |" * len(shown),
    ]
    for policy, row in means.sort_values(ALL, kind="stable").iterrows():
        lines.append(f"| {policy} | " + " | ".join(cells.get((policy, at), f"{row[at]:.2f}") for at in shown) + " |")
    return "\n".join(lines)


def _cell(row: pd.Series) -> str:
    half = (row["difference_high"] - row["difference_low"]) / 2
    mark = "**" if row["difference_high"] < 0 else ""
    cut = "†" if row["unfinished"] else ""
    return f"{mark}{row['mean']:.2f}{mark}{cut} ({100 * row['difference']:+.1f} ±{100 * half:.1f} %)"


def _findings(rows: pd.DataFrame, confidence: float) -> Iterator[str]:
    single = rows[rows["load"] != ALL].sort_values("difference", kind="stable")
    if len(single) == 1:
        yield _sentence(single.iloc[0], confidence)
        return
    chosen = pd.concat([rows[rows["load"] == ALL], single.iloc[[0, -1]]])
    for _, row in chosen.iterrows():
        yield _sentence(row, confidence)


def _sentence(row: pd.Series, confidence: float) -> str:
    low, high = row["difference_low"], row["difference_high"]
    ends = (-high, -low) if high < 0 else (low, high)
    span = f"{_side(low)} to {_side(high)}" if low < 0 <= high else " to ".join(f"{100 * end:.1f}" for end in ends)
    where = "over all loads" if row["load"] == ALL else f"at load {int(row['load'])}"
    cut = f"; {row['unfinished']} jobs unfinished, so at least this slow" if row["unfinished"] else ""
    return (
        f"{row['policy']} ({row['scenario']}): mean slowdown {_side(row['difference'], ' %')} {row['against']} {where} "
        f"({100 * confidence:g} % interval {span}, n = {row['n']} jobsets{cut})"
    )


def _side(difference: float, unit: str = "") -> str:
    """Return a relative difference in words.

    >>> _side(-0.271, " %")
    '27.1 % below'
    """
    return f"{100 * abs(difference):.1f}{unit} {'below' if difference < 0 else 'above'}"
