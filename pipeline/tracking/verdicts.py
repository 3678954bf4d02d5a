"""Verdicts: how far each agent is from the best heuristic of its scenario, by the tables of `compare`."""

from pathlib import Path
from typing import NamedTuple

from pipeline.comparing.comparing import BEST
from pipeline.comparing.statistics import ALL
from pipeline.config import Params

SLOWDOWN, DELAY = "reports/comparison.csv", "reports/delay.csv"
BETTER, WORSE, OPEN = "better", "worse", "not clearly apart"


class Verdict(NamedTuple):
    """An agent's mean over all loads of its scenario, relative to the best heuristic's; below 0 is better."""

    what: str  # slowdown or waiting time
    jobsets: int
    difference: float
    low: float  # of the paired interval
    high: float
    confidence: float

    @property
    def word(self) -> str:
        """Return where the whole interval is."""
        return BETTER if self.high < 0 else WORSE if self.low > 0 else OPEN

    @property
    def short(self) -> str:
        """Return it on half a line.

        >>> Verdict("slowdown", 2000, 0.021, 0.01, 0.032, 0.95).short
        'worse: +2.1 % (+1.0 to +3.2)'
        """
        return f"{self.word}: {100 * self.difference:+.1f} % ({100 * self.low:+.1f} to {100 * self.high:+.1f})"

    @property
    def tags(self) -> dict[str, str]:
        """Return it as tags, which MLflow can search."""
        numbers = {"difference": self.difference, "low": self.low, "high": self.high, "confidence": self.confidence}
        words = {"what": self.what, "jobsets": str(self.jobsets), "word": self.word}
        named = {**words, **{name: f"{number:g}" for name, number in numbers.items()}}
        return {"verdict": self.short, **{f"verdict.{name}": word for name, word in named.items()}}


def verdicts(params: Params, slowdown: Path, delay: Path | None) -> dict[str, Verdict]:
    """Return the verdict on each agent that was compared; waiting time decides where all agents are trained for it.

    Args:
        params: of the comparison.
        slowdown: reports/comparison.csv.
        delay: reports/delay.csv, if there is one.

    Raises:
        ValueError, KeyError: a file is not what `compare` writes.
    """
    import pandas as pd

    tables = {"slowdown": slowdown} | ({"waiting time": delay} if delay else {})
    found: dict[str, Verdict] = {}
    for what, path in tables.items():
        frame = pd.read_csv(path, dtype={"load": str})
        over_all = frame[(frame["load"] == ALL) & (frame["against"] == BEST)]
        for agent, row in params.agents.items():
            goals = {params.judged[name].objective for name in params.agents_of(row.scenario)}
            mine = over_all[(over_all["scenario"] == row.scenario) & (over_all["policy"] == agent)]
            if len(mine) and (what == "slowdown" or goals == {"delay"}):
                middle, low, high = (float(mine[f"difference{end}"].iloc[0]) for end in ("", "_low", "_high"))
                found[agent] = Verdict(what, int(mine["n"].iloc[0]), middle, low, high, params.evaluation.confidence)
    return found
