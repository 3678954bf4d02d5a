"""Heuristics of one pooled cluster, their tuning on validation jobsets, and the scoring of all policies.

These are DeepRM's heuristics (section 4.1), with the semantics of its published code, and stronger ones. Each is a
compiled rule, which plays whole episodes on its own and scores the waiting jobs of observations. A heuristic without a
rule is a function that returns scores [B, M] of observations. The job with the highest score starts; -inf holds a job
back; `choose` handles legality, ties (the lowest slot) and void.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from pipeline.core import storage
from pipeline.core.config import Clone, LinearRuleSearch, Params, PoolAgent, PoolKnobs
from pipeline.core.config.problems import check_plan_names
from pipeline.core.config.records import check_known
from pipeline.core.types import CompiledRule, FloatArray, Policy
from pipeline.errors import UserError
from pipeline.problems.parts import Best, Scoring
from pipeline.problems.pool.env.evaluation.metrics import span_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.simulator.rules import scores_of
from pipeline.problems.pool.env.storage import read_jobsets
from pipeline.problems.pool.env.teachers import COMPILED, FEATURES, LONG_STEPS, TEACHERS, least_cost
from pipeline.problems.pool.env.workload.synthetic import check_estimates, check_synthetic
from pipeline.simulation.results import Play, best_of, best_single, mean_cost
from pipeline.simulation.rollout import Heuristic, heuristic, random

# The knobs of heuristics, in the order of `with_knobs`.
LINEAR_KNOBS = tuple(f"linear_{name}" for name in FEATURES)
KNOBS = {
    "tetris": ("tetris",),
    "hold": ("hold",),
    "hold_until": ("hold_until_long", "hold_until"),
    "hold_long": ("hold_long_long", "hold_long"),
    "linear": LINEAR_KNOBS,
}
SEARCH_SEED = 7  # of the search for the linear rule's weights
AT_ONCE = 64  # candidates whose results are in memory at once


def by_rule(rule: CompiledRule) -> Heuristic:
    """Return the heuristic of a compiled rule."""
    return Heuristic(random, rule) if rule.rule == "random" else heuristic(scores_of(rule), rule)


def with_knobs(name: str, *knobs: float) -> Heuristic:
    """Return a heuristic with the values of its KNOBS: weights, or whole steps."""
    if name == "linear":
        return by_rule(CompiledRule(name, weights=knobs))
    if name == "tetris":
        return by_rule(CompiledRule(name, knobs[0]))
    steps = [int(knob) for knob in knobs]
    return by_rule(CompiledRule(name, steps[0]) if len(steps) == 1 else CompiledRule(name, knobs=(steps[0], steps[1])))


# Untuned heuristics, by their name in params.yaml.
HEURISTICS: dict[str, Policy] = {
    **{name: by_rule(rule) for name, rule in COMPILED.items()},
}


def heuristics_with(knobs: Mapping[str, float]) -> dict[str, Policy]:
    """Return all heuristics; those with knobs are as tuned."""
    tuned = {name: own for name, own in KNOBS.items() if set(own) <= set(knobs)}
    return HEURISTICS | {name: with_knobs(name, *(knobs[knob] for knob in own)) for name, own in tuned.items()}


def tuned(
    play: Play, knobs: PoolKnobs, training: Mapping[int, Sequence[JobSet]], seed: int = SEARCH_SEED
) -> dict[str, float]:
    """Return each heuristic's best knobs by mean slowdown (of equals, the first), and the linear rule's weights."""
    duration = np.concatenate([jobs.requested for group in training.values() for jobs in group])
    long = sorted(
        {float(LONG_STEPS), *(float(np.quantile(duration, q, method="higher")) for q in knobs.hold_quantiles)}
    )
    spans = [(steps, float(until)) for steps in long for until in knobs.hold_until]
    candidates: dict[str, list[tuple[float, ...]]] = {
        "tetris": [(weight,) for weight in knobs.tetris_weights],
        "hold": [(steps,) for steps in long],
        "hold_until": [*spans],
        "hold_long": [*spans],
    }
    best: dict[str, float] = {}
    for name, tried in candidates.items():
        if tried:
            results = play({repr(values): with_knobs(name, *values) for values in tried})
            least = min(tried, key=lambda values: mean_cost(results[repr(values)], "slowdown"))
            best |= dict(zip(KNOBS[name], least, strict=True))
    if knobs.linear is None:
        return best
    return best | dict(zip(LINEAR_KNOBS, tuned_linear(play, knobs.linear, seed), strict=True))


def tuned_linear(play: Play, config: LinearRuleSearch, seed: int) -> tuple[float, ...]:
    """Return the best of the tried weights of the linear rule.

    Their cost is the mean over loads of the mean slowdown compared with SJF's, so that no load outweighs the others.
    """
    sjf = play({"sjf": HEURISTICS["sjf"]})["sjf"].by_load

    def cost(drawn: FloatArray) -> FloatArray:
        found = []
        for first in range(0, len(drawn), AT_ONCE):
            some = drawn[first : first + AT_ONCE].tolist()
            results = play({str(number): with_knobs("linear", *weights) for number, weights in enumerate(some)})
            found += [np.mean([mean / sjf[load] for load, mean in done.by_load.items()]) for done in results.values()]
        return np.array(found)

    return least_cost(cost, config, seed)


def scoring(params: Params, scenario: str, agent: str | None = None) -> Scoring[JobSet, Policy]:
    """Return the functions that score an agent's policies, or heuristics, on a scenario's jobsets."""
    row, folder = params.pool_scenario(scenario), storage.jobsets_folder(scenario)
    masked, cluster = agent is None or params.pool_recipe(agent).masked, Cluster.of(row, trained=agent is not None)
    scored = partial(score, cluster=cluster, step_limit=row.step_limit, measured=span_of(row))
    return Scoring(
        read=lambda split: read_jobsets(folder, split, row.resources, row.known_load),
        score=partial(scored, seed=params.seed, masked=masked),
        tune=lambda examine, training: tuned(examine, params.heuristics.pool, training),
        heuristics=heuristics_with,
        best=lambda examined: Best(best_of(examined)) if row.tell_load else Best(best_single(examined), single=True),
    )


def check(params: Params) -> None:
    """Raise a UserError for the first mistake: in loads, estimates, or names of policies and teachers."""
    check_synthetic(params)
    check_estimates(params)
    taken = {*HEURISTICS, *(f"{agent}{end}" for agent in params.agents for end in ("_pretrained", "_tree"))}
    for name in params.agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
    check_plan_names(params, "pool", [*HEURISTICS, *params.agents_with(PoolAgent)], taken | set(params.agents))
    for name, agent in params.agents.items():
        if isinstance(agent.pretrain, Clone):
            check_known("params.yaml", f"agents.{name}.pretrain.teacher", agent.pretrain.teacher, TEACHERS)
