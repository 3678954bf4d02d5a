"""What an agent does differently, in a few lines."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import ALL
from pipeline.problems.pool.explaining.tree import FEATURES, TreeCard

MOST = 3  # features that are named
ENOUGH = 0.01  # of all times that a job was started or withheld, for a class to be named


def summary(agent: str, tree: str, tables: Mapping[str, pd.DataFrame], card: TreeCard) -> list[str]:
    """Return what the tables of an agent say."""
    lines = [_agreement(agent, tables["differences"]), *_withheld(tables["withheld"], tables["classes"])]
    return [*lines, _tree(tree, tables["importance"], card), _slowdowns(tree, agent, tables["outcomes"])]


def _agreement(agent: str, table: pd.DataFrame) -> str:
    weight = table["decisions"] / table["decisions"].sum()
    same, void, other = (
        100 * float((weight * table[name]).sum()) for name in ("agrees", "withholds", "starts_another")
    )
    return (
        f"{agent}: of {table['decisions'].sum()} decisions in which a job could start, as SJF in {same:.1f} %, "
        f"none in {void:.1f} %, another job in {other:.1f} %"
    )


def _withheld(table: pd.DataFrame, classes: pd.DataFrame) -> list[str]:
    total = table["withheld"].sum()
    if not total:
        return ["withheld jobs: none"]
    some = table[table["withheld"] > 0]
    means = {
        name: float((some[name] * some["withheld"]).sum() / total) for name in ("duration", "demand", "shorter_waiting")
    }
    often = classes[classes["n"] >= ENOUGH * classes["n"].sum()]
    most = often.iloc[int(np.argmax(often["withheld"]))]
    return [
        f"withheld jobs: {means['duration']:.1f} steps long and {means['demand']:.2f} of the cluster wide on average, "
        f"while {means['shorter_waiting']:.1f} shorter ones wait",
        f"withheld most: jobs of {most['duration_from']:g} to {most['duration_to']:g} steps that demand "
        f"{most['demand_from']:g} to {most['demand_to']:g}: {100 * most['withheld']:.0f} % of {most['n']:g} times",
    ]


def _tree(tree: str, table: pd.DataFrame, card: TreeCard) -> str:
    asked = [FEATURES[name] for name in table.loc[table["lost"] > 0, "feature"][:MOST]]
    alike = f"{card.leaves} leaves, decides alike in {100 * float(table['agreement'].iloc[0]):.1f} %"
    return f"{tree}: {alike}; needs most of all: {', '.join(asked) or 'nothing'}"


def _slowdowns(tree: str, agent: str, table: pd.DataFrame) -> str:
    rows = table[(table["jobs"] == "all") & (table["load"] == ALL) & (table["against"] == "sjf")].set_index("policy")
    mean = rows["mean"].to_dict() | {"sjf": float(rows["mean_against"].iloc[0])}
    others = ", ".join(f"{name} {mean[name]:.3f}" for name in dict.fromkeys((agent, "sjf", "hold")))
    difference, low, high = (
        100 * float(rows.loc[[tree], name].iloc[0]) for name in ("difference", "difference_low", "difference_high")
    )
    paired = f"against sjf {difference:+.1f} % ({low:+.1f} to {high:+.1f})"
    return f"{tree}: mean slowdown {mean[tree]:.3f} ({others}); {paired}"
