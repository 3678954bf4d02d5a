"""The nouns of the project, the glossary of dimensions, and what a policy and a simulator are.

Glossary, used beside every field and nowhere repeated:

    B  episodes played side by side      J  jobs of one jobset (or of all episodes, flattened)
    M  job slots a policy sees           K  machines (1: DeepRM's pooled cluster)
    T  steps of the horizon              R  resources
    A  actions: M * K placements and, last, void
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.config import Scenario

IntArray = npt.NDArray[np.integer]
FloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
KeyArray = npt.NDArray[np.uint64]
TimeArray = npt.NDArray[np.integer | np.floating]  # whole steps, or time

SPLITS = ("train", "validation", "test")
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's step: 2^64 over the golden ratio
OBJECTIVES = ("slowdown", "completion_time", "makespan", "utilisation")


class Cluster(NamedTuple):
    """What a simulator must know of a scenario."""

    capacity: tuple[int, ...]  # [R]  units of each resource
    horizon: int  # T
    slots: int  # M
    backlog: int  # jobs the backlog's image can show
    place_ahead: bool  # may a job be given a start later than now?
    usable: int  # rows of the horizon a job may fill; below T only to replay a peer's bug

    @classmethod
    def of(cls, scenario: Scenario) -> "Cluster":
        """Return the cluster of a scenario."""
        units = tuple(scenario.resources.values())
        rows = scenario.horizon
        return cls(units, rows, scenario.slots, scenario.backlog, scenario.place_ahead, rows)


class JobSet(NamedTuple):
    """The jobs of one episode in order of arrival."""

    arrival: IntArray  # [J]     step of arrival, never falling
    duration: IntArray  # [J]     steps, at least 1
    demand: IntArray  # [J, R]  units held while running
    told: IntArray | None = None  # [J]     steps that policies are told, at least 1; None: durations are known

    @property
    def seen(self) -> IntArray:
        """Return the steps [J] that policies are told."""
        return self.duration if self.told is None else self.told


class JobBatch(NamedTuple):
    """The jobsets of B episodes end to end; episode b owns the jobs first[b] : first[b + 1]."""

    first: IntArray  # [B + 1]
    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    demand: IntArray  # [J, R]
    told: IntArray | None = None  # [J]  None: durations are known

    @property
    def seen(self) -> IntArray:
        """Return the steps [J] that policies are told."""
        return self.duration if self.told is None else self.told

    @property
    def episodes(self) -> int:
        """Return B."""
        return len(self.first) - 1

    @property
    def episode(self) -> IntArray:
        """Return the episode [J] that owns each job."""
        return np.repeat(np.arange(self.episodes), np.diff(self.first))

    def take(self, episodes: IntArray) -> "JobBatch":
        """Return the batch of some episodes, in that order; one may be named often.

        >>> one, other = (JobSet(np.array([k]), np.array([1]), np.array([[1]])) for k in (4, 7))
        >>> batch([one, other]).take(np.array([1, 1])).arrival
        array([7, 7])
        """
        length = np.diff(self.first)[episodes]
        first = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        rows = np.arange(first[-1]) + np.repeat(self.first[episodes] - first[:-1], length)
        told = None if self.told is None else self.told[rows]
        return JobBatch(first, self.arrival[rows], self.duration[rows], self.demand[rows], told)


class Observation(NamedTuple):
    """All that a policy may see: M waiting jobs x K machines, for B episodes."""

    free: IntArray  # [B, K, T, R]  units free in each step to come; row 0 is now
    demand: IntArray  # [B, M, R]     units the waiting job wants; 0 = empty slot
    duration: TimeArray  # [B, M]        it will run, or is said to; 0 = empty slot
    waited: TimeArray  # [B, M]        since its arrival
    backlog: IntArray  # [B]           jobs waiting behind the slots
    backlog_head: TimeArray  # [B, R + 1]    duration and demand of the first of them; 0 = none
    capacity: IntArray  # [B, K, R]     units in all
    since_arrival: TimeArray  # [B]           since a job last arrived
    legal: BoolArray  # [B, M, K]     may the job be placed: now, or ahead where the scenario lets it?
    fits_now: BoolArray  # [B, M, K]     would it start at once?
    now: TimeArray  # [B]           current step, or time
    nodes: IntArray  # [B, M]        machines it runs on at once; 0 = empty slot
    fits_in: FloatArray  # [B, M]     time until it fits by what is told of running jobs; 0 where `free` shows a horizon
    arrived: FloatArray  # [B, 2 + R]  jobs so far, their duration, and duration * demand; 0 where not told

    def take(self, rows: IntArray | slice) -> "Observation":
        """Return the observation of some episodes."""
        return Observation._make(field[rows] for field in self)


class Seen(NamedTuple):
    """What an image shows of D observations of one machine, and what may be done then: compact, kept by the million.

    In the default scenario 70 + 8 + 11 bytes each. The type of `cells` is the smallest that holds capacity and horizon.
    """

    cells: IntArray  # [D, T * R + M * (1 + R)]  free units, row by row; then duration and demand, slot by slot
    rest: IntArray  # [D, 2]       jobs in the backlog; steps since a job last arrived
    may: BoolArray  # [D, A]       the legal actions

    def take(self, rows: IntArray | slice) -> "Seen":
        """Return some of them."""
        return Seen(self.cells[rows], self.rest[rows], self.may[rows])


class Schedule(NamedTuple):
    """What became of every job of a batch, and of every episode."""

    start: IntArray  # [J]  first step of each job; -1 = never started
    finish: IntArray  # [J]  step after its last one; -1 = unfinished when the episode was cut
    withheld: IntArray  # [J]  steps that passed while it stood in a slot and would have fitted
    steps: IntArray  # [B]  length of each episode: its makespan, unless cut
    withheld_steps: IntArray  # [B]  steps that passed while at least one such job was withheld
    used: FloatArray  # [B]  shares of capacity in use, summed over resources and steps


Policy = Callable[[Observation, FloatArray], IntArray]  # (view, uniform draws [B] in [0, 1)) -> actions [B]


class Twin(NamedTuple):
    """The compiled rule that decides as a policy does, for simulators to play without asking it."""

    rule: str  # a word of RULES of simulator.twins, or of simulator.events.rules
    knob: float = 0.0
    knobs: tuple[float, float] | None = None  # of a rule that has two
    weights: tuple[float, ...] | None = None  # of a rule that adds up features


class Simulator(Protocol):
    """Episodes that wait for decisions; those in `rows` are still going."""

    @property
    def rows(self) -> IntArray:
        """Return the episodes [B'] that await a decision."""

    def observe(self, rows: IntArray) -> Observation:
        """Return what the policy sees in some episodes."""

    def step(self, rows: IntArray, actions: IntArray) -> None:
        """Carry out one decision in each of some episodes."""

    def schedule(self) -> Schedule:
        """Return what has become of every job so far."""


def batch(jobsets: Sequence[JobSet]) -> JobBatch:
    """Lay jobsets end to end.

    >>> one = JobSet(np.array([0]), np.array([2]), np.array([[3, 1]]))
    >>> batch([one, one]).first
    array([0, 1, 2])
    """
    first = np.concatenate([[0], np.cumsum([len(jobs.arrival) for jobs in jobsets])]).astype(np.int64)
    fields = zip(*((jobs.arrival, jobs.duration, jobs.demand, jobs.seen) for jobs in jobsets), strict=True)
    # One memory order whatever the jobsets came from: numba compiles its kernels anew for another.
    arrival, duration, demand, seen = (np.ascontiguousarray(np.concatenate(each), dtype=np.int64) for each in fields)
    told = seen if any(jobs.told is not None for jobs in jobsets) else None
    return JobBatch(first, arrival, duration, demand, told)


def repeat(jobsets: Sequence[JobSet], episodes: int) -> list[JobSet]:
    """Return every jobset `episodes` times in a row."""
    return [jobs for jobs in jobsets for _ in range(episodes)]


def idle(view: Observation) -> BoolArray:
    """Return whether no job holds a unit in any step of the horizon, per episode [B]."""
    return np.asarray((view.free == view.capacity[:, :, None, :]).all(axis=(1, 2, 3)))


def legal_actions(view: Observation) -> BoolArray:
    """Return which actions [B, A] may be chosen.

    Progress rule: void is not legal while the cluster is idle and a waiting job could start, or a deterministic policy
    could stand still for ever.
    """
    placements = view.legal.reshape(len(view.now), -1)
    void = ~(idle(view) & view.fits_now.any(axis=(1, 2)))
    return np.concatenate([placements, void[:, None]], axis=1)


def cell_type(largest: int) -> type[np.unsignedinteger]:
    """Return the type of cells none of which is above `largest`."""
    return np.uint8 if largest <= np.iinfo(np.uint8).max else np.uint16


def compact(view: Observation) -> Seen:
    """Return observations in compact form.

    A job longer than the horizon fills its block, as in the image.
    """
    count, _, steps, resources = view.free.shape
    slots = view.duration.shape[1]
    kind = cell_type(max(steps, int(view.capacity.max(initial=0))))
    cells = np.empty((count, steps * resources + slots * (1 + resources)), dtype=kind)
    cells[:, : steps * resources] = view.free[:, 0].reshape(count, -1)
    blocks = cells[:, steps * resources :].reshape(count, slots, 1 + resources)
    blocks[:, :, 0] = np.minimum(view.duration, steps)
    blocks[:, :, 1:] = view.demand
    cells[:, steps * resources :] = blocks.reshape(count, -1)
    rest = np.stack([view.backlog, view.since_arrival], axis=1).astype(np.int32)
    return Seen(cells, rest, legal_actions(view))


def keys(seed: int, jobset: IntArray, episode: IntArray) -> KeyArray:
    """Return the random key of each (jobset, episode); what is drawn from it depends on nothing else."""
    # Each number enters unmixed into what is mixed already, so that no two of them can change places.
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
