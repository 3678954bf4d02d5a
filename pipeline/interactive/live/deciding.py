"""Decisions of job-placing policies for a live cluster: the order of the waiting jobs, and those that start.

A state becomes one episode of the problem's simulator. The policy decides there as in evaluation, job by job, until it
lets time pass, time passes because no job fits, or enough jobs have started.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from pydantic import BaseModel

from pipeline.core.config import Params
from pipeline.core.types import FloatArray, IntArray, Json, Observation, Policy
from pipeline.interactive.live.states import Ranked
from pipeline.simulation.rollout import Heuristic
from pipeline.simulation.simulator import Simulator

MOST_STARTS = 16  # of one answer
ONLY = np.zeros(1, dtype=np.int64)  # the episode

State = TypeVar("State", bound=BaseModel)  # of a cluster
Decision = TypeVar("Decision", bound=BaseModel)


class RefusedError(Exception):
    """A policy does not know such a state, or its answer is invalid; another policy may be asked."""


@dataclass(frozen=True)
class Live(Generic[State, Decision]):
    """How policies of one problem decide for a live cluster."""

    door: str  # last word of the endpoint: decide, or shares
    state: type[State]
    decision: type[Decision]
    example: Callable[[Params, str], Mapping[str, Json]]  # a state of a scenario
    fallback: str  # a heuristic that answers for any state
    # (params, scenario, a heuristic or a model's folder, its tuned numbers) -> a decider; or raises RefusedError
    decider: Callable[[Params, str, str, Mapping[str, float]], Callable[[State], Decision]]
    places: bool = False  # does a decision say on which machines a job starts?
    plans: bool = False  # do policies look ahead from a live state, too?


@dataclass(frozen=True)
class Now:
    """A live cluster as one episode of its simulator, and the names of its jobs; problems add fields."""

    simulator: Simulator[Observation, IntArray]  # running jobs, then waiting jobs in order of arrival
    ids: Sequence[str]  # [W] of waiting jobs that can run here
    never: tuple[str, ...]  # names of those that cannot

    def fits_at(self, view: Observation, slot: int) -> float:
        """Return when the job of a slot fits, given the running jobs."""
        return float(view.now[0] + view.fits_in[0, slot])

    def in_turn(self, jobs: IntArray) -> IntArray:
        """Return the waiting jobs that one decision starts, by number, in the order in which they start."""
        return jobs


AnyNow = TypeVar("AnyNow", bound=Now)


@dataclass(frozen=True)
class LivePolicy(Generic[AnyNow]):
    """A policy with its own checks of a state."""

    asked: Callable[[Observation, FloatArray], tuple[FloatArray, int]]  # (view, draw [1]) -> scores [M], an action
    check_known: Callable[[AnyNow], None] = lambda now: None  # raises RefusedError
    masked: bool = True  # restricted to legal actions


@dataclass(frozen=True)
class Answer:
    """Decision of a policy; a job is its position in the list of waiting jobs."""

    order: tuple[Ranked, ...] = ()
    starts: Sequence[int] = ()
    held: tuple[int, float] | None = None  # a job that others must not delay, and the time when it fits
    more: bool = False


@dataclass(frozen=True)
class Decider(Generic[State, AnyNow, Decision]):
    """A policy of a scenario's cluster."""

    from_state: Callable[[State], AnyNow]
    policy: LivePolicy[AnyNow]
    worded: Callable[[AnyNow, Answer], Decision]
    rng: np.random.Generator

    def __call__(self, state: State) -> Decision:
        """Return the policy's decision.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: the policy does not know such a state, or has no answer.
        """
        now = self.from_state(state)
        self.policy.check_known(now)
        if not now.ids:
            return self.worded(now, Answer())
        view = now.simulator.observe(ONLY)
        scores, action = self.policy.asked(view, self.rng.random(1))
        order = _ranked(now.ids, scores)
        starts, held = self._play(now, view, action)
        more = held is None and len(starts) >= MOST_STARTS and len(starts) < len(now.ids)
        return self.worded(now, Answer(order, starts[:MOST_STARTS], held, more))

    def _play(self, now: AnyNow, view: Observation, action: int) -> tuple[list[int], tuple[int, float] | None]:
        """Return the jobs that start, in order, and the one that resources are held for; play until time passes."""
        then, waits, starts = now.simulator.now[0], np.ones(len(now.ids), dtype=np.bool_), list[int]()
        while (slot := self._slot(view, action)) is not None:
            at, before = None if view.fits_now[0, slot].any() else now.fits_at(view, slot), np.flatnonzero(waits)
            now.simulator.step(ONLY, np.array([action]))
            passed, start = now.simulator.now[0] > then, now.simulator.played(ONLY).start[-len(waits) :]
            new = np.flatnonzero(waits & ~np.isnan(start) & ((start == then) | (not passed)))
            waits[new] = False
            starts += now.in_turn(new).tolist()
            if passed:
                return starts, None if at is None else (int(before[slot]), at)
            if not waits.any() or len(starts) >= MOST_STARTS:
                break
            view = now.simulator.observe(ONLY)
            action = self.policy.asked(view, self.rng.random(1))[1]
        return starts, None

    def _slot(self, view: Observation, action: int) -> int | None:
        """Return the slot of the chosen job; None if the policy lets time pass."""
        legal, machines = view.legal[0].reshape(-1), view.legal.shape[2]
        if action == len(legal) or not legal.any():
            return None
        if 0 <= action < len(legal) and legal[action]:
            return int(action // machines)
        if self.policy.masked:
            raise RefusedError(f"it chose {action}, which may not be chosen")
        return None


def _ranked(ids: Sequence[str], scores: FloatArray) -> tuple[Ranked, ...]:
    """Rank the jobs by the scores [M] of their slots; jobs beyond the slots follow."""
    score, seen = np.full(len(ids), -np.inf), min(len(ids), len(scores))
    score[:seen] = scores[:seen]
    if np.isnan(score).any() or np.isposinf(score).any():
        raise RefusedError("its scores are not numbers")
    shown = [value if np.isfinite(value) else None for value in score.tolist()]
    return tuple(Ranked(job=ids[m], score=shown[m]) for m in np.argsort(-score, kind="stable"))


def of_jobs(scores: FloatArray, view: Observation) -> FloatArray:
    """Return the best score of each job [M] on machines that could hold it, from scores [1, M] or [1, M, K]."""
    if scores.ndim == 2:
        return np.asarray(scores[0], dtype=float)
    could = (view.demand[0, :, None] <= view.capacity[0]).all(axis=2)
    return np.asarray(np.where(could, scores[0], -np.inf).max(axis=1), dtype=float)


def heuristic(policy: Policy) -> LivePolicy[Any]:
    """Return a heuristic; one without an order scores all jobs equally."""
    score = policy.score if isinstance(policy, Heuristic) else None

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        scores = np.zeros(view.duration.shape) if score is None else score(view)
        return of_jobs(scores, view), int(policy(view, draws)[0])

    return LivePolicy(asked)


def acting(policy: Policy) -> LivePolicy[Any]:
    """Return a policy that only acts: the job that it starts comes first."""

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        action, (slots, machines) = int(policy(view, draws)[0]), view.legal.shape[1:]
        return np.where(np.arange(slots) == action // machines, 0.0, -np.inf), action

    return LivePolicy(asked)


def network(
    encode: Callable[[Observation], Any],
    forward: Callable[[Any], FloatArray],
    card: Any,
    check_known: Callable[[AnyNow], None],
    masked: bool = True,
) -> LivePolicy[AnyNow]:
    """Return a network, whose logits give both scores and action.

    Args:
        encode: returns the network's inputs of a view, with the legal actions `may` [1, A].
        forward: returns the logits [1, A].
        card: of the stored model.
        check_known: raises RefusedError for an unknown state.
        masked: restricted to legal actions.
    """
    from pipeline.learning.sampling import best, sample  # torch and numba: seconds that heuristics do not need

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        observed = encode(view)
        logits = forward(observed)
        how = (logits, observed.may, masked)
        actions = best(*how) if card.play == "greedy" else sample(*how, draws)
        return of_jobs(logits[:, :-1].reshape(view.legal.shape), view), int(actions[0])

    return LivePolicy(asked, check_known, masked)
