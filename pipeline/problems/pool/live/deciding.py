"""A policy decides for a pooled cluster as it is: the order of what waits, and who starts.

It is asked as the simulator asks it: job by job, until it lets a step pass or nothing fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.config import Params
from pipeline.core import FloatArray
from pipeline.problems.asking import RefusedError
from pipeline.problems.pool.live.asked import Thinker, thinker
from pipeline.problems.pool.live.cluster import PoolNow, cluster_now
from pipeline.problems.pool.live.state import PoolDecision, PoolRanked, PoolStart, PoolState
from pipeline.problems.pool.nouns import Cluster

MOST_STARTS = 16  # of one answer


@dataclass(frozen=True)
class Decider:
    """A policy of a scenario's cluster."""

    resources: Mapping[str, int]
    cluster: Cluster
    thinker: Thinker
    rng: np.random.Generator

    def __call__(self, state: PoolState) -> PoolDecision:
        """Return what the policy wants.

        Raises:
            UserError: the state contradicts itself.
            RefusedError: the policy does not know such a state, or has no answer.
        """
        now, never = cluster_now(state, self.resources, self.cluster)
        self.thinker.must_know(now)
        if not now.ids:
            return PoolDecision(order=(), starts=(), never=never)
        view = now.observe()
        scores, action = self.thinker.asked(view, self.rng.random(1))
        order, starts = _order(now, scores), list[PoolStart]()
        while view.legal.any() and (found := self._chosen(now, action)) is not None:
            slot, job, begin = found
            now.start(slot, begin)
            starts.append(PoolStart(job=now.ids[job], at=now.time + begin))
            if not now.waits or len(starts) == MOST_STARTS:
                break
            view = now.observe()
            action = self.thinker.asked(view, self.rng.random(1))[1]
        more = len(starts) == MOST_STARTS and bool(now.waits)
        return PoolDecision(order=order, starts=tuple(starts), never=never, more=more)

    def _chosen(self, now: PoolNow, action: int) -> tuple[int, int, int] | None:
        """Return a slot, its job and the step it begins in; none where the policy lets a step pass.

        Raises:
            RefusedError: what it chose may not be chosen.
        """
        if action == self.cluster.slots:
            return None
        job = now.slots[action] if 0 <= action < self.cluster.slots else None
        begin = None if job is None else now.begins(job)
        if job is not None and begin is not None:
            return action, job, begin
        if self.thinker.masked:
            raise RefusedError(f"it chose {action}, which may not be chosen")
        return None


def _order(now: PoolNow, scores: FloatArray) -> tuple[PoolRanked, ...]:
    """Return the jobs by the scores [M] of the slots they are in; those behind the slots follow."""
    jobs = now.waits
    seen = [slot for slot, job in enumerate(now.slots) if job is not None]
    score = np.full(len(jobs), -np.inf)
    score[: len(seen)] = scores[seen]
    if np.isnan(score).any() or np.isposinf(score).any():
        raise RefusedError("its scores are not numbers")
    told = [value if np.isfinite(value) else None for value in score.tolist()]
    return tuple(PoolRanked(job=now.ids[jobs[m]], score=told[m]) for m in np.argsort(-score, kind="stable"))


def decider(params: Params, scenario: str, name: str, tuned: Mapping[str, float]) -> Decider:
    """Return what decides as a policy does: a heuristic, `plan_` before one, or a model's folder.

    Raises:
        UserError: there is none, or it is a model that was trained for another cluster.
    """
    row = params.pool_scenario(scenario)
    cluster = Cluster.of(row)._replace(arrivals_end=None)
    found = thinker(params, scenario, cluster, name, tuned)
    return Decider(row.resources, cluster, found, np.random.default_rng(params.seed))
