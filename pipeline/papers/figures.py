"""All figures of the papers, and the table of what they say."""

from collections.abc import Mapping, Sequence

import pandas as pd

from pipeline.config import Params, Synthetic
from pipeline.papers import deepk8s, deepk8s_learning, durations, learning, loads, objectives, withheld
from pipeline.papers.cast import Cast
from pipeline.papers.event_evidence import EventEvidence
from pipeline.papers.evidence import Evidence, nearest, samples_of
from pipeline.papers.verdicts import CANNOT, Claim, Shown, Verdict

ONLINE = (loads, objectives, learning, durations, withheld)
OFFLINE = (learning,)
EVENTS = (deepk8s, deepk8s_learning)
NOBODY = {
    "DeepRM": "no agent of a scenario with arrivals over time has network mlp and objective slowdown",
    "DeepRM2": "no agent of a scenario with arrivals over time has network cnn and objective slowdown",
    "DeepRM_Off": "no agent of a scenario in which all jobs wait at the start has objective slowdown",
    "Deepk8s": "no agent of an event-driven scenario has objective slowdown",
}


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
    samples = samples_of(results, params.evaluation, params.seed)
    confidence = params.evaluation.confidence
    return Evidence(cast, results, jobs, curves, levels, best, long_from(params, jobs["duration"]), samples, confidence)


def long_from(params: Params, durations: pd.Series) -> float:
    """Return the steps from which a job is a long one: by the workload's own word, or above the mean of a log."""
    if isinstance(params.workload, Synthetic):
        return float(params.workload.short[1] + 1)
    return float(durations.mean() // 1) + 1 if len(durations) else 1.0


def figures(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of every scenario; a kind of scenario that is not there leaves its claims open."""
    found = []
    for evidence in scenarios:
        for module in OFFLINE if evidence.cast.at_once else ONLINE:
            found += module.shown(evidence)
    return found + _open(scenarios)


def _open(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return the claims that no scenario, or no agent, of params.yaml answers to."""
    left = []
    if all(evidence.cast.at_once for evidence in scenarios):
        nowhere = Verdict("no scenario has jobs that arrive over time", CANNOT)
        left += [Shown(kind, title, None, [(claim, nowhere) for claim in claims]) for kind, title, claims in _online()]
    answered = {evidence.cast.paper(agent) for evidence in scenarios for agent in evidence.cast.of("slowdown")}
    for paper, claims in learning.CLAIMS.items():
        if paper not in answered:
            verdicts = [(claim, Verdict(NOBODY[paper], CANNOT)) for claim in claims]
            left.append(Shown("learning", "Learning curves", None, verdicts))
    return left


def event_figures(scenarios: Sequence[EventEvidence]) -> list[Shown]:
    """Return every figure of every event-driven scenario; where there is none, its claims are left open."""
    if scenarios:
        return [shown for evidence in scenarios for module in EVENTS for shown in module.shown(evidence)]
    nobody = Verdict(NOBODY["Deepk8s"], CANNOT)
    return [Shown(kind, title, None, [(claim, nobody) for claim in claims]) for kind, title, claims in _events()]


def _events() -> list[tuple[str, str, Sequence[Claim]]]:
    return [
        ("deepk8s_slowdown", "Mean slowdown of tasks", deepk8s.OF_SLOWDOWN),
        ("deepk8s_completion", "Mean completion time of tasks", deepk8s.OF_COMPLETION),
        ("deepk8s_learning", "Learning on many machines", deepk8s_learning.CLAIMS),
    ]


def _online() -> list[tuple[str, str, Sequence[Claim]]]:
    both = [claim for claims in objectives.CLAIMS.values() for claim in claims]
    return [
        ("loads", "Mean slowdown against load", loads.CLAIMS),
        ("objectives", "Both objectives at one load", both),
        ("durations", "Slowdown by job length, before and after training", durations.CLAIMS),
        ("withheld", "Withheld jobs", withheld.CLAIMS),
    ]


def table(found: Sequence[Shown]) -> pd.DataFrame:
    """Return one row for each claim."""
    rows = [
        (shown.figure, shown.title, claim.paper, claim.text, verdict.found, verdict.agrees)
        for shown in found
        for claim, verdict in shown.verdicts
    ]
    whole = pd.DataFrame(rows, columns=["figure", "title", "paper", "claim", "found", "agrees"])
    # Scenarios without a learner leave the same claims open.
    return whole.drop_duplicates(["figure", "paper", "claim"], ignore_index=True)
