"""A policy on the test jobsets next to every heuristic: paired differences with their intervals."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from deeprm.games import Game, GroupsGame, Jobs, MachinesGame, Observations, PlacingGame, PoolGame
from deeprm.policies import NamedPolicy, heuristics_of, load_policy, made
from deeprm.scenarios import Scenario
from pipeline.comparing.statistics import ALL, comparison
from pipeline.config import known_names
from pipeline.core import SPLITS, BoolArray, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.simulation.results import Results, best_of, best_single, slowdown_column

BEST = "best_heuristic"  # at each load, chosen on validation jobsets
CHANCE = ("random", "oracle", "undivided")  # references, not policies to run: never the best heuristic


class Evaluation(NamedTuple):
    """What a policy achieved, and how it compares."""

    name: str  # of the policy
    scenario: str
    jobsets: pd.DataFrame  # metrics of each jobset, of all policies
    comparison: pd.DataFrame  # of the policy with each heuristic and BEST, by load and over all; as comparison.csv
    illegal: int = 0  # actions of the policy that became void

    @property
    def markdown(self) -> str:
        """Return a Markdown table over all loads, the closest rival first."""
        rows = self.comparison[self.comparison["load"] == ALL].sort_values("mean_against")
        lines = [f"| {self.name} on {self.scenario} | its mean | difference |", "| --- | ---: | --- |"]
        for row in rows.to_dict("records"):
            gap, low, high = (100 * row[f"difference{end}"] for end in ("", "_low", "_high"))
            interval = f"{gap:+.1f} % ({low:+.1f} to {high:+.1f})"
            lines.append(f"| {row['against']} | {row['mean_against']:.3f} | {interval} |")
        mean, unfinished = rows["mean"].iloc[0], int(rows["unfinished"].iloc[0])
        lines.append(f"\nMean {mean:.3f}, {unfinished} jobs unfinished; below 0 %: better than the heuristic.")
        if self.illegal:
            lines[-1] += f" {self.illegal} illegal actions became void."
        return "\n".join(lines)


def evaluate(
    policy: Any,
    env: Scenario = "deeprm/Pool-v0",
    split: str = "test",
    jobsets: int | None = None,
    load: int | None = None,
    name: str = "policy",
    **settings: Any,
) -> Evaluation:
    """Play a policy on a split's jobsets, and compare it with every heuristic (untuned) on the same ones.

    Slowdown is compared; in real time, bounded slowdown. Intervals are those of a paired bootstrap over jobsets.

    Args:
        policy: a callable (observations, masks [B, A]) -> actions [B]; a model of Stable-Baselines3; what `load_policy`
            returns, or a word that it takes. Observations are the environment's, B at once.
        env: an id, or a scenario of ./params.yaml by name.
        split: train, validation or test.
        jobsets: how many of each load, at most; None: all.
        load: the only one that is played, in percent; None: all of the scenario's.
        name: what the policy is called.
        settings: arguments of the environment.

    Raises:
        UserError: an argument is wrong, or the policy raises, or answers what is not an action.
    """
    if split not in SPLITS:
        raise UserError(f"split: expected one of {', '.join(SPLITS)}, got '{split}'")
    if jobsets is not None and jobsets < 1:
        raise UserError(f"jobsets: expected 1 or more, got {jobsets}")
    game = made(env, **settings)
    if load not in (None, *game.loads):
        raise UserError(f"load: expected one of {', '.join(map(str, game.loads))}, got {load}")
    heuristics = heuristics_of(game)
    if name in (*heuristics, BEST):
        raise UserError(f"name: '{name}' is a heuristic's; choose another, so that both can be told apart")
    known = load_policy(policy, env, **settings) if isinstance(policy, str) else policy
    asked = None if isinstance(known, NamedPolicy) else _Asked(known, game, name)
    mine = known.decide if asked is None else asked.playing
    results = _scored(game, {name: mine, **heuristics}, _some(game.split(split), jobsets, load))
    chosen = {word: each for word, each in heuristics.items() if word not in CHANCE}
    examined = _scored(game, chosen, _some(game.split("validation"), jobsets, load))
    best = best_of(examined) if getattr(game.row, "tell_load", True) else best_single(examined)
    table = pd.concat([done.jobsets for done in results.values()], ignore_index=True)
    loads = sorted(table["load"].unique())
    references: dict[str, Mapping[int, str]] = {word: dict.fromkeys(loads, word) for word in heuristics}
    references[BEST] = best
    shown, rng = table.assign(mean_slowdown=table[slowdown_column(table)]), np.random.default_rng(game.params.seed)
    about = (shown, game.name, references, game.params.evaluation, rng)
    compared = comparison(*about, asked=lambda who, _: who == name)
    return Evaluation(name, game.name, table, compared, asked.illegal if asked else 0)


def _some(jobsets: Mapping[int, Sequence[Jobs]], most: int | None, only: int | None) -> dict[int, Sequence[Jobs]]:
    return {load: group[:most] for load, group in jobsets.items() if only in (None, load)}


def _scored(game: Game, policies: Mapping[str, Any], jobsets: Mapping[int, Sequence[Jobs]]) -> dict[str, Results]:
    """Let policies play jobsets by the rules of the pipeline's own comparison."""
    seed = game.params.seed
    if isinstance(game, PoolGame):
        from pipeline.problems.pool.evaluation.metrics import span_of
        from pipeline.problems.pool.evaluation.play import score as score_pool

        return score_pool(policies, jobsets, game.cluster, game.row.step_limit, seed, measured=span_of(game.row))
    if isinstance(game, GroupsGame):
        from pipeline.problems.groups.evaluation.play import score as score_groups

        return score_groups(policies, jobsets, game.cluster, seed)
    from pipeline.problems.machines.evaluation.play import score as score_machines

    if not isinstance(game, MachinesGame):
        raise TypeError(f"no score for {type(game).__name__}")
    return score_machines(policies, jobsets, game.machines, seed)


class _Asked:
    """A user's policy as the problem's simulator asks one."""

    def __init__(self, policy: Any, game: Game, name: str) -> None:
        self.illegal = 0  # actions so far
        self._game, self._name = game, name
        self._model = None
        if hasattr(getattr(policy, "policy", None), "obs_to_tensor") and isinstance(game, PlacingGame):
            from pipeline.external.models import of_sb3

            self._model = of_sb3(policy, game.scale, getattr(game.row, "backlog", 0))
        else:
            self._answer = _answering(policy, name)

    @property
    def playing(self) -> Any:
        """Return the policy as its problem's comparison takes it."""
        if not isinstance(self._game, GroupsGame):
            return self.decide
        from pipeline.problems.groups.evaluation.play import Player, controlled

        return Player(controlled(self.decide))

    def decide(self, view: Any, draws: FloatArray) -> Any:
        """Decide in B episodes; illegal actions become void, as in the environment.

        Raises:
            UserError: the policy raises, or says what is no action.
        """
        try:
            if self._model is not None:
                return self._model(view, draws)
            seen, masks = self._game.features(view)
            given = self._answer(seen, masks)
        except Exception as error:
            said = f"policy '{self._name}': {type(error).__name__}: {error}"
            hint = (
                "" if self._model else " (it is called with (observations, masks); observations are a dict of arrays)"
            )
            raise UserError(said + hint) from error
        actions = _actions(given, masks, self._game, self._name)
        if actions.ndim == 1:
            legal = masks[np.arange(len(actions)), actions]
            self.illegal += int((~legal).sum())
            actions = np.where(legal, actions, masks.shape[1] - 1)
        return self._game.decode(actions)


def _answering(policy: Any, name: str) -> Callable[[Observations, BoolArray], Any]:
    if hasattr(policy, "predict"):  # of Stable-Baselines3 and sb3-contrib
        masked = "action_masks" in inspect.signature(policy.predict).parameters
        if masked:
            return lambda seen, masks: policy.predict(seen, action_masks=masks, deterministic=True)[0]
        return lambda seen, masks: policy.predict(seen, deterministic=True)[0]
    if not callable(policy):
        raise UserError(
            f"policy '{name}': expected a callable, a model with `predict` or the name of a heuristic, "
            f"got {type(policy).__name__}; {known_names(('sjf', 'fcfs'), '')}"
        )
    answer: Callable[[Observations, BoolArray], Any] = policy
    return answer


def _actions(given: Any, masks: BoolArray, game: Game, name: str) -> IntArray:
    """Check what a policy answered.

    Raises:
        UserError: says what was expected and found.
    """
    actions, shape = np.asarray(given), (len(masks), *(game.action_space.shape or ()))
    if actions.shape != shape or actions.dtype.kind not in "iu":
        expected = f"policy '{name}': expected whole numbers {list(shape)} for {len(masks)} observations"
        raise UserError(f"{expected}, got {actions.dtype} {list(actions.shape)}")
    wrong = ~np.array([action in game.action_space for action in actions.astype(np.int64)], dtype=np.bool_)
    if wrong.any():
        raise UserError(f"policy '{name}': action {actions[wrong][0]} is outside of {game.action_space}")
    return actions
