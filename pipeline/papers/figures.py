"""All figures of the papers, and the table of what they say."""

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from pipeline.config import Params, Synthetic
from pipeline.papers import deepk8s, durations, learning, loads, objectives, withheld
from pipeline.papers.evidence import Evidence, nearest, samples_of
from pipeline.papers.roles import Roles
from pipeline.papers.verdicts import Claim, Shown, left_open

BY_SETTING = {
    "online": (loads, objectives, learning, durations, withheld),
    "offline": (learning,),
    "machines": (deepk8s,),
}
NOBODY = {
    "DeepRM": "no agent of a scenario with arrivals over time has network mlp and objective slowdown",
    "DeepRM2": "no agent of a scenario with arrivals over time has network cnn and objective slowdown",
    "DeepRM_Off": "no agent of a scenario in which all jobs wait at the start has objective slowdown",
    "Deepk8s": "no agent of an event-driven scenario has objective slowdown",
}


def jobs_needed(roles: Roles, every: Sequence[int]) -> tuple[list[str], Sequence[int]]:
    """Return the policies and loads whose single jobs are looked at."""
    if roles.setting == "machines":
        return deepk8s.looked_at(roles), every
    agents = roles.of("slowdown")
    policies = ["random", withheld.RIVAL, *agents, *map(durations.pretrained, agents)]
    return policies, sorted({nearest(every, load) for load in (durations.LOAD, withheld.LOAD)})


def gathered(
    params: Params,
    roles: Roles,
    results: pd.DataFrame,
    jobs: pd.DataFrame,
    curves: Mapping[str, pd.DataFrame],
    levels: Mapping[str, Mapping[str, float]],
    best: Mapping[int, str],
) -> Evidence:
    """Return the evidence of one scenario.

    Args:
        params: the bootstrap's settings, the seed, and the workload, which says what a long job is.
        roles: of the scenario's agents.
        results: of all its policies on each jobset.
        jobs: results of the single jobs of `jobs_needed`.
        curves: of each agent's finetuning.
        levels: agent -> heuristic -> mean slowdown on validation jobsets of the loads that it was trained on.
        best: the best heuristic at each load, by validation.
    """
    policies, long = list(results["policy"].unique()), long_from(params, jobs["duration"])
    if roles.setting == "machines":
        policies = [policy for policy in policies if policy in deepk8s.looked_at(roles)]
        long = float(jobs["duration"].mean())
        jobs = deepk8s.with_completion_time(jobs)
    else:
        jobs = jobs.assign(held=(jobs["withheld"] > 0).astype(float))
    samples = samples_of(results, policies, params.evaluation, params.seed)
    return Evidence(roles, policies, jobs, curves, levels, best, long, samples, params.evaluation.confidence)


def long_from(params: Params, durations: pd.Series) -> float:
    """Return the steps from which a job is a long one: by the workload's own word, or above the mean of a log."""
    if isinstance(params.workload, Synthetic):
        return float(params.workload.short[1] + 1)
    return float(durations.mean() // 1) + 1 if len(durations) else 1.0


def figures(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of every scenario, and the claims that none of them answers to."""
    modules = [(module, evidence) for evidence in scenarios for module in BY_SETTING[evidence.roles.setting]]
    return [shown for module, evidence in modules for shown in module.shown(evidence)] + _open(scenarios)


def _open(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return the claims that no scenario, or no agent, of params.yaml answers to."""
    settings = {evidence.roles.setting for evidence in scenarios}
    left = []
    if "online" not in settings:
        left += [
            Shown(kind, title, None, left_open(claims, "no scenario has jobs that arrive over time"))
            for kind, title, claims in ONLINE
        ]
    answered = {evidence.roles.paper(agent) for evidence in scenarios for agent in evidence.roles.of("slowdown")}
    left += [
        Shown("learning", "Learning curves", None, left_open(claims, NOBODY[paper]))
        for paper, claims in learning.CLAIMS.items()
        if paper not in answered
    ]
    if "machines" not in settings:
        left += [Shown(kind, title, None, left_open(claims, NOBODY["Deepk8s"])) for kind, title, claims in MACHINES]
    return left


ONLINE: list[tuple[str, str, Sequence[Claim]]] = [
    ("loads", "Mean slowdown against load", loads.CLAIMS),
    ("objectives", "Both objectives at one load", [claim for some in objectives.CLAIMS.values() for claim in some]),
    ("durations", "Slowdown by job length, before and after training", durations.CLAIMS),
    ("withheld", "Withheld jobs", withheld.CLAIMS),
]
MACHINES: list[tuple[str, str, Sequence[Claim]]] = [
    ("deepk8s_slowdown", "Mean slowdown of tasks", deepk8s.OF_SLOWDOWN),
    ("deepk8s_completion", "Mean completion time of tasks", deepk8s.OF_COMPLETION),
    ("deepk8s_learning", "Learning on many machines", deepk8s.OF_LEARNING),
]
ALL = [*(claim for *_, claims in (*ONLINE, *MACHINES) for claim in claims), *chain(*learning.CLAIMS.values())]


def table(found: Sequence[Shown]) -> pd.DataFrame:
    """Return one row for each part of each claim."""
    rows = [
        (shown.figure, shown.title, claim.paper, claim.text, part.text, verdict.word, verdict.found, part.no_if)
        for shown in found
        for claim, part, verdict in shown.verdicts
    ]
    whole = pd.DataFrame(rows, columns=["figure", "title", "paper", "claim", "part", "verdict", "found", "no_if"])
    # Scenarios without a learner leave the same claims open.
    return whole.drop_duplicates(["figure", "paper", "claim", "part"], ignore_index=True)
