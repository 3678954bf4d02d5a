"""What the gate says of a scenario: who is to be champion, and why; written as reports/gate.json, read by `promote`."""

from collections.abc import Mapping

import pandas as pd
from pydantic import Field

from pipeline.champions.lines import Seat
from pipeline.config import Frozen

FIRST = "the best heuristic on validation jobsets: the scenario had no champion"


class Verdict(Frozen):
    """The verdict on a scenario."""

    champion: Seat | None  # who was judged against; None: there was none, and the best heuristic stood in
    promote: Seat | None = None  # who is to take the place
    stays: str = ""  # who keeps it, where nobody is to take it
    reasons: dict[str, list[str]] = Field(default_factory=dict)  # of each candidate: why it is refused, or may come

    @property
    def line(self) -> str:
        """Return it on one line."""
        if self.promote is None:
            said = "; ".join(f"{name}: {reasons[0]}" for name, reasons in self.reasons.items())
            return f"{self.stays} stays{f' ({said})' if said else ''}"
        before = f" in place of {self.champion.policy}" if self.champion else ""
        return f"{self.promote.policy}{before}: {self.promote.verdict}"


def verdict(rows: pd.DataFrame, champion: Seat | None, incumbent: Seat, seats: Mapping[str, Seat]) -> Verdict:
    """Return who is to be champion: of those who passed every rule, the one that is best over all loads.

    Args:
        rows: GATE of one scenario.
        champion: by its line; None: it has none.
        incumbent: the champion, or who stands in.
        seats: of the candidates.
    """
    reasons = {str(name): _reasons(part) for name, part in rows.groupby("candidate", sort=False)} if len(rows) else {}
    passed = [name for name in reasons if rows.loc[rows["candidate"] == name, "passed"].all()]
    if passed:
        gaps = rows[rows["rule"] == "better"].set_index("candidate")["difference"]
        name = min(passed, key=lambda one: float(gaps[one]))
        said = f"against {incumbent.policy} {'; '.join(reasons[name])}"
        return Verdict(champion=champion, promote=seats[name].model_copy(update={"verdict": said}), reasons=reasons)
    first = incumbent.model_copy(update={"verdict": FIRST}) if champion is None else None
    return Verdict(champion=champion, promote=first, stays=incumbent.policy, reasons=reasons)


def _reasons(rows: pd.DataFrame) -> list[str]:
    """Return why a candidate is refused; of one that is not, what it has shown."""
    failed = rows[~rows["passed"]]
    if len(failed):
        return [str(reason) for reason in failed["reason"]]
    loads = rows[rows["rule"] == "load"]
    worst = loads.sort_values("high").iloc[-1]
    told = rows[rows["rule"].isin(("better", "tail", "jobsets"))]
    order = ["better", "tail", "jobsets"]
    said = [str(reason) for rule in order for reason in told.loc[told["rule"] == rule, "reason"]]
    return [said[0], f"worst load: {worst['reason']}", *said[1:]]
