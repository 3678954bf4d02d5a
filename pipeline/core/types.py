"""Types shared by all problems, the glossary of dimensions, and the type of a policy.

Glossary, used with every field and repeated nowhere:

    B  episodes played in parallel       J  jobs of one jobset (or of all episodes, flattened)
    M  job slots a policy sees           K  machines (1: a pooled cluster)
    T  steps of the horizon              R  resources
    A  actions: M * K placements and, last, void
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]
FloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
KeyArray = npt.NDArray[np.uint64]
TimeArray = npt.NDArray[np.integer | np.floating]  # whole steps, or time
Json = Mapping[str, "Json"] | Sequence["Json"] | str | float | bool | None  # content of a JSON or YAML file

LOG_NAME, NODES_NAME = "log", "nodes"  # in the folder of a scenario's log
THOUSANDTHS = 1000  # of a unit: how amounts are counted
MOST_KINDS = 63  # of machines; the kinds of a job are the bits of one number
ANY_KIND = np.uint64(2**MOST_KINDS - 1)  # the job runs everywhere
SHORTEST_BOUNDED = 10.0  # time units: least run time in bounded slowdown (Feitelson)
SPLITS = ("train", "validation", "test")
SPLIT_NUMBERS = {name: number for number, name in enumerate((*SPLITS, "fresh"))}
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's step: 2^64 over the golden ratio


class Observation(NamedTuple):
    """All that a policy may see: M waiting jobs x K machines, for B episodes."""

    free: IntArray  # [B, K, T, R]  units free in each step to come; row 0 is now
    demand: IntArray  # [B, M, R]     units the waiting job wants; 0 = empty slot
    duration: TimeArray  # [B, M]        its run time, or the known estimate; 0 = empty slot
    waited: TimeArray  # [B, M]        since its arrival
    backlog: IntArray  # [B]           waiting jobs without a slot
    backlog_head: TimeArray  # [B, R + 1]    duration and demand of the first of them; 0 = none
    capacity: IntArray  # [B, K, R]     units in all
    since_arrival: TimeArray  # [B]           since a job last arrived
    legal: BoolArray  # [B, M, K]     may the job be placed: now, or ahead where the scenario lets it?
    fits_now: BoolArray  # [B, M, K]     would it start at once?
    now: TimeArray  # [B]           current step, or time
    nodes: IntArray  # [B, M]        machines it runs on at once; 0 = empty slot
    fits_in: FloatArray  # [B, M]     time until it fits, by known run times of running jobs; 0 if `free` has a horizon
    arrived: FloatArray  # [B, 2 + R]  jobs so far, their duration, and duration * demand; 0 if unknown
    may_idle: BoolArray  # [B]         has a job arrived recently, so that void is always legal?
    to_end: FloatArray  # [B]         time until arrivals end, by the scenario; inf if unknown
    load: FloatArray  # [B]  arriving work, in percent of the cluster's capacity, by the scenario; nan if unknown

    def take(self, rows: IntArray | slice) -> "Observation":
        """Return the observation of some episodes."""
        return Observation._make(field[rows] for field in self)


Policy = Callable[[Observation, FloatArray], IntArray]  # (view, uniform draws [B] in [0, 1)) -> actions [B]


class CompiledRule(NamedTuple):
    """The compiled rule equal to a policy, so that simulators need not call the policy."""

    rule: str  # a word of RULES of heuristics.compiled
    knob: float = 0.0
    knobs: tuple[float, float] | None = None  # of a rule that has two
    weights: tuple[float, ...] | None = None  # of a rule that adds up features


def idle(view: Observation) -> BoolArray:
    """Return whether no job holds a unit in any step of the horizon, per episode [B]."""
    return np.asarray((view.free == view.capacity[:, :, None, :]).all(axis=(1, 2, 3)))


def legal_actions(view: Observation) -> BoolArray:
    """Return which actions [B, A] may be chosen.

    Void is illegal only while nothing runs, a waiting job could start, and no job has arrived for the scenario's
    `stall`: otherwise a deterministic policy could idle for ever.
    """
    placements = view.legal.reshape(len(view.now), -1)
    void = view.may_idle | ~(idle(view) & view.fits_now.any(axis=(1, 2)))
    return np.concatenate([placements, void[:, None]], axis=1)


def keys(seed: int, jobset: IntArray, episode: IntArray) -> KeyArray:
    """Return the random key of each (jobset, episode), which fully determines its draws."""
    # Each number enters after the ones before it are mixed, so that exchanging two of them changes the key.
    mixed = _mix(np.full(len(jobset), seed, dtype=np.uint64) + GOLDEN)
    mixed = _mix((mixed ^ jobset.astype(np.uint64)) + GOLDEN)
    return _mix((mixed ^ episode.astype(np.uint64)) + GOLDEN)


def uniform(key: KeyArray, decision: IntArray) -> FloatArray:
    """Return the uniform draw in [0, 1) of each key's decision (a counter-based SplitMix64)."""
    bits = _mix(key + decision.astype(np.uint64) * GOLDEN)
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) / float(1 << 53))


def _mix(bits: KeyArray) -> KeyArray:
    """SplitMix64's finaliser (Steele, Lea, Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: KeyArray = bits ^ (bits >> np.uint64(31))
    return mixed
