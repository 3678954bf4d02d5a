"""What a policy does differently from SJF, and a small tree that does nearly the same."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pandera.pandas as pa

from pipeline import storage
from pipeline.comparing.plots import png
from pipeline.config import Params, PoolScenario
from pipeline.core import IntArray, Policy
from pipeline.errors import UserError
from pipeline.problems.parts import ExplainRequest
from pipeline.problems.pool.evaluation.metrics import span_of
from pipeline.problems.pool.evaluation.play import Game, game_of, score
from pipeline.problems.pool.explaining import differences as differing
from pipeline.problems.pool.explaining.distilling import Named, distil, rules
from pipeline.problems.pool.explaining.effects import effects, importance
from pipeline.problems.pool.explaining.figures import Tables, figures
from pipeline.problems.pool.explaining.plans import explain_plan
from pipeline.problems.pool.explaining.recording import AgentDecisions, record
from pipeline.problems.pool.explaining.stored import TREE, explain_folder
from pipeline.problems.pool.explaining.tables import CLASSES, DIFFERENCES, EFFECTS, IMPORTANCE, OUTCOMES, WITHHELD
from pipeline.problems.pool.explaining.telling import summary
from pipeline.problems.pool.explaining.tree import TreeCard, tree_policy
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import policy_for
from pipeline.problems.pool.storage import read_jobsets
from pipeline.progress import progress, say
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


def explain(params: Params, asked: ExplainRequest) -> None:
    """Write reports/explain/<agent>: tables, figures, and the tree; of a plan, what it tried."""
    if asked.agent in params.plans:
        explain_plan(params, asked.agent, asked.jobsets)
    else:
        _explain_agent(params, asked)


def _explain_agent(params: Params, asked: ExplainRequest) -> None:
    named = Named(asked.title, asked.scenario or params.agent(asked.agent).scenario)
    player = _player(params, asked.agent, named.scenario)
    few = {
        split: _few(named.scenario, player.scenario, split, asked.jobsets) for split in ("train", "validation", "test")
    }
    with progress(f"explain {named.agent}", 3) as advance:
        decisions, load = _recorded(player, few["test"])
        advance(1, f"{len(decisions.agent)} decisions")
        card = _distilled(player, few, asked, named)
        advance(2, f"tree of {card.leaves} leaves")
        tables = _tables(params, player, card, (decisions, load), few["test"])
        advance(3)
    folder = explain_folder(named.agent)
    storage.discard(folder)
    for name, (frame, schema) in tables.items():
        storage.write_table(folder / f"{name}.csv", frame, schema)
    drawn = Tables(*(tables[name][0] for name in Tables._fields))
    for name, figure in figures(named.agent, drawn).items():
        storage.write(folder / f"{name}.png", png(figure))
    storage.write(folder / "tree.json", (card.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())
    storage.write(folder / "rules.md", rules(card).encode())
    for line in summary(named.agent, named.agent + TREE, {name: frame for name, (frame, _) in tables.items()}, card):
        say(line)
    say(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


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


def _few(name: str, scenario: PoolScenario, split: str, most: int) -> dict[int, list[JobSet]]:
    jobsets = read_jobsets(storage.jobsets_folder(name), split, scenario.resources)
    return {load: group[:most] for load, group in jobsets.items()}


def _recorded(player: Player, jobsets: Mapping[int, Sequence[JobSet]]) -> tuple[AgentDecisions, IntArray]:
    game, load = player.game(jobsets, player.masked)
    return record(game, player.policy), load


def _distilled(
    player: Player, few: Mapping[str, Mapping[int, Sequence[JobSet]]], asked: ExplainRequest, named: Named
) -> TreeCard:
    training = {load: group[:ON_TRAINING] for load, group in few["train"].items()}
    train, _ = player.game(training, masked=True)
    validation = {load: group[:ON_VALIDATION] for load, group in few["validation"].items()}

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
    against = differing.outcomes(results, card.scenario, references, params.evaluation, params.seed)
    return {
        "differences": (differing.differences(*recorded), DIFFERENCES),
        "withheld": (differing.withheld(*recorded), WITHHELD),
        "classes": (differing.classes(times), CLASSES),
        "effects": (effects(times), EFFECTS),
        "importance": (importance(card, recorded[0], np.random.default_rng(params.seed)), IMPORTANCE),
        "outcomes": (against, OUTCOMES),
    }
