"""All figures of the papers, and the table of verdicts on their claims."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import Stratum, stratified
from pipeline.core.config import Params, Synthetic
from pipeline.papers import deepk8s, job_lengths, learning, means
from pipeline.papers.evidence import Evidence, nearest
from pipeline.papers.roles import Roles
from pipeline.papers.verdicts import Claim, Shown, left_open

METRICS = ("mean_slowdown", "completion_time", "makespan", "not_work_conserving")
BY_SETTING = {
    "online": (means.loads, means.objectives, learning.shown, job_lengths.durations, job_lengths.withheld),
    "offline": (learning.shown,),
    "machines": (deepk8s.shown,),
}
# Claims without results: figure, title and claims, by setting, with the reason.
MISSING: dict[str, tuple[str, list[tuple[str, str, Sequence[Claim]]]]] = {
    "online": (
        "no scenario has jobs that arrive over time",
        [
            ("loads", "Mean slowdown against load", means.LOAD_CLAIMS),
            ("objectives", "Both objectives at one load", [*chain(*means.OBJECTIVE_CLAIMS.values())]),
            ("durations", "Slowdown by job length, before and after training", job_lengths.DURATIONS),
            ("withheld", "Withheld jobs", job_lengths.WITHHELD),
        ],
    ),
    "machines": (
        "no agent of an event-driven scenario has objective slowdown",
        [
            ("deepk8s_slowdown", "Mean slowdown of tasks", deepk8s.OF_SLOWDOWN),
            ("deepk8s_completion", "Mean completion time of tasks", deepk8s.OF_COMPLETION),
            ("deepk8s_learning", "Learning on many machines", deepk8s.OF_LEARNING),
        ],
    ),
}
NO_AGENT = {
    "DeepRM": "no agent of a scenario with arrivals over time has network mlp and objective slowdown",
    "DeepRM2": "no agent of a scenario with arrivals over time has network cnn and objective slowdown",
    "DeepRM_Off": "no agent of a scenario in which all jobs wait at the start has objective slowdown",
}
ALL = [*(claim for _, rows in MISSING.values() for *_, claims in rows for claim in claims)]
ALL += chain(*learning.CLAIMS.values())


def jobs_needed(roles: Roles, every: Sequence[int]) -> tuple[list[str], Sequence[int]]:
    """Return the policies and loads whose single jobs are needed."""
    if roles.setting == "machines":
        return deepk8s.policies_shown(roles), every
    agents = roles.of("slowdown")
    policies = ["random", job_lengths.RIVAL, *agents, *map(job_lengths.pretrained, agents)]
    wanted = (job_lengths.DURATIONS_LOAD, job_lengths.WITHHELD_LOAD)
    return policies, sorted({nearest(every, load) for load in wanted})


def gathered(
    params: Params,
    roles: Roles,
    results: pd.DataFrame,
    jobs: pd.DataFrame,
    curves: Mapping[str, pd.DataFrame],
    levels: Mapping[str, Mapping[str, float]],
    best: Mapping[int, str],
) -> Evidence:
    """Return the evidence of one scenario, with the resamples that `compare` draws.

    `params` has the settings of the bootstrap, the seed, and the workload, which defines long jobs. `results` has all
    policies, `jobs` those of `jobs_needed`. `levels` has for each agent the heuristics' mean slowdown on validation
    jobsets of its training loads, `best` has the best heuristic at each load, by validation.
    """
    policies, long = list(results["policy"].unique()), long_from(params, jobs["duration"])
    if roles.setting == "machines":
        policies = [policy for policy in policies if policy in deepk8s.policies_shown(roles)]
        long = float(jobs["duration"].mean())
        took = {deepk8s.COMPLETION: jobs["finish"] - jobs["arrival"]}
        jobs = jobs[["policy", "load", "jobset", "duration"]].assign(**took)
    else:
        jobs = jobs.assign(held=(jobs["withheld"] > 0).astype(float))
    settings, samples = params.evaluation, dict[int, dict[str, Stratum]]()
    for metric in (metric for metric in METRICS if metric in results):
        for stratum in stratified(results, policies, settings.resamples, np.random.default_rng(params.seed), metric):
            samples.setdefault(stratum.load, {})[metric] = stratum
    return Evidence(roles, policies, jobs, curves, levels, best, long, samples, settings.confidence)


def long_from(params: Params, durations: pd.Series) -> float:
    """Return the shortest duration, in steps, of a long job: by the workload or, for a log, above the mean."""
    if isinstance(params.workload, Synthetic):
        return float(params.workload.short[1] + 1)
    return float(durations.mean() // 1) + 1 if len(durations) else 1.0


def figures(scenarios: Sequence[Evidence]) -> list[Shown]:
    """Return every figure of every scenario, and the claims without a scenario or agent."""
    found = [shown for evidence in scenarios for draw in BY_SETTING[evidence.roles.setting] for shown in draw(evidence)]
    settings = {evidence.roles.setting for evidence in scenarios}
    answered = {evidence.roles.paper(agent) for evidence in scenarios for agent in evidence.roles.of("slowdown")}
    missing = {
        setting: [Shown(figure, title, None, left_open(claims, why)) for figure, title, claims in rows]
        for setting, (why, rows) in MISSING.items()
        if setting not in settings
    }
    learned = [
        Shown("learning", "Learning curves", None, left_open(claims, NO_AGENT[paper]))
        for paper, claims in learning.CLAIMS.items()
        if paper not in answered
    ]
    return [*found, *missing.get("online", []), *learned, *missing.get("machines", [])]


def table(found: Sequence[Shown]) -> pd.DataFrame:
    """Return one row for each part of each claim."""
    rows = [
        (shown.figure, shown.title, claim.paper, claim.text, part.text, finding.word, finding.found, part.no_if)
        for shown in found
        for claim, part, finding in shown.verdicts
    ]
    whole = pd.DataFrame(rows, columns=["figure", "title", "paper", "claim", "part", "verdict", "found", "no_if"])
    # Scenarios without a learner leave the same claims open.
    return whole.drop_duplicates(["figure", "paper", "claim", "part"], ignore_index=True)
