"""Policies by name, and the comparison of a policy with every heuristic on the test jobsets."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from deeprm import IDS
from deeprm.env import Scenario, Settings, game_of
from deeprm.games import Game, GroupsGame, Jobs, PlacingGame, PoolGame
from pipeline.comparing.statistics import ALL, comparison
from pipeline.core.config import known_names
from pipeline.core.types import SPLITS, FloatArray
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.simulation.results import Results, best_of, best_single, slowdown_column

BEST = "best_heuristic"  # at each load, chosen on validation jobsets
REFERENCES = ("random", "oracle", "undivided")  # never the best heuristic


class NamedPolicy(NamedTuple):
    """A policy of the project's simulators: (view, uniform draws [B]) -> actions [B]."""

    name: str
    decide: Any

    def __call__(self, view: Any, draws: Any) -> Any:
        """Decide in B episodes."""
        return self.decide(view, draws)


class Evaluation(NamedTuple):
    """Results of a policy, and their comparison with heuristics."""

    name: str  # of the policy
    scenario: str
    jobsets: pd.DataFrame  # metrics of each jobset, for all policies
    comparison: pd.DataFrame  # of the policy with each heuristic and BEST, by load and over all; as in comparison.csv
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
    **settings: Unpack[Settings],
) -> Evaluation:
    """Play a policy on a split's jobsets, and compare it with every heuristic (untuned) on the same ones.

    The comparison is by slowdown (bounded in continuous time), with intervals of a paired bootstrap over jobsets.

    >>> def first(observations, masks):  # the first job that fits
    ...     return masks.argmax(axis=1)
    >>> found = evaluate(first, "deeprm/Pool-v0", load=130, jobsets=2)
    >>> print(found.markdown.splitlines()[-4])
    | fcfs | 9.267 | -16.9 % (-20.9 to +0.0) |

    Args:
        policy: a callable (observations, masks [B, A]) -> actions [B] (of Groups [B, groups]); a model of
            Stable-Baselines3; a result of `load_policy`, or its argument. Observations are those of the environment,
            B at once: arrays [B, ...] by name.
        env: an id, or a scenario of ./params.yaml by name.
        split: train, validation or test.
        jobsets: maximum number for each load; None: all.
        load: only this one, in percent; None: all of the scenario's.
        name: of the policy in the results.
        settings: see `Settings`.

    Returns:
        Metrics of every jobset, and differences from every heuristic as shares (-0.1: 10 % lower) with 95 % intervals.

    Raises:
        UserError: an argument is wrong, or the policy raises or returns invalid actions.
    """
    if split not in SPLITS:
        raise UserError(f"split: expected one of {', '.join(SPLITS)}, got '{split}'")
    if jobsets is not None and jobsets < 1:
        raise UserError(f"jobsets: expected 1 or more, got {jobsets}")
    game = _game(env, **settings)
    if load not in (None, *game.loads):
        raise UserError(f"load: expected one of {', '.join(map(str, game.loads))}, got {load}")

    def jobsets_of(split: str) -> dict[int, Sequence[Jobs]]:
        return {at: group[:jobsets] for at, group in game.split(split).items() if load in (None, at)}

    heuristics, scored, _, player = _parts(game)
    if name in (*heuristics, BEST):
        raise UserError(f"name: '{name}' is a heuristic's; choose another name")
    known = load_policy(policy, env, **settings) if isinstance(policy, str) else policy
    adapter = None if isinstance(known, NamedPolicy) else _Adapter(known, game, name)
    mine = known.decide if adapter is None else player(adapter.decide)
    results = scored({name: mine, **heuristics}, jobsets_of(split), seed=game.params.seed)
    candidates = {word: each for word, each in heuristics.items() if word not in REFERENCES}
    examined = scored(candidates, jobsets_of("validation"), seed=game.params.seed)
    table = pd.concat([done.jobsets for done in results.values()], ignore_index=True)
    loads = sorted(table["load"].unique())
    references: dict[str, Mapping[int, str]] = {word: dict.fromkeys(loads, word) for word in heuristics}
    references[BEST] = best_of(examined) if getattr(game.row, "tell_load", True) else best_single(examined)
    shown, rng = table.assign(mean_slowdown=table[slowdown_column(table)]), np.random.default_rng(game.params.seed)
    about = (shown, game.name, references, game.params.evaluation, rng)
    compared = comparison(*about, asked=lambda who, _: who == name)
    return Evaluation(name, game.name, table, compared, adapter.illegal if adapter else 0)


def load_policy(name: str | Path, env: Scenario = "deeprm/Pool-v0", **settings: Unpack[Settings]) -> NamedPolicy:
    """Return a heuristic by its name, the network of a model directory (which needs torch), or an external policy.

    >>> load_policy("sjf").name
    'sjf'

    Args:
        name: an untuned heuristic, a model directory, or an external policy in the notation of params.yaml:
            `file.py:name`, `module:name`, `model.zip` or `model.onnx`. A callable is given (view, draws): a
            `pipeline.core.types.Observation` and uniform numbers [B].
        env: an id, or a scenario of ./params.yaml, which the network must fit.
        settings: see `Settings`.

    Raises:
        UserError: there is no such policy, or it is a network for another cluster.
    """
    game = _game(env, **settings)
    (known, _, network, _), word = _parts(game), str(name)
    if word in known:
        return NamedPolicy(word, known[word])
    if is_external(word):
        return NamedPolicy(word, external(word, game.row, game.scale if isinstance(game, PlacingGame) else None))
    if not Path(word).is_dir():
        expected = "expected a heuristic, a model directory or an external policy (a .zip, an .onnx, file.py:name)"
        raise UserError(f"unknown policy '{word}': {expected}; {known_names(known, word)}")
    return NamedPolicy(Path(word).name, network(word))


def _game(env: Scenario, **settings: Any) -> Game:
    if isinstance(env, str) and env in IDS:
        return game_of(IDS[env], **settings)
    if isinstance(env, str) and env.startswith("deeprm/"):
        raise UserError(f"no environment '{env}'; {known_names(IDS, env)}")
    return game_of("online", scenario=env, **settings)


class _Parts(NamedTuple):
    """A problem's policies and scoring, as in the pipeline's own comparison."""

    heuristics: Mapping[str, Any]  # untuned, in the form of the simulator
    score: Callable[..., dict[str, Results]]  # (policies, jobsets, seed=)
    network: Callable[[str], Any]  # folder -> policy; the loaders import torch
    player: Callable[[Any], Any] = lambda decide: decide  # deciding function -> policy for `score`


def _parts(game: Any) -> _Parts:
    params, name = game.params, game.name
    if isinstance(game, PoolGame):
        from pipeline.interactive.pool.policies import policy_by_name as of_pool
        from pipeline.problems.pool.env.evaluation.metrics import span_of
        from pipeline.problems.pool.env.evaluation.play import score as score_pool
        from pipeline.problems.pool.heuristics.scores import HEURISTICS as POOL

        about = {"cluster": game.cluster, "step_limit": game.row.step_limit, "measured": span_of(game.row)}
        return _Parts(POOL, partial(score_pool, **about), lambda folder: of_pool(folder, game.row, name)[0])
    if isinstance(game, GroupsGame):
        from pipeline.interactive.groups.scheduling import policy_by_name as of_groups
        from pipeline.problems.groups.env.evaluation.play import Player, controlled
        from pipeline.problems.groups.env.evaluation.play import score as score_groups
        from pipeline.problems.groups.heuristics.tuning import rules_with, untuned

        rules = rules_with(untuned(game.row.groups), game.cluster, game.configurations)
        scored, player = partial(score_groups, cluster=game.cluster), lambda decide: Player(controlled(decide))
        return _Parts(rules, scored, lambda folder: Player(of_groups(folder, params, name)), player)
    from pipeline.problems.machines.env.evaluation.play import score as score_machines
    from pipeline.problems.machines.heuristics.rules import HEURISTICS as MACHINES
    from pipeline.problems.machines.policies import policy_by_name as of_machines

    def network(folder: str) -> Any:
        if name not in params.scenarios:
            raise UserError(f"{folder}: networks are not loaded for RLScheduler-v0; use `benchmark rlscheduler`")
        return of_machines(folder, params.machines_scenario(name), game.source.park, name)

    return _Parts(MACHINES, partial(score_machines, machines=game.machines), network)


class _Adapter:
    """A user's policy in the form of the problem's simulator."""

    def __init__(self, policy: Any, game: Game, name: str) -> None:
        self.illegal = 0  # actions so far
        self._policy, self._game, self._name = policy, game, name
        self._model: Any = None  # a network of SB3
        self._options: Any = None  # parameters of its `predict`
        if hasattr(getattr(policy, "policy", None), "obs_to_tensor") and isinstance(game, PlacingGame):
            from pipeline.external.loading import of_sb3

            self._model = of_sb3(policy, game.scale, getattr(game.row, "backlog", 0))
        elif hasattr(policy, "predict"):  # of Stable-Baselines3 and sb3-contrib
            self._options = inspect.signature(policy.predict).parameters
        elif not callable(policy):
            raise UserError(
                f"policy '{name}': expected a callable, a model with `predict` or the name of a heuristic, "
                f"got {type(policy).__name__}; {known_names(('sjf', 'fcfs'), '')}"
            )

    def decide(self, view: Any, draws: FloatArray) -> Any:
        """Decide in B episodes; illegal actions become void, as in the environment; invalid ones raise UserError."""
        title = f"policy '{self._name}'"
        try:
            if self._model is not None:
                return self._model(view, draws)
            seen, masks = self._game.features(view)
            if self._options is None:
                given = self._policy(seen, masks)
            else:
                more = {"action_masks": masks} if "action_masks" in self._options else {}
                given = self._policy.predict(seen, deterministic=True, **more)[0]
        except Exception as error:
            about = "(it is called with (observations, masks); observations are a dict of arrays)"
            raise UserError(f"{title}: {type(error).__name__}: {error}{'' if self._model else f' {about}'}") from error
        space = self._game.action_space
        actions, shape = np.asarray(given), (len(masks), *(space.shape or ()))
        if actions.shape != shape or actions.dtype.kind not in "iu":
            expected = f"{title}: expected whole numbers {list(shape)} for {len(masks)} observations"
            raise UserError(f"{expected}, got {actions.dtype} {list(actions.shape)}")
        wrong = ~np.array([action in space for action in actions.astype(np.int64)], dtype=np.bool_)
        if wrong.any():
            raise UserError(f"{title}: action {actions[wrong][0]} is outside of {space}")
        if actions.ndim == 1:
            legal = masks[np.arange(len(actions)), actions]
            self.illegal += int((~legal).sum())
            actions = np.where(legal, actions, masks.shape[1] - 1)
        return self._game.decode(actions)
