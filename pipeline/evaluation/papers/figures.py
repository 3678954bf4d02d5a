"""All figures of the papers, and the table of what they say."""

from collections.abc import Mapping, Sequence

import pandas as pd

from pipeline.config import Params, Synthetic
from pipeline.evaluation.papers import durations, learning, loads, objectives, withheld
from pipeline.evaluation.papers.cast import Cast
from pipeline.evaluation.papers.evidence import Evidence, counts_of, nearest
from pipeline.evaluation.papers.verdicts import CANNOT, Shown, Verdict

ONLINE = (loads, objectives, learning, durations, withheld)
OFFLINE = (learning,)


def jobs_needed(cast: Cast, every: Sequence[int]) -> tuple[list[str], list[int]]:
    """Return the policies and loads whose single jobs are looked at."""
    agents = cast.of("slowdown")
    policies = ["random", withheld.RIVAL, *agents, *map(durations.pretrained, agents)]
    return policies, sorted({nearest(every, load) for load in (durations.LOAD, withheld.LOAD)})


def gathered(
    params: Params,
    cast: Cast,
    results: pd.DataFrame,
    jobs: pd.DataFrame,
    curves: Mapping[str, pd.DataFrame],
    levels: Mapping[str, Mapping[str, float]],
    best: Mapping[int, str],
) -> Evidence:
    """Return the evidence of one scenario.

    Args:
        params: the bootstrap's settings, the seed, and the workload, which says what a long job is.
        cast: the scenario's agents.
        results: JobsetResults of all its policies.
        jobs: JobResults of `jobs_needed`.
        curves: of each agent's finetuning.
        levels: agent -> heuristic -> mean slowdown on validation jobsets of the loads that it was trained on.
        best: the best heuristic at each load, by validation.
    """
    counts = counts_of(results, params.evaluation, params.seed)
    confidence = params.evaluation.confidence
    return Evidence(cast, results, jobs, curves, levels, best, long_from(params, jobs["duration"]), counts, confidence)


def long_from(params: Params, durations: pd.Series) -> float:
    """Return the steps from which a job is a long one: by the workload's own word, or above the median of a log."""
    if isinstance(params.workload, Synthetic):
        return float(params.workload.short[1] + 1)
    return float(durations.median()) + 1 if len(durations) else 1.0


def figures(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of every scenario; a kind of scenario that is not there leaves its claims open."""
    found = []
    for evidence in scenarios:
        for module in OFFLINE if evidence.cast.at_once else ONLINE:
            found += module.shown(evidence)
    return found + list(_open(scenarios, found))


def _open(scenarios: Sequence[Evidence], found: Sequence[Shown]) -> list[Shown]:
    """Return claims about learning that no agent of params.yaml answers to."""
    papers = {e.cast.paper(agent) for e in scenarios for agent in e.cast.of("slowdown")}
    left = {paper: claims for paper, claims in learning.CLAIMS.items() if paper not in papers}
    return [
        Shown("learning", f"{paper} while learning", None, [(claim, _nobody(paper)) for claim in claims])
        for paper, claims in left.items()
    ]


def _nobody(paper: str) -> Verdict:
    where = "a scenario in which all jobs wait at the start" if paper == "DeepRM_Off" else "a scenario with arrivals"
    network = {"DeepRM": "network mlp and ", "DeepRM2": "network cnn and "}.get(paper, "")
    return Verdict(f"no agent of {where} has {network}objective slowdown", CANNOT)


def table(found: Sequence[Shown]) -> pd.DataFrame:
    """Return one row for each claim."""
    rows = [
        (shown.figure, shown.title, claim.paper, claim.text, verdict.found, verdict.agrees)
        for shown in found
        for claim, verdict in shown.verdicts
    ]
    return pd.DataFrame(rows, columns=["figure", "title", "paper", "claim", "found", "agrees"])
