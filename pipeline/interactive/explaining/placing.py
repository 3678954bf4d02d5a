"""Differences between a policy that places jobs and SJF, and a small tree that imitates the policy."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import gap
from pipeline.core.config import Params
from pipeline.core.types import Policy
from pipeline.interactive.explaining import differences as differing
from pipeline.interactive.explaining import explain
from pipeline.interactive.explaining.decisions import Decisions, Play, few, mean_of, outcomes_by, record, within
from pipeline.interactive.explaining.differences import SCHEMAS
from pipeline.interactive.explaining.distilling import distil, rules
from pipeline.interactive.explaining.explain import Explained, Explaining, ExplainRequest
from pipeline.interactive.explaining.tree import PLACE, TREE, TreeCard, tree_features, tree_policy, words
from pipeline.lookahead.planner import Planner, SearchResult
from pipeline.problems import problem_of
from pipeline.progress import ProgressCallback
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import Turn

ROUNDS = 2  # in which the tree plays, and the agent labels its states
ON_TRAINING = 20  # jobsets of each load, at most: the agent labels all decisions of every round
ON_VALIDATION = 10  # jobsets of each load, at most: every tree of every round plays them
# Limits of the work, in jobs of about one decision each, so that the answer does not depend on a clock.
MOST_JOBS = {"train": 8_000, "validation": 4_000, "test": 20_000}  # of all loads
LONG = 500  # jobs; with longer jobsets, trees are fitted to the agent's own play only
MOST_PLAYED = 8_000  # jobs one after another, over all trees and rounds
MOST = 3  # features that are named
ENOUGH = 0.01  # of all times that a job was started or withheld, for a class to be named

JobSets = Mapping[int, Sequence[Any]]  # by load, in the problem's own type
# A policy, and whether it keeps to the legal actions, so that moves without a choice are skipped (`masked`).
Agent = tuple[Policy, bool]


class Placing(NamedTuple):
    """A problem's functions and data for one scenario in which policies place jobs."""

    policy: Callable[[str], Agent]  # by its name
    begin: Callable[[JobSets, bool], Play]  # (jobsets, masked)
    score: Callable[[Mapping[str, Policy], JobSets, bool], dict[str, Results]]  # (policies, jobsets, masked)
    rules: Mapping[str, Policy]  # to compare with
    references: Sequence[str]  # rules to which differences are reported
    unit: str  # of time
    several: bool = False  # are there several machines?


def explaining(placing: Callable[[Params, str], Placing], planning: Callable[[Params, str], Planner]) -> Explaining:
    """Return how a problem explains policies.

    Args:
        placing: (params, scenario) -> the problem's functions and data.
        planning: (params, plan) -> a policy with look-ahead.
    """

    def ready(params: Params, scenario: str, request: ExplainRequest) -> Callable[[ProgressCallback], Explained]:
        if request.agent in params.plans:
            return partial(tried, params, request.agent, request.jobsets)
        return explained(placing(params, scenario), params, scenario, request)

    def tried(params: Params, plan: str, most: int, on_progress: ProgressCallback) -> Explained:
        row = params.plan(plan)
        what = placing(params, row.scenario)
        episodes, parts = what.begin(few(_reader(params, row.scenario)("test"), most), True), list[pd.DataFrame]()
        planner = planning(params, plan)
        simulator, key = episodes.simulator, episodes.key
        for _ in planner.play(simulator, key, lambda turn, found: parts.append(_tried(episodes, turn, found))):
            on_progress(100 * simulator.started / len(episodes.jobs.arrival), "")
        frame = pd.concat(parts).sort_values(["load", "jobset", "decision", "rank"], ignore_index=True)
        lines = explain.candidates_in_words(plan, row.base, frame)
        return Explained({"candidates": (frame, explain.CANDIDATES)}, {}, lines)

    return Explaining(ready)


def _reader(params: Params, scenario: str) -> Callable[[str], JobSets]:
    """Return the function that reads the jobsets of a split."""
    return problem_of(params, scenario).scoring(params, scenario, None).read


def _tried(episodes: Play, turn: Turn, found: SearchResult) -> pd.DataFrame:
    """Return CANDIDATES: a row for each candidate in decisions with several candidates."""
    (cost, error, futures), (_, slots, machines) = found.values, turn.view.legal.shape
    place, rank = np.nonzero(futures)
    action, jobs = found.action[place, rank], tree_features(turn.view).job[place]
    starts, slot = action < slots * machines, np.minimum(action // machines, slots - 1)
    job = jobs[np.arange(len(place)), slot]
    return pd.DataFrame(
        {
            "load": episodes.load[turn.rows[place]],
            "jobset": episodes.number[turn.rows[place]],
            "decision": turn.decision[place],
            "now": turn.view.now[place].astype(float),
            "rank": rank,
            "duration": np.where(starts, job[:, PLACE["duration"]], 0.0),
            "demand": np.where(starts, job[:, PLACE["demand"]], 0.0),
            "machine": np.where(starts, action % machines, 0),
            "gain": cost[place, 0] - cost[place, rank],
            "error": np.where(np.isinf(error), np.nan, error)[place, rank],
            "futures": futures[place, rank],
            "taken": action == found.chosen[place],
        }
    )


def explained(
    what: Placing, params: Params, scenario: str, request: ExplainRequest
) -> Callable[[ProgressCallback], Explained]:
    """Return a function that explains a policy by its own decisions on test jobsets."""
    agent = what.policy(request.agent)
    read = _reader(params, scenario)
    every = {split: read(split) for split in MOST_JOBS}
    splits = {split: within(some, request.jobsets, MOST_JOBS[split]) for split, some in every.items()}
    labels = words(what.unit)

    def run(on_progress: ProgressCallback) -> Explained:
        episodes = what.begin(splits["test"], agent[1])
        decisions = record(episodes, agent[0])
        on_progress(33, f"{len(decisions.agent)} decisions")
        named = {"agent": request.title, "scenario": scenario}
        card = _tree(what, agent, splits, request.leaves, named, params.seed)
        on_progress(67, f"tree of {card.leaves} leaves")
        load, times = episodes.load, differing.Times(decisions)
        frames = {
            "differences": differing.differences(decisions, load),
            "jobs": differing.jobs(decisions, load),
            **({"machines": differing.machines(decisions, load)} if what.several else {}),
            "withheld": differing.withheld(decisions, load),
            "classes": differing.classes(times),
            "effects": differing.effects(times),
            "importance": differing.importance(card, decisions, np.random.default_rng(params.seed)),
            "outcomes": _outcomes(what, agent, card, splits["test"], params),
        }
        files = {
            "tree.json": card.model_dump_json(indent=1, exclude_defaults=True) + "\n",
            "rules.md": rules(card, what.unit, what.several),
        }
        tables = {name: (frame, SCHEMAS[name]) for name, frame in frames.items()}
        lines = [*summary(frames, card, labels, what.unit), _data(every["test"], splits["test"])]
        drawn = explain.figures(card.agent, frames, labels)
        on_progress(100, "")
        return Explained(tables, drawn, lines, files)

    return run


def _tree(
    what: Placing, agent: Agent, splits: Mapping[str, JobSets], leaves: int, named: Mapping[str, str], seed: int
) -> TreeCard:
    policy, masked = agent
    training, validation = few(splits["train"], ON_TRAINING), few(splits["validation"], ON_VALIDATION)

    def label(card: TreeCard) -> Decisions:
        return record(what.begin(training, True), policy, tree_policy(card))

    def costs(cards: Sequence[TreeCard]) -> list[float]:
        results = what.score({str(k): tree_policy(card) for k, card in enumerate(cards)}, validation, True)
        return [done.mean for done in results.values()]

    first = record(what.begin(training, masked), policy)
    sizes = sorted({max(2, leaves * part // 3) for part in (1, 2, 3)})
    longest = max(len(jobs.arrival) for some in validation.values() for jobs in some)
    rounds = 0 if longest > LONG else ROUNDS
    most = max(1, MOST_PLAYED // ((rounds + 1) * max(longest, 1)))
    return distil(first, label, costs, sizes, rounds, named, seed, most)


def _outcomes(what: Placing, agent: Agent, card: TreeCard, jobsets: JobSets, params: Params) -> pd.DataFrame:
    policy, masked = agent
    others = {card.agent + TREE: tree_policy(card)}
    others |= {name: rule for name, rule in what.rules.items() if name != card.agent}
    results = what.score({card.agent: policy}, jobsets, masked) | what.score(others, jobsets, True)
    about = card.scenario, tuple(dict.fromkeys((*what.references, card.agent))), params.evaluation, params.seed
    return outcomes_by("jobs", differing.by_length(results), *about)


def _data(every: JobSets, used: JobSets) -> str:
    """Return how much data an explanation is based on."""
    many, some = (max(map(len, jobsets.values())) for jobsets in (every, used))
    jobs = sum(len(one.arrival) for group in used.values() for one in group)
    return f"based on {some} of {many} test jobsets of each load, with {jobs:,} jobs in all"


def summary(tables: Mapping[str, pd.DataFrame], card: TreeCard, labels: Mapping[str, str], unit: str) -> list[str]:
    """Return the main results of an agent's tables as lines."""
    agent, tree, table = card.agent, card.agent + TREE, tables["differences"]
    rows, most = table[table["by"] == "load"], tables["importance"]
    shares = {label: 100 * mean_of(rows, name) for name, (label, _) in explain.PARTS.items() if table[name].any()}
    parts = ", ".join(f"{label} in {share:.1f} %" for label, share in shares.items())
    used = [labels[name] for name in most.loc[most["lost"] > 0, "feature"][:MOST]]
    same = f"{card.leaves} leaves, decides in the same way in {100 * float(most['agreement'].iloc[0]):.1f} %"
    return [
        f"{agent}: of {rows['decisions'].sum()} decisions in which a job could start, {parts}",
        *_withheld(tables["withheld"], tables["classes"], unit),
        _jobs(tables["jobs"]),
        *([_machines(tables["machines"])] if "machines" in tables else []),
        f"{tree}: {same}; needs most of all: {', '.join(used) or 'nothing'}",
        *(line for name in (agent, tree) if (line := _slowdowns(name, tables["outcomes"]))),
    ]


def _withheld(table: pd.DataFrame, classes: pd.DataFrame, unit: str) -> list[str]:
    if not table["withheld"].sum():
        return ["withheld jobs: none"]
    means = {name: mean_of(table, name, "withheld") for name in ("duration", "demand", "shorter_waiting")}
    often = classes[classes["n"] >= ENOUGH * classes["n"].sum()]
    most = often.iloc[int(np.argmax(often["withheld"]))]
    return [
        f"withheld jobs: {means['duration']:.1f} {unit} long and {means['demand']:.2f} of the cluster wide on average, "
        f"while {means['shorter_waiting']:.1f} shorter ones wait",
        f"withheld most: jobs of {most['duration_from']:g} to {most['duration_to']:g} {unit} that demand "
        f"{most['demand_from']:g} to {most['demand_to']:g}: {100 * most['withheld']:.0f} % of {most['n']:g} times",
    ]


def _jobs(table: pd.DataFrame) -> str:
    if not table["decisions"].sum():
        return "another job than SJF's: never"
    ratio = mean_of(table, "duration") / mean_of(table, "duration_sjf")
    return (
        f"the other job is longer ({ratio:.1f} times, by medians), smaller in {100 * mean_of(table, 'smaller'):.0f} % "
        f"and has waited longer in {100 * mean_of(table, 'waited_longer'):.0f} %"
    )


def _machines(table: pd.DataFrame) -> str:
    if not table["decisions"].sum():
        return "machines: never a choice between some that are not equally full"
    parts = []
    for name in ("fullest", "emptiest"):
        taken, first, chance = (f"{100 * mean_of(table, name + of):.0f} %" for of in ("", "_first", "_by_chance"))
        parts.append(f"the {name} in {taken} (the first one would be in {first}, any in {chance})")
    return f"of machines that could take the job it chooses {', '.join(parts)}"


def _slowdowns(name: str, table: pd.DataFrame) -> str:
    """Return a policy's mean slowdown and its difference from each reference; empty without references."""
    rows = table[(table["jobs"] == ALL) & (table["load"] == ALL) & (table["policy"] == name)].set_index("against")
    parts = [f"{other} {row['mean_against']:.3f}: {gap(row)}" for other, row in rows.iterrows()]
    return f"{name}: mean slowdown {rows['mean'].iloc[0]:.3f}; against {', '.join(parts)}" if parts else ""
