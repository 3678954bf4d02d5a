"""The gate: whether a candidate may replace the champion, as a pure function of their results and of declared rules.

A candidate must be better over all loads by more than a margin. Its one-sided p-value is the share of paired resamples
in which it is not; Holm's procedure (1979) corrects it for all candidates of the scenario. A candidate must also be
shown not to be worse by more than a margin at any load, nor in the 99th percentile over all loads. There the upper end
of the one-sided interval counts, so an unclear difference is a refusal. All these rules must hold at once, so they need
no correction (Berger 1982). Resamples draw independent units, as in every comparison.

Windows start from an empty cluster, so they cannot show starvation. The champion of a site's scenario therefore follows
the advice, which replays the whole log: no other heuristic may pass, nor may an agent if the gate cannot replay the
advised order.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa
from pydantic import Field

from pipeline.champions.lines import PolicyRef
from pipeline.comparing.statistics import ALL, NOTHING, Stratum, stratified
from pipeline.comparing.words import percent
from pipeline.core.config import Frozen
from pipeline.core.config.evaluation import Gate
from pipeline.core.schemas.columns import integers, table
from pipeline.core.types import FloatArray

RULES = ("better", "load", "tail", "unfinished", "jobsets", "rolled back", "advice")

# A row for each rule and candidate; a difference is relative to the champion's mean; above 0 is worse.
GATE = table(
    "Gate",
    {
        **{column: pa.Column(str) for column in ("scenario", "champion", "candidate")},
        "rule": pa.Column(str, pa.Check.isin(RULES, error=f"one of {', '.join(RULES)}")),
        "load": pa.Column(str),  # "all": over all loads
        "n": integers(0),  # independent units: jobsets, or windows
        "difference": pa.Column("float64", nullable=True),
        "high": pa.Column("float64", nullable=True),  # upper end of its one-sided interval
        "p": pa.Column("float64", [pa.Check.ge(0), pa.Check.le(1)], nullable=True),  # Holm's, for all candidates
        "passed": pa.Column(bool),
        "reason": pa.Column(str),
    },
    ["scenario", "candidate", "rule", "load"],
)
FIRST = "the best heuristic on validation jobsets: the scenario had no champion"
NOT_REPLAYED = "windows from an empty cluster cannot show starvation, and the advice did not replay it on the whole log"
Row = dict[str, str | int | float | bool]


class Trial(NamedTuple):
    """The policies to judge, and the columns of results to use."""

    scenario: str
    champion: str
    candidates: Sequence[str]
    cost: str  # column of the results; less is better
    tail: str
    refused: Mapping[str, str] = {}  # candidates that may not be promoted, with the reason
    advice: Mapping[str, tuple[bool, str]] = {}  # on candidates for a site: whether they may be promoted, and why


class Advised(Frozen):
    """The advice for a site, from replays of its whole log."""

    scenario: str
    verdict: str  # use | equal | undecided | vetoed | stay | missing
    policy: str  # the order to use; "" if the advice is missing
    candidate: str  # the best safe order
    vetoes: dict[str, str]  # by excluded order

    @property
    def line(self) -> str:
        """Return the advice as one line of text."""
        if not self.policy:
            return f"the advice for the site is missing: 'dvc repro advise@{self.scenario}' makes it"
        about = "" if self.verdict in ("use", "stay") else f" ({self.candidate}: {self.verdict})"
        return f"the advice on the whole log: {'use' if self.verdict == 'use' else 'stay with'} {self.policy}{about}"


class Verdict(Frozen):
    """The verdict on a scenario, written to reports/gate.json and read by `promote`."""

    champion: PolicyRef | None  # None: there was none, and the best heuristic took its place
    promote: PolicyRef | None = None  # the new champion
    stays: str = ""  # the champion that stays, if there is no new one
    reasons: dict[str, list[str]] = Field(default_factory=dict)  # of refusal or acceptance, by candidate
    advice: str = Field(default="", exclude_if=lambda said: not said)  # for a site

    @property
    def line(self) -> str:
        """Return the verdict as one line of text."""
        if self.promote is None:
            said = "; ".join(f"{name}: {reasons[0]}" for name, reasons in self.reasons.items())
            found = f"{f'{self.stays} stays' if self.stays else 'no champion'}{f' ({said})' if said else ''}"
        else:
            before = f" in place of {self.champion.policy}" if self.champion else ""
            found = f"{self.promote.policy}{before}: {self.promote.verdict}"
        return found if self.advice in found else f"{found}; {self.advice}"


def by_advice(advice: Advised, candidates: Collection[str], heuristics: Collection[str]) -> dict[str, tuple[bool, str]]:
    """Return whether candidates for a site may be promoted, and why: no heuristic but the advised one may.

    Agents may if the advised order is a heuristic that the gate can replay.
    """
    replay = f"; the gate cannot replay {advice.policy}" if advice.policy else ""
    found = {}
    for name in candidates:
        veto = f"; {name}: {advice.vetoes[name]}" if name in advice.vetoes else ""
        if name not in heuristics:
            known = advice.policy in heuristics
            found[name] = known, NOT_REPLAYED if known else f"{advice.line}{replay}"
        else:
            found[name] = name == advice.policy, f"{advice.line}{veto}"
    return found


def judged(results: pd.DataFrame, trial: Trial, rules: Gate, resamples: int, seed: int) -> pd.DataFrame:
    """Return a row for each rule and candidate.

    `results` are those of champion and candidates on the same jobsets (otherwise ValueError); they have the column
    `unit` if loads share windows. `resamples` and `seed` are those of the paired bootstrap.
    """
    policies = [trial.champion, *trial.candidates]
    part = results[results["policy"].isin(policies)]
    cost, tail = (  # the same seed gives the same resamples
        stratified(part, policies, resamples, np.random.default_rng(seed), column)
        for column in (trial.cost, trial.tail)
    )
    over = [_relative(cost, place) for place in range(1, len(policies))]
    p = holm([float((1 + (gap[1:] >= -rules.margin).sum()) / len(gap)) for gap in over])
    rows = [
        {"scenario": trial.scenario, "champion": trial.champion, "candidate": name, **row}
        for k, name in enumerate(trial.candidates)
        for row in _rows(cost, _relative(tail, k + 1), k + 1, over[k], p[k], rules, trial)
    ]
    return pd.DataFrame(rows)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's procedure.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    found, least = [0.0] * len(p), 0.0
    for rank, place in enumerate(np.argsort(p, kind="stable")):
        least = max(least, min(1.0, (len(p) - rank) * p[place]))
        found[place] = round(least, 12)
    return found


def _relative(strata: Sequence[Stratum], place: int) -> FloatArray:
    """Return a candidate's mean over loads relative to the champion's, minus 1, in the sample and each resample."""
    means = [stratum.means(stratum.score) for stratum in strata]
    together = np.mean(means, axis=0)
    # The mean of differences: between equal results it is exactly 0.
    gap = np.mean([mean[:, place] - mean[:, 0] for mean in means], axis=0)
    return np.asarray(gap / np.maximum(together[:, 0], NOTHING))


def _rows(
    cost: Sequence[Stratum], tail: FloatArray, place: int, over: FloatArray, p: float, rules: Gate, trial: Trial
) -> Iterator[Row]:
    def high(gap: FloatArray) -> float:
        return float(np.quantile(gap[1:], 1 - rules.level))

    def limited(rule: str, where: str, load: str, units: int, gap: FloatArray, margin: float) -> Row:
        text = f"{percent(float(gap[0]))} {where}, at most {percent(high(gap))}; {percent(margin)} is allowed"
        return _row(rule, load, units, high(gap) <= margin, text, difference=float(gap[0]), high=high(gap))

    n, few = min(stratum.units for stratum in cost), rules.needed(trial.scenario)
    name = trial.candidates[place - 1]
    if name in trial.advice:
        yield _row("advice", ALL, n, *trial.advice[name])
    yield _row("jobsets", ALL, n, n >= few, f"{n} independent jobsets a load, {few} are needed")
    if name in trial.refused:
        yield _row("rolled back", ALL, n, False, trial.refused[name])
    text = f"{percent(over[0])} over all loads, p = {p:.2g} that it is not better by more than {rules.margin:.0%}"
    yield _row("better", ALL, n, p <= rules.level, text, difference=float(over[0]), high=high(over), p=p)
    for stratum in cost:
        load, gap = f"{stratum.load:03d}", _relative([stratum], place)
        yield limited("load", f"at {stratum.load} %", load, stratum.units, gap, rules.load_margin)
    yield limited("tail", "in the 99th percentile", ALL, n, tail, rules.tail_margin)
    mine, theirs = (int(sum(stratum.unfinished[k] for stratum in cost)) for k in (place, 0))
    yield _row("unfinished", ALL, n, mine <= theirs, f"{mine} unfinished jobs, the champion's are {theirs}")


def _row(rule: str, load: str, n: int, passed: bool, reason: str, **measured: float) -> Row:
    numbers = {name: measured.get(name, float("nan")) for name in ("difference", "high", "p")}
    return {"rule": rule, "load": load, "n": n, **numbers, "passed": bool(passed), "reason": reason}


def verdict(
    rows: pd.DataFrame,
    champion: PolicyRef | None,
    incumbent: PolicyRef,
    candidates: Mapping[str, PolicyRef],
    first: str = FIRST,
) -> Verdict:
    """Return the verdict: of the candidates that passed every rule, promote the best over all loads.

    `rows` are those of GATE for one scenario. `incumbent` is what the candidates were compared with: the champion of
    champions.yaml or, without one, its substitute. `first` is the reason why the substitute becomes the champion
    if no candidate passes; "" if it does not.
    """
    reasons = {str(name): _reasons(part) for name, part in rows.groupby("candidate", sort=False)} if len(rows) else {}
    passed = [name for name in reasons if rows.loc[rows["candidate"] == name, "passed"].all()]
    if passed:
        gaps = rows[rows["rule"] == "better"].set_index("candidate")["difference"]
        name = min(passed, key=lambda one: float(gaps[one]))
        said = f"against {incumbent.policy} {'; '.join(reasons[name])}"
        promote = candidates[name].model_copy(update={"verdict": said})
        return Verdict(champion=champion, promote=promote, reasons=reasons)
    if first and (champion is None or champion.digest != incumbent.digest):
        promote = incumbent.model_copy(update={"verdict": first})
        return Verdict(champion=champion, promote=promote, stays=incumbent.policy, reasons=reasons)
    return Verdict(champion=champion, stays=champion.policy if champion else "", reasons=reasons)


def _reasons(rows: pd.DataFrame) -> list[str]:
    failed = rows[~rows["passed"]]
    if len(failed):
        return [str(reason) for reason in failed["reason"]]
    loads = rows[rows["rule"] == "load"]
    worst = loads.sort_values("high").iloc[-1]
    order = ["better", "tail", "jobsets", "advice"]
    said = [str(reason) for rule in order for reason in rows.loc[rows["rule"] == rule, "reason"]]
    return [said[0], f"worst load: {worst['reason']}", *said[1:]]
