"""Headline claims of the papers with our verdicts, from reports/papers.csv, which the stage `papers` writes."""

from typing import NamedTuple

import pandas as pd

from pipeline.papers.rules import NO, PARTLY, UNDECIDED, YES

WORDS = {YES: "holds", PARTLY: "holds in part", NO: "does not hold", UNDECIDED: "cannot be checked"}
LESS = 0.375  # reduction of the time per epoch: DeepRM2 section 4.2


class Headline(NamedTuple):
    """Headline and the claims of papers.csv that it summarises."""

    text: str
    claims: tuple[str, ...]  # beginnings of claims


HEADLINES = (
    Headline("DeepRM: slowdown rises with load", ("Mean slowdown rises with load",)),
    Headline("DeepRM: SJF is better than Packer", ("SJF has a lower slowdown than Packer",)),
    Headline("DeepRM: Tetris is better than both", ("Tetris has a lower slowdown than both",)),
    Headline("DeepRM2: SJF is better than Tetris, and both Tetris and Random are high", ("SJF is below Tetris",)),
    Headline("DeepRM2: Tetris and Random cross near 90 %", ("Tetris is below Random at loads under 90 %",)),
    Headline("DeepRM: comparable to all heuristics, often better", ("DeepRM is comparable to",)),
    Headline("DeepRM: better than Tetris at high loads", ("DeepRM has a lower slowdown than Tetris",)),
    Headline("DeepRM: iteration 0 is no better than random", ("Before training, DeepRM",)),
    Headline("DeepRM: better than Tetris by iteration 200, at 70 %", ("After 200 iterations",)),
    Headline("DeepRM: rewards rise and slowdown falls, at 70 %", ("Mean and best return rise",)),
    Headline("DeepRM: the gap between best and mean reward closes by 1,000, at 70 %", ("The gap between best",)),
    Headline("DeepRM: best on the objective trained for, at 130 %", ("At 130 % DeepRM trained",)),
    Headline("DeepRM: Tetris before SJF and Packer on both objectives, at 130 %", ("At 130 % Tetris",)),
    Headline("DeepRM: not work-conserving in 23.4 % of steps, at 110 %", ("At 110 % DeepRM does not conserve",)),
    Headline("DeepRM: withholds almost only long jobs", ("DeepRM withholds almost",)),
    Headline(
        "DeepRM: short jobs far below Tetris's, long jobs above", ("Short jobs have a far", "Long jobs have a higher")
    ),
    Headline("DeepRM2: below DeepRM, which is below SJF, at every load", ("DeepRM2 is below DeepRM",)),
    Headline("DeepRM2: better than DeepRM on both objectives, at 70 %", ("At 70 % DeepRM2",)),
    Headline("DeepRM2: higher return and lower slowdown than DeepRM, at 100 %", ("DeepRM2 ends with",)),
    Headline("DeepRM2: fewer epochs to converge than DeepRM, at 100 %", ("DeepRM2 converges",)),
    Headline("DeepRM_Off: reward to its maximum, slowdown to its minimum", ("The return rises to its maximum",)),
    Headline("DeepRM_Off: below SJF, Tetris and Random", ("DeepRM_Off ends below",)),
)
CURVES = {"Mean and best return rise": "DeepRM, Figure 6", "The gap between best": "DeepRM, Figure 6"}


def headline_table(claims: pd.DataFrame, times: pd.DataFrame, at_70: str) -> str:
    """Return a table of all headlines with our verdicts and findings.

    Args:
        claims: reports/papers.csv, one row per part.
        times: training seconds of each agent.
        at_70: the agent that decides the claims about DeepRM's learning at 70 %.
    """
    lines = ["| | paper | ours | found |", "| ---: | --- | --- | --- |"]
    rows = [(headline.text, *answer(claims, headline, at_70)) for headline in HEADLINES]
    rows.append(("DeepRM2: 37.5 % less time an epoch than DeepRM", *time_of_an_epoch(times)))
    lines += [f"| {k} | {text} | {word} | {found} |" for k, (text, word, found) in enumerate(rows, 1)]
    return "\n".join(lines)


def answer(claims: pd.DataFrame, headline: Headline, at_70: str) -> tuple[str, str]:
    """Return the verdict on a headline (with exceptions, if some parts hold) and the first finding that decides it."""
    parts = pd.concat([_rows(claims, start, at_70) for start in headline.claims])
    decide = parts
    if parts["verdict"].nunique() == 1:
        word = WORDS[parts["verdict"].iloc[0]]
        decide = parts[:1] if parts["verdict"].iloc[0] == YES else parts  # one finding stands for those that agree
    else:
        decide = parts[parts["verdict"] != YES]
        form = "{claim} ({parts})" if parts["claim"].nunique() > 1 else "{parts}"
        words = [
            f"{form.format(claim=claim, parts=', '.join(some))}: {WORDS[verdict]}"
            for (verdict, claim), some in decide.groupby(["verdict", "claim"], sort=False)["part"]
        ]
        word = "; ".join([*words, f"the rest: {WORDS[YES]}"] if len(decide) < len(parts) else words)
    return word, decide["found"].iloc[0].replace("|", "\\|")


def _rows(claims: pd.DataFrame, start: str, at_70: str) -> pd.DataFrame:
    rows = claims[claims["claim"].str.startswith(start)]
    if start in CURVES:  # all curves are judged; the headline is about one agent
        rows = rows[(rows["paper"] == CURVES[start]) & (rows["figure"] == f"learning_{at_70}")]
    if rows.empty:
        raise SystemExit(f"papers.csv has no claim '{start}'")
    return rows


def time_of_an_epoch(times: pd.DataFrame) -> tuple[str, str]:
    """Judge DeepRM2's time an epoch against DeepRM's, for the two agents trained under equal conditions at 100 %."""
    pair = times[(times["load"] == 100) & (times["objective"] == "slowdown") & times["agent"].str.startswith("pair")]
    seconds = dict(zip(pair["network"], pair["seconds_an_update"], strict=True))
    if not seconds.keys() >= {"mlp", "cnn"} or pair["seconds_an_update"].isna().any():
        return WORDS[UNDECIDED], "no times of both"
    change = seconds["cnn"] / seconds["mlp"] - 1
    word = "yes" if change <= -LESS else "no"
    said = f"median of an update at load 100, DeepRM {seconds['mlp']:.3f} s, DeepRM2 {seconds['cnn']:.3f} s"
    return WORDS[
        word
    ], f"{said}: {100 * change:+.0f} %. Ours: both on one core, equal episodes; required: at least 37.5 % less"
