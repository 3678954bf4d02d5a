"""Look-ahead on many machines: quality, and time of a decision, at several limits."""

import time
from collections.abc import Iterator

import numba
import numpy as np
import torch

from benchmarks.lookahead import ALONE, MOST_MS, OWN_LIMIT
from benchmarks.machines import Crowd
from benchmarks.measure import ProgressCallback
from benchmarks.record import NOTHING, Row, Target, figure
from benchmarks.sizes import Sizes
from pipeline.core.config.machines.learning import DeepSets
from pipeline.core.types import CompiledRule, Observation, Policy, keys
from pipeline.lookahead.planner import Base, Planner, SearchBudget
from pipeline.problems.machines.agents.networks.actor_critic import DeepSets as Network
from pipeline.problems.machines.agents.networks.features import Shape, features
from pipeline.problems.machines.agents.networks.loading import build, compiled, greedy
from pipeline.problems.machines.env.evaluation.play import score
from pipeline.problems.machines.env.nouns import Jobs, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import LEARNED, USUAL
from pipeline.problems.machines.lookahead.search import MachinesSearch, PolicyPlayer
from pipeline.simulation.rollout import Insider, play_together

MACHINES, SLOTS, CROWDED, HIDDEN = 5, 10, 64, 32
BEHIND = 8  # jobs beyond the slots: this many decisions of an episode find all slots full
SELDOM = -5.0  # initial score of void: trained networks seldom choose it, a fresh one would in half of the decisions
STRETCHED = 20.0  # factor on the crowd's run times: most of its jobs are shorter than the bound of slowdown
PAST = 20  # jobsets from which futures are drawn


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure mean bounded slowdown on five machines, and the 99th percentile of decisions where 64 jobs wait."""
    jobsets, decisions = sizes.planned
    for name, budget, limits in (
        ("saf", USUAL, (2_000, 20_000, USUAL.decisions)),
        ("deepsets", LEARNED, (250, 1_000, LEARNED.decisions)),
    ):
        for limit in limits:
            on_progress(f"{name}, {limit} decisions")
            tried, last = budget._replace(decisions=limit), limit == budget.decisions
            said = f"looking ahead on machines, {name}, {limit:,} decisions"
            ours, alone = slowdowns(name, tried, max(jobsets // 5, 1))
            yield Row(figure(f"{said}: mean bounded slowdown", [ours], "", [alone]), ALONE)
            spent = [percentile(name, tried, decisions) for _ in range(runs)]
            target = Target(most=MOST_MS) if last else NOTHING
            yield Row(figure(f"{said}: p99 where 64 jobs wait", spent, "ms", target=target), OWN_LIMIT)


def base(name: str, slots: int) -> Base[CompiledRule | PolicyPlayer]:
    """Return a heuristic or a fresh network as the base policy."""
    if name in HEURISTICS:
        return Base(HEURISTICS[name], CompiledRule(name))
    shape = Shape(slots, MACHINES, 2, 1.0, True)
    network = build(DeepSets(name="deepsets", hidden=HIDDEN), shape, seed=1)
    assert isinstance(network, Network)
    torch.nn.init.constant_(network.void.bias, SELDOM)
    scores = compiled(network)

    def likes(view: Observation) -> np.ndarray:
        observed = features(view, shape)
        return np.where(observed.may, scores(observed), -np.inf)

    policy = greedy(network, scores)
    return Base(policy, PolicyPlayer(policy, consistent=True), likes)


def drawn(crowd: Crowd) -> list[Jobs]:
    """Return the jobs of each episode, minutes long."""
    return [
        jobs._replace(**{name: STRETCHED * getattr(jobs, name) for name in ("arrival", "duration", "estimate")})
        for jobs in crowd.draw()
    ]


def planner(name: str, budget: SearchBudget, slots: int) -> Planner:
    """Return the policy with look-ahead."""
    past = arrival_model(drawn(Crowd(PAST, 100, MACHINES, slots)))
    return Planner(MachinesSearch(base(name, slots), past, budget))


def slowdowns(name: str, budget: SearchBudget, jobsets: int) -> tuple[float, float]:
    """Return the mean bounded slowdown of jobsets of 100 jobs, with and without look-ahead."""
    crowd = Crowd(PAST + jobsets, 100, MACHINES, SLOTS)
    policies: dict[str, Policy | Insider] = {"plan": planner(name, budget, SLOTS), "alone": base(name, SLOTS).policy}
    found = score(policies, {100: drawn(crowd)[PAST:]}, crowd.cluster(), seed=1)
    ours, alone = (float(found[who].jobsets["mean_bounded_slowdown"].mean()) for who in ("plan", "alone"))
    return ours, alone


def percentile(name: str, budget: SearchBudget, decisions: int) -> float:
    """Return the 99th percentile [ms of processor time] of a decision on one thread; the machine may be busy."""
    crowd = Crowd(-(-decisions // (BEHIND - 1)), CROWDED + BEHIND, MACHINES, CROWDED)
    plan, threads = planner(name, budget, CROWDED), numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        spent = [one for jobs in drawn(crowd) for one in _spent(plan, crowd, jobs)]
    finally:
        numba.set_num_threads(threads)
    return float(np.percentile(spent[:decisions], 99) / 1e6)


def _spent(plan: Planner, crowd: Crowd, jobs: Jobs) -> list[int]:
    """Return the times of decisions while all slots are full, except the first, which creates the copies."""
    jobs = jobs._replace(arrival=np.zeros(crowd.jobs))
    simulator, one = Simulator(end_to_end([jobs]), crowd.cluster(), np.zeros(crowd.jobs)), np.zeros(1, dtype=np.int64)
    going, found = play_together(simulator, [plan], one, keys(0, one, one)), []
    next(going)
    for _ in range(BEHIND - 1):
        begun = time.process_time_ns()
        next(going)
        found.append(time.process_time_ns() - begun)
    return found
