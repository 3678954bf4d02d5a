"""Teachers: heuristics that training may imitate; and the search for weights of the linear rule.

They are separate from `heuristics.scores`, so that a new heuristic there makes no training stale. Teachers are compiled
rules or, for `clone`, policies that are called for every decision.
"""

import math
from collections.abc import Callable

import numpy as np

from pipeline.core.config import LinearRuleSearch
from pipeline.core.types import CompiledRule, FloatArray, Policy

EVEN = 0.5  # untuned Tetris: equal weights of alignment and shortness
DEEPRM_STEPS = 50  # in which DeepRM's jobs arrive
LONG_STEPS = 10  # a long job of DeepRM's workload runs at least this long

# The weighted features of the linear rule, in order: those of a job, then those of void.
JOB_FEATURES = ("short", "narrow", "aligned", "waited", "slowed", "dominant", "left", "shortest")
VOID_FEATURES = ("always", "waiting", "shorter", "free", "elapsed", "idle", "to_end")
FEATURES = JOB_FEATURES + VOID_FEATURES


def linear_weights(**named: float) -> tuple[float, ...]:
    """Return the weights of all features, 0 unless named."""
    return tuple((dict.fromkeys(FEATURES, 0.0) | named).values())


# The untuned linear rule: shortest first, and no job of LONG_STEPS or more while a much shorter one waits.
PATIENT = linear_weights(short=1.0, shortest=1.0, always=-math.log(LONG_STEPS) - 1.0)

# Untuned teachers, by their name in params.yaml.
TEACHERS: dict[str, CompiledRule | Policy] = {
    "fcfs": CompiledRule("fcfs"),
    "random": CompiledRule("random"),
    "sjf": CompiledRule("sjf"),
    "packer": CompiledRule("packer"),
    "tetris": CompiledRule("tetris", EVEN),
    "sjf_align": CompiledRule("sjf_align"),
    "hold": CompiledRule("hold", LONG_STEPS),
    "saf": CompiledRule("saf"),
    "wspt": CompiledRule("wspt"),
    "easy": CompiledRule("easy"),
    "easy_fcfs": CompiledRule("easy_fcfs"),
    "linear": CompiledRule("linear", weights=PATIENT),
    "hold_until": CompiledRule("hold_until", knobs=(LONG_STEPS, DEEPRM_STEPS)),
    "hold_long": CompiledRule("hold_long", knobs=(LONG_STEPS, DEEPRM_STEPS)),
}

COMPILED = {name: teacher for name, teacher in TEACHERS.items() if isinstance(teacher, CompiledRule)}

NEVER = -20.0  # a score of void below that of any job: none lasts e^20 steps

# The initial candidates. The first one decides like `sjf_align`: alignment matters only for equal durations.
FIRST = (
    linear_weights(short=1.0, aligned=1e-5, always=NEVER),
    PATIENT,
    linear_weights(short=1.0, narrow=1.0, always=NEVER),  # as `saf`
    linear_weights(short=2.0, narrow=1.0, always=2.0 * NEVER),  # as `wspt`
    linear_weights(short=1.0, aligned=1e-5, always=-2.9, to_end=0.35),  # long jobs wait, but less so near the end
)
OTHERS = {"waited": 0.2, "always": 1.0, "shorter": 1.0, "free": 1.0}
SPREAD = tuple(OTHERS.get(name, 0.5) for name in FEATURES)  # initial standard deviations of candidates around PATIENT
LEAST_SPREAD = 0.02
KEPT = 0.3  # weight of the previous round in mean and spread


def least_cost(cost: Callable[[FloatArray], FloatArray], config: LinearRuleSearch, seed: int) -> tuple[float, ...]:
    """Return the weights of least cost among FIRST and candidates drawn around the best of each round.

    `cost` returns the costs [C] of candidates [C, weights].
    """
    rng = np.random.default_rng(seed)
    mean, spread = np.array(PATIENT), np.array(SPREAD)
    best, least = FIRST[0], math.inf
    for number in range(config.rounds):
        drawn = mean + spread * rng.standard_normal((config.population, len(mean)))
        if number == 0:
            drawn = np.concatenate([np.array(FIRST), drawn])[: config.population]
        found = cost(drawn)
        order = np.argsort(found, kind="stable")[: config.elite]
        if found[order[0]] < least:
            best, least = tuple(drawn[order[0]].tolist()), float(found[order[0]])
        mean = KEPT * mean + (1 - KEPT) * drawn[order].mean(axis=0)
        spread = KEPT * spread + (1 - KEPT) * np.maximum(drawn[order].std(axis=0), LEAST_SPREAD)
    return best
