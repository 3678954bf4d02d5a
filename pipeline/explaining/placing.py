"""What a policy that places jobs does differently from SJF, and a small tree that does nearly the same."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.statistics import ALL
from pipeline.comparing.words import gap
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.explaining import differences as differing
from pipeline.explaining.decisions import few, mean_of, outcomes_by
from pipeline.explaining.distilling import Named, distil, rules
from pipeline.explaining.explain import Explained, Explaining, ExplainRequest, Tried
from pipeline.explaining.figures import PARTS, figures
from pipeline.explaining.recording import Decisions, Play, record
from pipeline.explaining.tables import SCHEMAS
from pipeline.explaining.tree import PLACE, TREE, TreeCard, tree_features, tree_policy, words
from pipeline.lookahead.planner import Planner, SearchResult
from pipeline.progress import ProgressCallback, ShareCallback
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import Turn

ROUNDS = 2  # in which the tree plays, and the agent says what it would do
ON_TRAINING = 20  # jobsets of each load, at most: the agent is asked in all decisions of every round
ON_VALIDATION = 10  # jobsets of each load, at most: every tree of every round plays them
MOST = 3  # features that are named
ENOUGH = 0.01  # of all times that a job was started or withheld, for a class to be named

JobSets = Mapping[int, Sequence[Any]]  # by load, as the problem has them
# A policy, and whether it keeps to the legal actions: moves without a choice are then not asked of it (`masked`).
Agent = tuple[Policy, bool]


class Placing(NamedTuple):
    """What a problem supplies of a scenario in which policies place jobs."""

    policy: Callable[[str], Agent]  # by its name
    read: Callable[[str], JobSets]  # jobsets of a split
    begin: Callable[[JobSets, bool], Play]  # (jobsets, masked)
    score: Callable[[Mapping[str, Policy], JobSets, bool], dict[str, Results]]  # (policies, jobsets, masked)
    rules: Mapping[str, Policy]  # to compare with
    references: Sequence[str]  # of them, those of which differences are given
    unit: str  # of time
    several: bool = False  # are there machines to choose from?


def explaining(placing: Callable[[Params, str], Placing], planning: Callable[[Params, str], Planner]) -> Explaining:
    """Return how a problem explains policies.

    Args:
        placing: (params, scenario) -> what it supplies.
        planning: (params, plan) -> a policy that looks ahead.
    """

    def ready(params: Params, scenario: str, asked: ExplainRequest) -> Callable[[ProgressCallback], Explained]:
        return explained(placing(params, scenario), params, scenario, asked)

    def tried(params: Params, asked: ExplainRequest, on_progress: ShareCallback) -> Tried:
        row = params.plan(asked.agent)
        what = placing(params, row.scenario)
        episodes = what.begin(few(what.read("test"), asked.jobsets), True)
        frame = tried_in(episodes, planning(params, asked.agent), on_progress)
        return Tried(row.base, frame, episodes.load, episodes.number)

    return Explaining(ready, tried)


def tried_in(episodes: Play, plan: Planner, on_progress: ShareCallback) -> pd.DataFrame:
    """Return what a plan tries in some episodes: the columns of CANDIDATES, with the episode for its jobset."""
    parts = list[pd.DataFrame]()
    for _ in plan.play(episodes.simulator, episodes.key, lambda turn, found: parts.append(_candidates(turn, found))):
        on_progress(episodes.started() / len(episodes.jobs.arrival))
    return pd.concat(parts, ignore_index=True)


def _candidates(turn: Turn, found: SearchResult) -> pd.DataFrame:
    """Return a row for each candidate of decisions in which several were tried."""
    (cost, error, futures), (_, slots, machines) = found.values, turn.view.legal.shape
    place, rank = np.nonzero(futures)
    action, jobs = found.action[place, rank], tree_features(turn.view).job[place]
    starts, slot = action < slots * machines, np.minimum(action // machines, slots - 1)
    job = jobs[np.arange(len(place)), slot]
    return pd.DataFrame(
        {
            "episode": turn.rows[place],
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
    what: Placing, params: Params, scenario: str, asked: ExplainRequest
) -> Callable[[ProgressCallback], Explained]:
    """Return what explains a policy in its own play of test jobsets."""
    policy, masked = agent = what.policy(asked.agent)
    splits = {split: few(what.read(split), asked.jobsets) for split in ("train", "validation", "test")}
    named, labels = Named(asked.title, scenario), words(what.unit)

    def run(on_progress: ProgressCallback) -> Explained:
        episodes = what.begin(splits["test"], masked)
        decisions = record(episodes, policy)
        on_progress(33, f"{len(decisions.agent)} decisions")
        card = _distilled(what, agent, splits, asked.leaves, named, params.seed)
        on_progress(67, f"tree of {card.leaves} leaves")
        frames = _counted(decisions, episodes, card, params.seed, what.several)
        frames["outcomes"] = _outcomes(what, agent, card, splits["test"], params)
        files = {
            "tree.json": card.model_dump_json(indent=1, exclude_defaults=True) + "\n",
            "rules.md": rules(card, what.unit, what.several),
        }
        tables = {name: (frame, SCHEMAS[name]) for name, frame in frames.items()}
        lines = summary(frames, card, labels, what.unit)
        return Explained(tables, figures(named.agent, frames, labels), lines, files)

    return run


def _distilled(
    what: Placing, agent: Agent, splits: Mapping[str, JobSets], leaves: int, named: Named, seed: int
) -> TreeCard:
    policy, masked = agent
    training, validation = few(splits["train"], ON_TRAINING), few(splits["validation"], ON_VALIDATION)

    def costs(cards: Sequence[TreeCard]) -> list[float]:
        results = what.score({str(k): tree_policy(card) for k, card in enumerate(cards)}, validation, True)
        return [done.mean for done in results.values()]

    first = record(what.begin(training, masked), policy)
    sizes = sorted({max(2, leaves * part // 3) for part in (1, 2, 3)})
    return distil(
        first,
        lambda card: record(what.begin(training, True), policy, tree_policy(card)),
        costs,
        sizes,
        ROUNDS,
        named,
        seed,
    )


def _counted(decisions: Decisions, episodes: Play, card: TreeCard, seed: int, several: bool) -> dict[str, pd.DataFrame]:
    load, times = episodes.load, differing.Times(decisions)
    return {
        "differences": differing.differences(decisions, load),
        "jobs": differing.jobs(decisions, load),
        **({"machines": differing.machines(decisions, load)} if several else {}),
        "withheld": differing.withheld(decisions, load),
        "classes": differing.classes(times),
        "effects": differing.effects(times),
        "importance": differing.importance(card, decisions, np.random.default_rng(seed)),
    }


def _outcomes(what: Placing, agent: Agent, card: TreeCard, test: JobSets, params: Params) -> pd.DataFrame:
    others = {card.agent + TREE: tree_policy(card)} | {
        name: rule for name, rule in what.rules.items() if name != card.agent
    }
    results = what.score({card.agent: agent[0]}, test, agent[1]) | what.score(others, test, True)
    references = tuple(dict.fromkeys((*what.references, card.agent)))
    return outcomes_by("jobs", differing.by_length(results), card.scenario, references, params.evaluation, params.seed)


def summary(tables: Mapping[str, pd.DataFrame], card: TreeCard, labels: Mapping[str, str], unit: str) -> list[str]:
    """Return what the tables of an agent say."""
    agent, tree = card.agent, card.agent + TREE
    return [
        _agreement(agent, tables["differences"]),
        *_withheld(tables["withheld"], tables["classes"], unit),
        _jobs(tables["jobs"]),
        *([_machines(tables["machines"])] if "machines" in tables else []),
        _tree(tree, tables["importance"], card, labels),
        *(line for name in (agent, tree) if (line := _slowdowns(name, tables["outcomes"]))),
    ]


def _agreement(agent: str, table: pd.DataFrame) -> str:
    rows = table[table["by"] == "load"]
    shares = {words_of: 100 * mean_of(rows, name) for name, (words_of, _) in PARTS.items() if table[name].any()}
    said = ", ".join(f"{words_of} in {share:.1f} %" for words_of, share in shares.items())
    return f"{agent}: of {rows['decisions'].sum()} decisions in which a job could start, {said}"


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
    said = []
    for name in ("fullest", "emptiest"):
        taken, first, chance = (f"{100 * mean_of(table, name + of):.0f} %" for of in ("", "_first", "_by_chance"))
        said.append(f"the {name} in {taken} (the first one would be in {first}, any in {chance})")
    return f"of machines that could take the job it chooses {', '.join(said)}"


def _tree(tree: str, table: pd.DataFrame, card: TreeCard, labels: Mapping[str, str]) -> str:
    asked = [labels[name] for name in table.loc[table["lost"] > 0, "feature"][:MOST]]
    same = f"{card.leaves} leaves, decides in the same way in {100 * float(table['agreement'].iloc[0]):.1f} %"
    return f"{tree}: {same}; needs most of all: {', '.join(asked) or 'nothing'}"


def _slowdowns(name: str, table: pd.DataFrame) -> str:
    """Return the mean slowdown of a policy, and how it differs from each reference; nothing without any."""
    rows = table[(table["jobs"] == ALL) & (table["load"] == ALL) & (table["policy"] == name)].set_index("against")
    said = [f"{other} {row['mean_against']:.3f}: {gap(row)}" for other, row in rows.iterrows()]
    return f"{name}: mean slowdown {rows['mean'].iloc[0]:.3f}; against {', '.join(said)}" if said else ""
