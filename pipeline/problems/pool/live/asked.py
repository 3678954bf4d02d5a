"""What policies of a pooled cluster say of a view, asked once: what they think of each job, and what they do.

Heuristics score; networks have logits; a planner has the mean cost of what it tries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import Params, PoolCard, PoolScenario, Sets, there_are
from pipeline.core import FloatArray, Observation, Policy
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.lookahead.planner import PREFIX
from pipeline.problems.asking import RefusedError
from pipeline.problems.pool.heuristics.rules import easy, linear
from pipeline.problems.pool.heuristics.scores import HEURISTICS, hold, hold_until, packer, saf, sjf_align, tetris, wspt
from pipeline.problems.pool.heuristics.teachers import DEEPRM_STEPS, EVEN, FEATURES, LONG_STEPS, PATIENT
from pipeline.problems.pool.heuristics.tuning import KNOB_OF, SPAN_KNOBS, heuristics_with
from pipeline.problems.pool.live.cluster import PoolNow
from pipeline.problems.pool.lookahead.naming import network_base, plain_base, planned
from pipeline.problems.pool.lookahead.search import PoolPlanner
from pipeline.problems.pool.nouns import Cluster
from pipeline.simulation.choosing import Score, fcfs, sjf

Asked = Callable[
    [Observation, FloatArray], tuple[FloatArray, int]
]  # (view, draw [1]) -> scores of slots [M], an action


@dataclass(frozen=True)
class Thinker:
    """A policy, and what it knows."""

    asked: Asked
    must_know: Callable[[PoolNow], None]  # raises RefusedError
    masked: bool = True  # does it keep to the legal actions?


def no_order(view: Observation) -> FloatArray:
    """Score all jobs alike: `random` has no order."""
    return np.zeros(view.duration.shape)


def scores_with(tuned: Mapping[str, float]) -> dict[str, Score]:
    """Return what heuristics think of each job, with the numbers they are tuned by."""
    spans = [tuned[name] for name in SPAN_KNOBS] if set(SPAN_KNOBS) <= set(tuned) else [LONG_STEPS, DEEPRM_STEPS]
    weights = [tuned[name] for name in KNOB_OF.values() if name in tuned]
    return {
        "fcfs": fcfs,
        "random": no_order,
        "sjf": sjf,
        "packer": packer,
        "tetris": tetris(tuned.get("tetris", EVEN)),
        "sjf_align": sjf_align,
        "hold": hold(int(tuned.get("hold", LONG_STEPS))),
        "saf": saf,
        "wspt": wspt,
        "easy": easy(sjf_align),
        "easy_fcfs": easy(fcfs),
        "linear": linear(weights if len(weights) == len(FEATURES) else PATIENT),
        "hold_until": hold_until(*(int(span) for span in spans)),
    }


def thinker(params: Params, scenario: str, cluster: Cluster, name: str, tuned: Mapping[str, float]) -> Thinker:
    """Return a policy by its name.

    Raises:
        UserError: there is none, or it is a model that was trained for another cluster.
    """
    row = params.pool_scenario(scenario)
    if Path(name).is_dir():
        return _network(Path(name), row)
    if is_external(name):
        return _external(external(name, row))
    base = name.removeprefix(PREFIX)
    if name != base and Path(base).is_dir():
        known, alone = network_base(*_read(Path(base)), row), _network(Path(base), row)
        return _planner(planned(params, scenario, cluster, known), row, alone.must_know)
    if base not in HEURISTICS:
        near = storage.nearest_model(name)
        raise UserError(
            f"unknown policy '{name}': expected a model directory or a heuristic; {there_are(HEURISTICS, name)}{near}"
        )
    policy = heuristics_with(tuned)[base]
    if name == base:
        return _heuristic(policy, scores_with(tuned)[base])
    return _planner(planned(params, scenario, cluster, plain_base(policy)), row, lambda now: None)


def _heuristic(policy: Policy, score: Score) -> Thinker:
    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        return np.asarray(score(view)[0], dtype=float), int(policy(view, draws)[0])

    return Thinker(asked, lambda now: None)


def _external(policy: Policy) -> Thinker:
    """Return a policy that only acts: the job that it starts comes first."""

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        action = int(policy(view, draws)[0])
        return np.where(np.arange(view.duration.shape[1]) == action, 0.0, -np.inf), action

    return Thinker(asked, lambda now: None)


def _planner(plan: PoolPlanner, row: PoolScenario, base_knows: Callable[[PoolNow], None]) -> Thinker:
    """Return a policy that looks ahead; the score of an action is its mean cost, below 0."""

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        found = plan.asked(view, draws)
        tried = found.action[0][found.action[0] >= 0]
        scores = np.full(view.duration.shape[1] + 1, -np.inf)
        scores[tried] = 0.0 - found.values.cost[0, : len(tried)]
        return scores[:-1], int(found.chosen[0])

    def must_know(now: PoolNow) -> None:
        if now.ends is not None:
            raise RefusedError("it looks ahead as if arrivals went on: leave 'arrivals_end' out")
        _same_cluster(now, row)
        _so_far(now)
        base_knows(now)

    return Thinker(asked, must_know)


def _read(folder: Path) -> tuple[PoolCard, Mapping[str, FloatArray]]:
    """Return the card and the weights of a model.

    Raises:
        UserError: they cannot be read.
    """
    try:
        model = storage.read_model(folder, PoolCard)
    except OSError as error:
        raise UserError(f"{folder}: cannot be read ({error.strerror})") from error
    return model.card, model.weights


def _network(folder: Path, row: PoolScenario) -> Thinker:
    from pipeline.learning.sampling import best, sample  # torch and numba: seconds that heuristics do without
    from pipeline.problems.pool.networks.loading import must_match, restore

    card, weights = _read(folder)
    must_match(card, row)
    scorer, any_size = restore(card, weights).scorer, isinstance(card.network, Sets)
    forward = scorer.frozen()

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        observed = scorer.encode(view)
        logits = forward(observed)
        how = (logits, observed.may, card.masked)
        actions = best(*how) if card.play == "greedy" else sample(*how, draws)
        return np.asarray(logits[0, :-1], dtype=float), int(actions[0])

    def must_know(now: PoolNow) -> None:
        _same_cluster(now, row, any_size)
        if any_size:
            _so_far(now)
        if not 0 <= now.time <= row.step_limit:
            raise RefusedError(f"trained for {row.step_limit} steps from 0 on; now is {now.time}")

    return Thinker(asked, must_know, card.masked)


def _same_cluster(now: PoolNow, row: PoolScenario, any_size: bool = False) -> None:
    """Refuse a cluster of other resources or, where that matters, of another size."""
    own, here = tuple(row.resources), now.resources
    if own != here:
        raise RefusedError(f"made for resources {', '.join(own)}; here: {', '.join(here)}")
    units = tuple(row.resources.values())
    if units != now.cluster.capacity and not any_size:
        raise RefusedError(f"made for units {units}; here: {now.cluster.capacity}")


def _so_far(now: PoolNow) -> None:
    if now.so_far is None:
        raise RefusedError("expected 'so_far', the jobs that arrived since step 0, by which it knows the load")
    if now.time < 0:
        raise RefusedError(f"'so_far' counts from step 0; now is {now.time}")
