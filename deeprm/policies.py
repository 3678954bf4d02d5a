"""Policies of the project by name: heuristics, and the networks of model directories."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deeprm.env import game_of
from deeprm.games import Game, GroupsGame, PlacingGame, PoolGame
from deeprm.scenarios import IDS, Scenario
from pipeline.config import known_names
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external


class NamedPolicy(NamedTuple):
    """A policy as the project's simulators ask it: (what it is shown, uniform draws [B]) -> what is done [B]."""

    name: str
    decide: Any

    def __call__(self, view: Any, draws: Any) -> Any:
        """Decide in B episodes."""
        return self.decide(view, draws)


def made(env: Scenario, **settings: Any) -> Game:
    """Return what an id, or a scenario of ./params.yaml, plays."""
    if isinstance(env, str) and env in IDS:
        return game_of(IDS[env], **settings)
    if isinstance(env, str) and env.startswith("deeprm/"):
        raise UserError(f"no environment '{env}'; {known_names(IDS, env)}")
    return game_of("online", env, **settings)


def heuristics_of(game: Game) -> Mapping[str, Any]:
    """Return every heuristic of a problem, untuned, as its simulator asks it."""
    if isinstance(game, PoolGame):
        from pipeline.problems.pool.heuristics.scores import HEURISTICS as POOL

        return POOL
    if isinstance(game, GroupsGame):
        from pipeline.problems.groups.heuristics.tuning import rules_with, untuned

        return rules_with(untuned(game.row.groups), game.cluster, game.configurations)
    from pipeline.problems.machines.heuristics.rules import HEURISTICS as MACHINES

    return MACHINES


def load_policy(name: str | Path, env: Scenario = "deeprm/Pool-v0", **settings: Any) -> NamedPolicy:
    """Return a heuristic by its name, the network of a model directory (which takes torch), or an external policy.

    Args:
        name: of a heuristic as it is without tuning, a folder that a training wrote, or a word of an external policy
            as in params.yaml: `file.py:name`, `module:name`, `model.zip` or `model.onnx`. Its callables are given
            (view, draws), a `pipeline.core.Observation` and uniform numbers [B].
        env: an id, or a scenario of ./params.yaml: whose heuristics, and what the network must fit.
        settings: arguments of the environment.

    Raises:
        UserError: there is no such policy, or it is a network for another cluster.
    """
    game = made(env, **settings)
    known, word = heuristics_of(game), str(name)
    if word in known:
        return NamedPolicy(word, known[word])
    if is_external(word):
        scale = game.scale if isinstance(game, PlacingGame) else None
        return NamedPolicy(word, external(word, game.row, scale))
    if not Path(word).is_dir():
        expected = "expected a heuristic, a model directory or an external policy (a .zip, an .onnx, file.py:name)"
        raise UserError(f"unknown policy '{word}': {expected}; {known_names(known, word)}")
    return NamedPolicy(Path(word).name, _network(word, game))


def _network(folder: str, game: Any) -> Any:
    params, name = game.params, game.name
    if isinstance(game, PoolGame):
        from pipeline.problems.pool.policies import policy_by_name as of_pool

        return of_pool(folder, game.row, name)[0]
    if isinstance(game, GroupsGame):
        from pipeline.problems.groups.evaluation.play import Player
        from pipeline.problems.groups.policies import policy_by_name as of_groups

        return Player(of_groups(folder, params, name))
    from pipeline.problems.machines.policies import policy_by_name as of_machines

    if name not in params.scenarios:
        raise UserError(f"{folder}: networks are not loaded for RLScheduler-v0; use `benchmark rlscheduler`")
    return of_machines(folder, params.machines_scenario(name), game.source.park, name)
