"""Each problem's part of an environment: its spaces, jobsets and simulator."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from pipeline.core import types as core
from pipeline.core.config import Params, Tasks
from pipeline.core.types import BoolArray, FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.interactive.machines.rlscheduler_workload import RUN, read_protocol
from pipeline.interactive.machines.rlscheduler_workload import Protocol as Log
from pipeline.problems.groups.env import nouns as groups
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.simulator.rewards import WAITING
from pipeline.problems.groups.env.workload.source import cluster_of, configurations_of
from pipeline.problems.groups.env.workload.source import source as groups_source
from pipeline.problems.machines.env import nouns as machines
from pipeline.problems.machines.env.simulator.batch import COSTS
from pipeline.problems.machines.env.simulator.batch import Simulator as MachinesSimulator
from pipeline.problems.machines.env.storage import machines_of
from pipeline.problems.machines.env.workload.source import source as machines_source
from pipeline.problems.pool.env import nouns as pool
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.features import encode
from pipeline.problems.pool.env.simulator.rewards import REWARDS
from pipeline.problems.pool.env.workload.source import source as pool_source
from pipeline.simulation.features import JOB, QUEUE, Features, encoded, image
from pipeline.simulation.simulator import Simulator, roomy

PEER_JOBS, FOREVER = 256, 1e15  # jobs in an episode of RLScheduler's protocol, which has no time limit

Jobs = Any  # of one episode, in the problem's own type
Observations = dict[str, Any]  # arrays, one row for each episode


class Source(Protocol):
    """Origin of jobsets."""

    def fresh(self, load: int, number: int) -> Jobs:
        """Return a training jobset."""

    def split(self, name: str) -> Mapping[int, Sequence[Jobs]]:
        """Return the jobsets of a split, by load."""


class Game:
    """One problem's part of an environment; subclasses set the attributes."""

    params: Params
    name: str  # of the scenario
    row: Any  # of params.yaml
    source: Source
    measured: tuple[int, int] | None = None  # steps [first, after) whose arrivals count; None: all
    loads: tuple[int, ...]  # percent
    observation_space: spaces.Dict
    action_space: spaces.Discrete | spaces.MultiDiscrete

    def split(self, name: str) -> Mapping[int, Sequence[Jobs]]:
        """Return the jobsets of a split, by load; they are drawn once."""
        splits: dict[str, Mapping[int, Sequence[Jobs]]] = self.__dict__.setdefault("_splits", {})
        if name not in splits:
            splits[name] = self.source.split(name)
        return splits[name]

    def simulator(self, jobsets: Sequence[Jobs], room: int = 0) -> Simulator[Any, Any]:
        """Return a simulator of jobsets at their first decision; with `room` for some jobs each, a reusable one."""
        raise NotImplementedError

    def look(self, simulator: Any, rows: IntArray) -> tuple[Observations, BoolArray]:
        """Return observations of some episodes, and the mask [rows, actions] of legal actions."""
        return self.features(simulator.observe(rows))

    def features(self, view: Any) -> tuple[Observations, BoolArray]:
        """Return observations and masks from a view, the observation that the problem's own policies get."""
        raise NotImplementedError

    def decode(self, actions: IntArray) -> Any:
        """Return actions of the space in the simulator's form."""
        return actions


def _boxes(**shapes: tuple[int, ...]) -> spaces.Dict:
    return spaces.Dict({name: spaces.Box(0.0, 1.0, shape, np.float32) for name, shape in shapes.items()})


def _flat(seen: Features) -> Observations:
    """Return features as vectors: SB3 mistakes arrays of more dimensions for images, and warns."""
    return {name: value.reshape(len(value), -1) for name, value in seen._asdict().items()}


def _one_of(place: str, word: str, words: Sequence[str]) -> str:
    if word not in words:
        raise UserError(f"{place}: expected one of {', '.join(words)}, got '{word}'")
    return word


class PlacingGame(Game):
    """Common part of problems that place jobs: one action for each slot and machine, and void, the last."""

    scale: float  # time that features show as one half

    def _set_spaces(self, slots: int, machines: int, steps: int, resources: int) -> None:
        self.observation_space = _boxes(
            jobs=(slots * (JOB + resources),), cluster=(machines * steps * resources,), queue=(QUEUE + resources,)
        )
        self.action_space = spaces.Discrete(slots * machines + 1)

    def features(self, view: core.Observation) -> tuple[Observations, BoolArray]:
        """Return features and masks."""
        return _flat(encoded(view, self.scale)), core.legal_actions(view)


class PoolGame(PlacingGame):
    """One pooled cluster in steps."""

    def __init__(
        self, params: Params, name: str, objective: str = "slowdown", skip_forced: bool = True, obs: str = "features"
    ) -> None:
        self.params, self.name, self.row = params, name, params.pool_scenario(name)
        self._image = _one_of("obs", obs, ("features", "image")) == "image"
        self._objective, self._skip_forced = _one_of("objective", objective, tuple(REWARDS)), skip_forced
        source = pool_source(params, name, Path(getattr(params.workload_of(self.row), "path", "")))
        self.source, self.loads = source, tuple(source.loads(self.row.loads))
        self.cluster, self.scale = pool.Cluster.of(self.row), self.row.horizon / 4
        self.measured = self.row.measured
        self._set_spaces(self.row.slots, 1, self.row.horizon, len(self.row.resources))
        if self._image:
            units, backlog = sum(self.cluster.capacity), -(-self.row.backlog // self.row.horizon)
            shape = (1, self.row.horizon, units * (1 + self.row.slots) + backlog + 1)
            self.observation_space = spaces.Dict({"image": spaces.Box(0, 255, shape, np.uint8)})

    def simulator(self, jobsets: Sequence[pool.JobSet], room: int = 0) -> Batched:
        """Return a simulator of jobsets; see `Game`."""
        jobs = pool.batch(jobsets)
        jobs = roomy(jobs._replace(load=None), room) if room else jobs  # the episodes that overwrite them have loads
        limit = self.row.step_limit
        return Batched(jobs, self.cluster, limit, self._objective, self._skip_forced, reusable=True)

    def look(self, simulator: Batched, rows: IntArray) -> tuple[Observations, BoolArray]:
        """Return features and masks by compiled code, or images by plain code."""
        if self._image:
            return self.features(simulator.observe(rows))
        count, slots, resources = len(rows), self.row.slots, len(self.row.resources)
        shapes = ((slots, JOB + resources), (self.row.horizon * resources,), (QUEUE + resources,))
        seen = Features._make(np.empty((count, *shape), dtype=np.float32) for shape in shapes)
        legal = np.empty((count, slots + 1), dtype=np.bool_)
        simulator.run_kernel(encode, rows, self.scale, seen, legal)
        return _flat(seen), legal

    def features(self, view: core.Observation) -> tuple[Observations, BoolArray]:
        """Return features or images, and masks."""
        if self._image:
            return {"image": image(view, self.row.backlog)}, core.legal_actions(view)
        return super().features(view)


class MachinesGame(PlacingGame):
    """Many machines in continuous time."""

    def __init__(self, params: Params, name: str, objective: str = "slowdown") -> None:
        row = params.machines_scenario(name)
        self.params, self.name, self.row, self.loads = params, name, row, tuple(row.loads)
        source = machines_source(params, name, Path(getattr(row.workload, "path", "")))
        self.source, self.machines = source, machines_of(row, source.park)
        self.scale = row.workload.median if isinstance(row.workload, Tasks) else source.park.unit
        self._objective = _one_of("objective", objective, tuple(COSTS))
        self._set_spaces(row.slots, len(self.machines.kind), 1, self.machines.capacity.shape[1])

    def simulator(self, jobsets: Sequence[machines.Jobs], room: int = 0) -> MachinesSimulator:
        """Return a simulator of jobsets; see `Game`."""
        jobs = machines.end_to_end(jobsets)
        jobs = roomy(jobs, room) if room else jobs
        return MachinesSimulator(jobs, self.machines, COSTS[self._objective](jobs))


class GroupsGame(Game):
    """User groups that share a cluster: an action gives each group a level of units and an order of its queues."""

    def __init__(self, params: Params, name: str, objective: str = "delay") -> None:
        row = params.groups_scenario(name)
        self.params, self.name, self.row, self.loads = params, name, row, tuple(row.loads)
        self.source = groups_source(params, name, Path(getattr(row.workload, "path", "")))
        self.cluster, self.configurations = cluster_of(row), configurations_of(row)
        self._objective = _one_of("objective", objective, tuple(WAITING))
        number, resources = row.groups, len(row.resources)
        queues = number * self.cluster.queues * (6 + 2 * resources)
        self.observation_space = _boxes(queues=(queues,), groups=(number * (3 + 3 * resources),), time=(1,))
        self.action_space = spaces.MultiDiscrete([self.configurations.total] * number)

    def simulator(self, jobsets: Sequence[groups.Jobs], room: int = 0) -> GroupsSimulator:
        """Return a simulator of jobsets; see `Game`."""
        jobs = groups.batch(jobsets)
        jobs = roomy(jobs, room) if room else jobs
        return GroupsSimulator(jobs, self.cluster, WAITING[self._objective](jobs))

    def features(self, view: groups.Observation) -> tuple[Observations, BoolArray]:
        """Return the features of observations and their masks, in which every action is legal."""
        count, time = len(view.now), self.row.interval
        units = self.cluster.capacity
        queues = [view.waiting, view.waiting_work / time, view.waited / time, view.head_waited / time]
        queues += [view.head_estimate / time, view.recent_jobs]
        demands = (view.waiting_demand / units, view.head_demand / units)
        shown = np.concatenate([_half(np.stack(queues, axis=-1)), *(_half(demand) for demand in demands)], axis=-1)
        own = _half(np.stack([view.running, view.left / time], axis=-1))
        order = view.order[:, :, None] / max(1, self.configurations.orders - 1)
        amounts = [np.minimum(amount / units, 1.0) for amount in (view.used, view.releasing, view.share)]
        return {
            "queues": shown.reshape(count, -1).astype(np.float32),
            "groups": np.concatenate([own, order, *amounts], axis=-1).reshape(count, -1).astype(np.float32),
            "time": np.minimum(view.now / self.row.time_limit, 1.0)[:, None].astype(np.float32),
        }, np.ones((count, self.row.groups * self.configurations.total), dtype=np.bool_)

    def decode(self, actions: IntArray) -> groups.Setting:
        """Return settings: configuration a has level a // O and order a % O."""
        level, order = np.divmod(actions, self.configurations.orders)
        return groups.Setting(self.configurations.units[level], order)


def _half(amount: FloatArray) -> FloatArray:
    return np.asarray(amount / (amount + 1.0))


class PeerSource:
    """RLScheduler's sequences: consecutive jobs of a log, all at the log's own load."""

    def __init__(self, log: Log, seed: int, jobs: int) -> None:
        self._log, self._seed, self._jobs = log, seed, jobs
        count = len(log.fields)
        train, validation = count * 3 // 5, count * 4 // 5
        self._parts = {"train": (0, train), "validation": (train, validation), "test": (validation, count)}
        if count // 5 < jobs:
            raise UserError(f"expected a log of at least {5 * jobs} jobs, found {count}")

    def fresh(self, load: int, number: int) -> machines.Jobs:
        """Return a sequence that begins anywhere in the training part."""
        first, after = self._parts["train"]
        rng = np.random.default_rng([self._seed, core.SPLIT_NUMBERS["fresh"], number])
        return self._log.jobs(int(rng.integers(first, after - self._jobs + 1)), self._jobs)

    def split(self, name: str) -> dict[int, list[machines.Jobs]]:
        """Return the consecutive sequences of a part."""
        first, after = self._parts[name]
        return {100: [self._log.jobs(k, self._jobs) for k in range(first, after - self._jobs + 1, self._jobs)]}


class PeerGame(MachinesGame):
    """RLScheduler's cluster: the processors of a log as one pool, jobs in the chosen order, without backfilling."""

    def __init__(self, params: Params, log: Path, slots: int, objective: str = "bounded_slowdown") -> None:
        read = read_protocol(log)
        self.params, self.name, self.row, self.loads = params, "rlscheduler", None, (100,)
        self.source = PeerSource(read, params.seed, PEER_JOBS)
        capacity, kind = np.array([[read.processors * core.THOUSANDTHS]]), np.zeros(1, dtype=np.int64)
        self.machines = machines.Machines(capacity, kind, slots, machines.BLOCKING, FOREVER, FOREVER)
        self.scale = float(np.median(np.maximum(read.fields[:, RUN], 1.0)))
        self._objective = _one_of("objective", objective, tuple(COSTS))
        self._set_spaces(slots, 1, 1, 1)
