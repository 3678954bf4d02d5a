"""Live decisions for a pooled cluster: its present state as an episode, and the policies that decide."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import Params, PoolCard, PoolScenario
from pipeline.core.config.pool.learning import Scores
from pipeline.core.types import FloatArray, IntArray, Json, Observation
from pipeline.errors import UserError
from pipeline.external.loading import external, is_external
from pipeline.interactive.live import deciding
from pipeline.interactive.live.states import amounts, in_order, last_arrival, others
from pipeline.interactive.pool.live.state import PoolDecision, PoolStart, PoolState
from pipeline.interactive.pool.policies import base_by_name, cluster_for
from pipeline.lookahead.planner import PREFIX
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS, heuristics_with
from pipeline.problems.pool.lookahead.naming import plain_base, planned
from pipeline.problems.pool.lookahead.search import PoolPlanner

LONGEST = 2**15 - 1  # steps of a running job in the simulator; the first steps of an older one are left out


@dataclass(frozen=True)
class PoolNow(deciding.Now):
    """A live cluster as an episode, whose clock shows 0 if the state's time is negative."""

    resources: tuple[str, ...]  # [R]
    cluster: Cluster
    state: PoolState


def episode_of(state: PoolState, own: Mapping[str, int], cluster: Cluster) -> PoolNow:
    """Return a state as an episode, without the jobs that the cluster could never run.

    `own` are the units of the scenario's resources, used if the state has none. Capacity, load and the end of arrivals
    of the cluster are those of the state.

    Raises:
        UserError: running jobs hold more than there is, or start in the future where jobs are not placed ahead.
    """
    here = own if state.resources is None else state.resources
    resources = in_order([*own], [*here])
    zero, end = min(state.now, 0), state.arrivals_end
    cluster = cluster._replace(
        capacity=tuple(here[name] for name in resources),
        arrivals_end=None if end is None else max(end - zero, 0),
        load=state.load,
    )
    jobs = sorted(state.waiting, key=lambda job: job.arrived)
    demand = amounts((job.demand for job in jobs), resources)
    short = [job.duration <= cluster.horizon and not others(job.demand, resources) for job in jobs]
    can = (demand <= cluster.capacity).all(axis=1) & np.array(short, dtype=np.bool_)
    waiting, never = [jobs[k] for k in np.flatnonzero(can)], [jobs[k].id for k in np.flatnonzero(~can)]
    held, free = _held(state, resources, cluster)
    left = _steps(job.started + job.duration - state.now for job in state.running)
    seen = state.now + np.clip(left, 1, cluster.horizon)
    start = np.maximum(_steps(job.started for job in state.running), np.maximum(seen - LONGEST, zero))  # none below 0
    mine = JobSet(
        np.concatenate([start, _steps(job.arrived for job in waiting)]) - zero,
        np.concatenate([np.maximum(seen - start, 1), _steps(job.duration for job in waiting)]),
        np.concatenate([held, demand[can]]),
    )
    arrived, so_far = np.zeros(2 + len(resources)), state.so_far
    if so_far is not None:
        arrived[:] = so_far.jobs, so_far.duration, *(so_far.work.get(name, 0) for name in resources)
    clock = state.now - zero, int(last_arrival(state)) - zero
    simulator = Batched.under_way(batch([mine]), cluster, start - zero, free, *clock, arrived)
    return PoolNow(simulator, [job.id for job in waiting], tuple(never), resources, cluster, state)


def _steps(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _held(state: PoolState, resources: Sequence[str], cluster: Cluster) -> tuple[IntArray, IntArray]:
    """Return the units that running jobs hold [H, R] and leave [T, R]; overrunning jobs seem to end after this step."""
    held = amounts((job.demand for job in state.running), resources)
    free = np.tile(np.array(cluster.capacity, dtype=np.int64), (cluster.horizon, 1))
    for job, units in zip(state.running, held, strict=True):
        where = f"running job '{job.id}'"
        for name in others(job.demand, resources):
            raise UserError(f"{where}: there is no '{name}'")
        begin = job.started - state.now
        if begin > 0 and not cluster.place_ahead:
            raise UserError(f"{where} starts at {job.started}, after now, {state.now}")
        free[max(begin, 0) : max(begin + job.duration, 1)] -= units
    if (free < 0).any():
        step, r = np.argwhere(free < 0)[0]
        units = cluster.capacity[r]
        raise UserError(
            f"step {state.now + step}: running jobs hold {units - free[step, r]} of {resources[r]}; it has {units}"
        )
    return held, free


PoolPolicy = deciding.LivePolicy[PoolNow]


def decider(
    params: Params, scenario: str, name: str, tuned: Mapping[str, float]
) -> deciding.Decider[PoolState, PoolNow, PoolDecision]:
    """Return the decider of a heuristic or a model's folder, with look-ahead after `plan_`, or an external policy.

    Raises:
        UserError: there is no such policy, or it is a model that was trained for another cluster.
    """
    row = params.pool_scenario(scenario)
    cluster = cluster_for(name, row)._replace(arrivals_end=None)
    read = partial(episode_of, own=row.resources, cluster=cluster)
    policy = _policy(params, scenario, cluster, name, tuned)
    return deciding.Decider(read, policy, worded, np.random.default_rng(params.seed))


def worded(now: PoolNow, answer: deciding.Answer) -> PoolDecision:
    """Return an answer with the names of jobs."""
    start = now.simulator.played(deciding.ONLY).start[-len(now.ids) :] + min(now.state.now, 0)
    starts = tuple(PoolStart(job=now.ids[job], at=int(start[job])) for job in answer.starts)
    return PoolDecision(order=answer.order, starts=starts, never=now.never, more=answer.more)


def _policy(params: Params, scenario: str, cluster: Cluster, name: str, tuned: Mapping[str, float]) -> PoolPolicy:
    row = params.pool_scenario(scenario)
    if Path(name).is_dir():
        return _network(Path(name), row)
    if is_external(name):
        return deciding.acting(external(name, row))
    base = name.removeprefix(PREFIX)
    if name != base and Path(base).is_dir():
        plan = planned(params, scenario, cluster, base_by_name(base, row, scenario))
        return _planner(plan, row, _network(Path(base), row).check_known)
    if base not in HEURISTICS:
        raise storage.unknown_policy(name, HEURISTICS)
    policy = heuristics_with(tuned)[base]
    if name == base:
        return deciding.heuristic(policy)
    return _planner(planned(params, scenario, cluster, plain_base(policy)), row, lambda now: None)


def _planner(plan: PoolPlanner, row: PoolScenario, base_knows: Callable[[PoolNow], None]) -> PoolPolicy:
    """Return a policy that looks ahead; the score of an action is minus its mean cost."""

    def asked(view: Observation, draws: FloatArray) -> tuple[FloatArray, int]:
        found = plan.asked(view, draws)
        tried = found.action[0][found.action[0] >= 0]
        scores = np.full(view.duration.shape[1] + 1, -np.inf)
        scores[tried] = 0.0 - found.values.cost[0, : len(tried)]
        return scores[:-1], int(found.chosen[0])

    def check_known(now: PoolNow) -> None:
        if now.state.arrivals_end is not None:
            raise deciding.RefusedError("it looks ahead as if arrivals did not end: leave 'arrivals_end' out")
        _same_cluster(now, row)
        _so_far(now)
        base_knows(now)

    return deciding.LivePolicy(asked, check_known)


def _network(folder: Path, row: PoolScenario) -> PoolPolicy:
    from pipeline.problems.pool.agents.networks.networks import must_match, restore  # torch: seconds

    model = storage.read_model(folder, PoolCard)
    card = model.card
    must_match(card, row)
    scorer, any_size = restore(card, model.weights).network, isinstance(card.network, Scores)

    def check_known(now: PoolNow) -> None:
        _same_cluster(now, row, any_size)
        if any_size:
            _so_far(now)
        if not 0 <= now.state.now <= row.step_limit:
            raise deciding.RefusedError(f"trained for {row.step_limit} steps from 0 on; now is {now.state.now}")

    return deciding.network(scorer.encode, scorer.frozen(), card, check_known, card.masked)


def _same_cluster(now: PoolNow, row: PoolScenario, any_size: bool = False) -> None:
    """Refuse a cluster of other resources or, unless `any_size`, of another size."""
    own, here = tuple(row.resources), now.resources
    if own != here:
        raise deciding.RefusedError(f"made for resources {', '.join(own)}; here: {', '.join(here)}")
    units = tuple(row.resources.values())
    if units != now.cluster.capacity and not any_size:
        raise deciding.RefusedError(f"made for units {units}; here: {now.cluster.capacity}")


def _so_far(now: PoolNow) -> None:
    if now.state.so_far is None:
        raise deciding.RefusedError("expected 'so_far', the jobs that arrived since step 0, by which it knows the load")
    if now.state.now < 0:
        raise deciding.RefusedError(f"'so_far' counts from step 0; now is {now.state.now}")


def example(params: Params, scenario: str) -> Mapping[str, Json]:
    """Return a state of a scenario's cluster: one job runs, and two wait."""
    units = params.pool_scenario(scenario).resources
    half, least = {name: amount // 2 for name, amount in units.items()}, dict.fromkeys(units, 1)
    work = {name: 6 * half[name] + 2 for name in units}
    return {
        "version": 1,
        "now": 12,
        "waiting": [
            {"id": "17", "arrived": 9, "duration": 2, "demand": {**half}},
            {"id": "18", "arrived": 11, "duration": 1, "demand": {**least}},
        ],
        "running": [{"id": "11", "started": 10, "duration": 4, "demand": {**half}}],
        "so_far": {"jobs": 3, "duration": 7, "work": {**work}},
    }


LIVE = deciding.Live("decide", PoolState, PoolDecision, example, "fcfs", decider, plans=True)
