"""Tables of ../mutants.md, from mutants.csv: rows of `python -m benchmarks.mutants` with notes."""

from pathlib import Path

import pandas as pd
from layout import table

HERE = Path(__file__).resolve().parent
ADDED = "test added"  # the note on a mutant that no test noticed before
PACKAGES = ("problems", "comparing", "champions", "core/storage", "core/logs", "steering", "tracking")


def rows() -> pd.DataFrame:
    """Return the mutants, with empty cells as empty strings."""
    return pd.read_csv(HERE / "mutants.csv", keep_default_na=False)


def counts() -> str:
    """Return how many mutants of each package the tests notice, before and after the additions."""
    found, lines = rows(), []
    for name in (*PACKAGES, "all"):
        part = found if name == "all" else found[found["path"].str.startswith(f"pipeline/{name}/")]
        killed, added = part["result"].eq("killed"), part["note"].eq(ADDED)
        judged = part["result"].isin(["killed", "equivalent"])
        numbers = [
            len(part),
            *(chosen.sum() for chosen in (killed & ~added, killed & added, judged & ~killed, ~judged)),
        ]
        lines.append([name, *map(str, numbers)])
    return table(["package", "mutants", "noticed", "by an added test", "equivalent", "open"], lines)


TABLES = {"counts": counts}
