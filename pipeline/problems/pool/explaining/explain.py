"""What a policy does differently from SJF, and a small tree that does nearly the same."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.comparing.statistics import ALL
from pipeline.config import Params, PoolScenario
from pipeline.core import IntArray, Policy
from pipeline.errors import UserError
from pipeline.explaining.decisions import few, mean_of, outcomes_by, relative
from pipeline.explaining.explain import Explained, Explaining, ExplainRequest, Plans
from pipeline.problems.pool.evaluation.metrics import span_of
from pipeline.problems.pool.evaluation.play import Game, game_of, score
from pipeline.problems.pool.explaining import differences as differing
from pipeline.problems.pool.explaining.differences import effects, importance
from pipeline.problems.pool.explaining.distilling import Named, distil, rules
from pipeline.problems.pool.explaining.figures import figures
from pipeline.problems.pool.explaining.plans import CANDIDATES, tried
from pipeline.problems.pool.explaining.recording import AgentDecisions, record
from pipeline.problems.pool.explaining.tables import CLASSES, DIFFERENCES, EFFECTS, IMPORTANCE, OUTCOMES, WITHHELD
from pipeline.problems.pool.explaining.tree import FEATURES, TREE, TreeCard, tree_policy
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import policy_for
from pipeline.problems.pool.storage import read_jobsets
from pipeline.progress import ProgressCallback
from pipeline.simulation.results import Results, mean_cost

ROUNDS = 2  # in which the tree plays, and the agent says what it would do
ON_TRAINING = 20  # jobsets of each load, at most: the agent is asked in all decisions of every round
ON_VALIDATION = 10  # jobsets of each load, at most: every tree of every round plays them


class Player(NamedTuple):
    """The policy that is explained, and where it plays."""

    policy: Policy
    masked: bool
    scenario: PoolScenario
    seed: int

    def game(self, jobsets: Mapping[int, Sequence[JobSet]], masked: bool) -> tuple[Game, IntArray]:
        """Return jobsets by load as a game, drawn for as when they are scored, and the load of each episode."""
        game, load, _ = game_of(jobsets, Cluster.of(self.scenario), self.scenario.step_limit, self.seed, masked)
        return game, load

    def score(self, policies: Mapping[str, Policy], jobsets: Mapping[int, Sequence[JobSet]]) -> dict[str, Results]:
        """Score policies that keep to the legal actions."""
        row = self.scenario
        return score(policies, jobsets, Cluster.of(row), row.step_limit, self.seed, measured=span_of(row))


def ready(params: Params, scenario: str, asked: ExplainRequest) -> Callable[[ProgressCallback], Explained]:
    """Return what tells what a policy does otherwise than SJF, and the tree that does nearly the same."""
    named = Named(asked.title, scenario)
    player = _player(params, asked.agent, scenario)
    folder, units = storage.jobsets_folder(scenario), player.scenario.resources
    splits = {
        split: few(read_jobsets(folder, split, units), asked.jobsets) for split in ("train", "validation", "test")
    }

    def run(on_progress: ProgressCallback) -> Explained:
        recorded = _recorded(player, splits["test"])
        on_progress(33, f"{len(recorded[0].agent)} decisions")
        card = _distilled(player, splits, asked, named)
        on_progress(67, f"tree of {card.leaves} leaves")
        tables = _tables(params, player, card, recorded, splits["test"])
        frames = {name: frame for name, (frame, _) in tables.items()}
        files = {"tree.json": card.model_dump_json(indent=1, exclude_defaults=True) + "\n", "rules.md": rules(card)}
        lines = summary(named.agent, named.agent + TREE, frames, card)
        return Explained(tables, figures(named.agent, frames), lines, files)

    return run


def _player(params: Params, agent: str, name: str) -> Player:
    scenario = params.pool_scenario(name)
    if scenario.place_ahead:
        raise UserError(
            f"scenario '{name}': expected place_ahead: false, for SJF and a tree start jobs at once; found true"
        )
    if agent not in params.agents:
        return Player(*policy_for(params, agent, scenario, name, Cluster.of(scenario)), scenario, params.seed)
    from pipeline.problems.pool.learning import read_network  # torch: 2 s and 250 MB that a tree does without

    loaded = read_network(params, agent, "policy")
    return Player(loaded.policy, loaded.masked, scenario, params.seed)


def _recorded(player: Player, jobsets: Mapping[int, Sequence[JobSet]]) -> tuple[AgentDecisions, IntArray]:
    game, load = player.game(jobsets, player.masked)
    return record(game, player.policy), load


def _distilled(
    player: Player, splits: Mapping[str, Mapping[int, Sequence[JobSet]]], asked: ExplainRequest, named: Named
) -> TreeCard:
    training, validation = few(splits["train"], ON_TRAINING), few(splits["validation"], ON_VALIDATION)
    train, _ = player.game(training, masked=True)

    def costs(cards: Sequence[TreeCard]) -> list[float]:
        results = player.score({str(k): tree_policy(card) for k, card in enumerate(cards)}, validation)
        return [mean_cost(done, "slowdown") for done in results.values()]

    first, _ = _recorded(player, training)
    sizes = sorted({max(2, asked.leaves * part // 3) for part in (1, 2, 3)})
    return distil(
        first,
        lambda card: record(train, player.policy, tree_policy(card)),
        costs,
        sizes,
        ROUNDS,
        named,
        player.seed,
    )


def _tables(
    params: Params,
    player: Player,
    card: TreeCard,
    recorded: tuple[AgentDecisions, IntArray],
    test: Mapping[int, Sequence[JobSet]],
) -> dict[str, tuple[pd.DataFrame, pa.DataFrameSchema]]:
    agent, tree = card.agent, card.agent + TREE
    row, times = player.scenario, differing.Times(recorded[0])
    rules = {name: HEURISTICS[name] for name in ("sjf", "hold") if name != agent}
    results = score(
        {agent: player.policy}, test, Cluster.of(row), row.step_limit, player.seed, player.masked, measured=span_of(row)
    ) | player.score({tree: tree_policy(card)} | rules, test)
    references = tuple(dict.fromkeys(("sjf", agent)))
    against = outcomes_by(
        "jobs", differing.by_length(results), card.scenario, references, params.evaluation, params.seed
    )
    return {
        "differences": (differing.differences(*recorded), DIFFERENCES),
        "withheld": (differing.withheld(*recorded), WITHHELD),
        "classes": (differing.classes(times), CLASSES),
        "effects": (effects(times), EFFECTS),
        "importance": (importance(card, recorded[0], np.random.default_rng(params.seed)), IMPORTANCE),
        "outcomes": (against, OUTCOMES),
    }


EXPLAINING = Explaining(ready, Plans(tried, CANDIDATES, "a step"))


MOST = 3  # features that are named
ENOUGH = 0.01  # of all times that a job was started or withheld, for a class to be named


def summary(agent: str, tree: str, tables: Mapping[str, pd.DataFrame], card: TreeCard) -> list[str]:
    """Return what the tables of an agent say."""
    lines = [_agreement(agent, tables["differences"]), *_withheld(tables["withheld"], tables["classes"])]
    return [*lines, _tree(tree, tables["importance"], card), _slowdowns(tree, agent, tables["outcomes"])]


def _agreement(agent: str, table: pd.DataFrame) -> str:
    same, void, other = (100 * mean_of(table, name) for name in ("agrees", "withholds", "starts_another"))
    return (
        f"{agent}: of {table['decisions'].sum()} decisions in which a job could start, as SJF in {same:.1f} %, "
        f"none in {void:.1f} %, another job in {other:.1f} %"
    )


def _withheld(table: pd.DataFrame, classes: pd.DataFrame) -> list[str]:
    if not table["withheld"].sum():
        return ["withheld jobs: none"]
    means = {name: mean_of(table, name, "withheld") for name in ("duration", "demand", "shorter_waiting")}
    often = classes[classes["n"] >= ENOUGH * classes["n"].sum()]
    most = often.iloc[int(np.argmax(often["withheld"]))]
    return [
        f"withheld jobs: {means['duration']:.1f} steps long and {means['demand']:.2f} of the cluster wide on average, "
        f"while {means['shorter_waiting']:.1f} shorter ones wait",
        f"withheld most: jobs of {most['duration_from']:g} to {most['duration_to']:g} steps that demand "
        f"{most['demand_from']:g} to {most['demand_to']:g}: {100 * most['withheld']:.0f} % of {most['n']:g} times",
    ]


def _tree(tree: str, table: pd.DataFrame, card: TreeCard) -> str:
    asked = [FEATURES[name] for name in table.loc[table["lost"] > 0, "feature"][:MOST]]
    alike = f"{card.leaves} leaves, decides alike in {100 * float(table['agreement'].iloc[0]):.1f} %"
    return f"{tree}: {alike}; needs most of all: {', '.join(asked) or 'nothing'}"


def _slowdowns(tree: str, agent: str, table: pd.DataFrame) -> str:
    rows = table[(table["jobs"] == "all") & (table["load"] == ALL) & (table["against"] == "sjf")].set_index("policy")
    mean = rows["mean"].to_dict() | {"sjf": float(rows["mean_against"].iloc[0])}
    others = ", ".join(f"{name} {mean[name]:.3f}" for name in dict.fromkeys((agent, "sjf", "hold")))
    return f"{tree}: mean slowdown {mean[tree]:.3f} ({others}); against sjf {relative(rows.loc[[tree]].iloc[0])}"
