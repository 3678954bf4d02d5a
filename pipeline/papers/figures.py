"""All figures of the papers, and the table of what they say."""

from collections.abc import Mapping, Sequence

import pandas as pd

from pipeline.config import Params, Synthetic
from pipeline.papers import deepk8s, deepk8s_learning, durations, learning, loads, objectives, withheld
from pipeline.papers.evidence import Evidence, nearest, samples_of
from pipeline.papers.roles import Roles
from pipeline.papers.verdicts import CANNOT, Claim, Shown, Verdict

BY_SETTING = {
    "online": (loads, objectives, learning, durations, withheld),
    "offline": (learning,),
    "machines": (deepk8s, deepk8s_learning),
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
        return deepk8s.compared(roles), every
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
        policies, long = deepk8s.among(policies, roles), float(jobs["duration"].mean())
        jobs = deepk8s.with_completion_time(jobs)
    samples = samples_of(results, policies, params.evaluation, params.seed)
    return Evidence(roles, policies, jobs, curves, levels, best, long, samples, params.evaluation.confidence)


def long_from(params: Params, durations: pd.Series) -> float:
    """Return the steps from which a job is a long one: by the workload's own word, or above the mean of a log."""
    if isinstance(params.workload, Synthetic):
        return float(params.workload.short[1] + 1)
    return float(durations.mean() // 1) + 1 if len(durations) else 1.0


def figures(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of every scenario, and the claims that none of them answers to."""
    machines = [evidence for evidence in scenarios if evidence.roles.setting == "machines"]
    pools = [evidence for evidence in scenarios if evidence.roles.setting != "machines"]
    return figures_of_pools(pools) + figures_of_machines(machines)


def figures_of_pools(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of pooled clusters; a kind of scenario that is not there leaves its claims open."""
    return _shown(scenarios) + _open(scenarios)


def figures_of_machines(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of many machines; where there is no such scenario, the claims are left open."""
    if scenarios:
        return _shown(scenarios)
    nobody = Verdict(NOBODY["Deepk8s"], CANNOT)
    return [Shown(kind, title, None, [(claim, nobody) for claim in claims]) for kind, title, claims in _machines()]


def _shown(scenarios: Sequence[Evidence]) -> list[Shown]:
    return [
        shown
        for evidence in scenarios
        for module in BY_SETTING[evidence.roles.setting]
        for shown in module.shown(evidence)
    ]


def _open(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return the claims that no scenario, or no agent, of params.yaml answers to."""
    left = []
    if all(evidence.roles.setting == "offline" for evidence in scenarios):
        nowhere = Verdict("no scenario has jobs that arrive over time", CANNOT)
        left += [Shown(kind, title, None, [(claim, nowhere) for claim in claims]) for kind, title, claims in _online()]
    answered = {evidence.roles.paper(agent) for evidence in scenarios for agent in evidence.roles.of("slowdown")}
    for paper, claims in learning.CLAIMS.items():
        if paper not in answered:
            verdicts = [(claim, Verdict(NOBODY[paper], CANNOT)) for claim in claims]
            left.append(Shown("learning", "Learning curves", None, verdicts))
    return left


def _machines() -> list[tuple[str, str, Sequence[Claim]]]:
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
