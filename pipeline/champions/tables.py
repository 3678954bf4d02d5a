"""Tables of the gate. They are not among `schemas`, on which training depends."""

import pandera.pandas as pa

from pipeline.schemas.columns import integers, table

RULES = ("better", "load", "tail", "unfinished", "jobsets", "rolled back")

# Each rule on each candidate; a difference is relative to the champion's mean, above 0 is worse.
GATE = table(
    "Gate",
    {
        "scenario": pa.Column(str),
        "champion": pa.Column(str),
        "candidate": pa.Column(str),
        "rule": pa.Column(str, pa.Check.isin(RULES, error=f"one of {', '.join(RULES)}")),
        "load": pa.Column(str),  # "all": over all loads
        "n": integers(0),  # of what is independent: jobsets, or windows
        "difference": pa.Column("float64", nullable=True),
        "high": pa.Column("float64", nullable=True),  # upper end of its one-sided interval
        "p": pa.Column("float64", [pa.Check.ge(0), pa.Check.le(1)], nullable=True),  # Holm's, over the candidates
        "passed": pa.Column(bool),
        "reason": pa.Column(str),
    },
    ["scenario", "candidate", "rule", "load"],
)
