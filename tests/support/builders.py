"""Small instances for tests: jobsets, clusters, views, simulators, and a problem that is learned within seconds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from pipeline.core.config import Counts, Demand, Params, PoolScenario, Recipe, Streaming, Synthetic, load_params
from pipeline.core.types import Observation, Policy, keys
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.nouns import Cluster, CompactObservation, JobSet, Schedule, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.workload.synthetic import draw_jobset
from pipeline.simulation.rollout import play
from tests.oracles.pool import Timestep

REPOSITORY = Path(__file__).parents[2]
SPLIT = {"train": 5, "validation": 6, "fresh": 7}  # numbers of the tiny problem's random sequences
ONLY = np.array([0])  # the row of a simulator's only episode


def params() -> Params:
    """The repository's params.yaml."""
    return load_params(REPOSITORY / "params.yaml")


def jobset(*jobs: Sequence[int]) -> JobSet:
    """A jobset from (arrival, duration, demand of each resource)."""
    table = np.array(jobs, dtype=np.int64)
    return JobSet(table[:, 0], table[:, 1], table[:, 2:])


def cluster(*capacity: int, horizon: int = 4, slots: int = 2, backlog: int = 4, ahead: bool = False) -> Cluster:
    """A small cluster, by default of one resource with 3 units; when idle, it must start a job that fits."""
    return Cluster(capacity or (3,), horizon, slots, backlog, ahead, stall=0)


def observation(
    duration: Sequence[int],
    demand: Sequence[Sequence[int]] | None = None,
    free: Sequence[Sequence[int]] | None = None,
    capacity: Sequence[int] = (10, 10),
    waited: Sequence[int] | None = None,
    fits_now: Sequence[bool] | None = None,
    legal: Sequence[bool] | None = None,
    backlog: int = 0,
    since_arrival: int = 0,
    horizon: int = 20,
    may_idle: bool = False,
    to_end: float = np.inf,
    load: float = np.nan,
    now: int = 0,
) -> Observation:
    """One episode's view of one machine.

    By default, every job demands one unit and fits now, and nothing runs; rows that `free` omits are free.
    """
    steps = np.array(duration)
    full = steps > 0
    wanted = np.array([[int(waits)] * len(capacity) for waits in full] if demand is None else demand)
    rows = np.tile(np.array(capacity), (horizon, 1))
    if free is not None:
        rows[: len(free)] = free
    fits = full if fits_now is None else np.array(fits_now)
    may = fits if legal is None else np.array(legal)
    return Observation(
        free=rows[None, None],
        demand=wanted[None],
        duration=steps[None],
        waited=(np.zeros_like(steps) if waited is None else np.array(waited))[None],
        backlog=np.array([backlog]),
        backlog_head=np.zeros((1, len(capacity) + 1), dtype=np.int64),
        capacity=np.array([[capacity]]),
        since_arrival=np.array([since_arrival]),
        legal=may[None, :, None],
        fits_now=fits[None, :, None],
        now=np.array([now]),
        nodes=full.astype(np.int64)[None],
        fits_in=np.zeros((1, len(steps))),
        arrived=np.zeros((1, len(capacity) + 2)),
        may_idle=np.array([may_idle]),
        to_end=np.array([to_end]),
        load=np.array([load]),
    )


def many(view: Observation, count: int) -> Observation:
    """The same view, observed by `count` episodes."""
    return view.take(np.zeros(count, dtype=np.int64))


def start(
    kind: str, jobs: JobSet, of: Cluster, step_limit: int = 100, objective: str = "slowdown"
) -> Timestep | Batched:
    """A simulator of one episode: the plain one or the compiled one."""
    if kind == "plain":
        return Timestep(jobs, of, step_limit, objective)
    return Batched(batch([jobs]), of, step_limit, objective)


def act(simulator: Timestep | Batched, *actions: int) -> None:
    """Carry out actions in a simulator's only episode."""
    for action in actions:
        simulator.step(ONLY, np.array([action]))


def rewards(simulator: Timestep | Batched) -> list[float]:
    """Rewards of all steps so far in a simulator's only episode."""
    if isinstance(simulator, Timestep):
        return simulator.rewards
    return [float(reward) for reward in simulator.rewards[0, : simulator.schedule().steps[0]]]


def wander(view: Observation, draws: np.ndarray) -> np.ndarray:
    """Arbitrary actions, legal or not, including void."""
    return np.asarray((draws * (view.duration.shape[1] + 1)).astype(np.int64))


def random_jobset(rng: np.random.Generator, of: Cluster, jobs: int, steps: int) -> JobSet:
    """Jobs of any size that the empty cluster can run, arriving over some steps."""
    demand = np.column_stack([rng.integers(0, units + 1, jobs) for units in of.capacity])
    return JobSet(np.sort(rng.integers(0, steps, jobs)), rng.integers(1, of.horizon + 1, jobs), demand)


def viewed(of: Cluster, policy: Policy, episodes: int = 6, jobs: int = 12, seed: int = 0) -> Observation:
    """Observations of a policy on random jobsets, those of all decisions in one batch."""
    rng = np.random.default_rng(seed)
    jobsets = batch([random_jobset(rng, of, jobs, 10) for _ in range(episodes)])
    views: list[Observation] = []
    number = np.arange(episodes)
    simulator = Batched(jobsets, of, 60)
    play(simulator, policy, keys(seed, number, np.zeros_like(number)), lambda rows, view, actions: views.append(view))
    return Observation._make(np.concatenate(field) for field in zip(*views, strict=True))


def observed(of: Cluster, policy: Policy, episodes: int = 6, jobs: int = 12, seed: int = 0) -> CompactObservation:
    """The same observations in compact form."""
    return compact(viewed(of, policy, episodes, jobs, seed))


@st.composite
def clusters(draw: st.DrawFn, most_resources: int = 3, most_slots: int = 5) -> Cluster:
    """Clusters of any kind."""
    capacity = draw(st.lists(st.integers(1, 6), min_size=1, max_size=most_resources))
    horizon = draw(st.integers(3, 8))
    slots, backlog = draw(st.integers(1, most_slots)), draw(st.integers(0, 4))
    stall = draw(st.sampled_from([None, 0, 1, 3, 1000]))
    measured = draw(st.none() | st.tuples(st.integers(0, 4), st.integers(5, 12)))
    return Cluster(
        tuple(capacity),
        horizon,
        slots,
        backlog,
        draw(st.booleans()),
        stall,
        draw(st.none() | st.integers(1, 12)),
        measured=measured,
    )


@st.composite
def jobsets(draw: st.DrawFn, of: Cluster) -> JobSet:
    """A few jobs of any kind, some too long to ever start; or enough jobs to fill the cluster."""
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        return random_jobset(rng, of, jobs=draw(st.integers(10, 20)), steps=draw(st.integers(1, 10)))
    demand = [st.integers(0, units) for units in of.capacity]
    job = st.tuples(st.integers(0, 9), st.integers(1, of.horizon), *demand)
    return jobset(*sorted(draw(st.lists(job, min_size=1, max_size=6)), key=lambda fields: fields[0]))


def units_in_use(jobs: JobSet, schedule: Schedule, of: Cluster) -> np.ndarray:
    """Units [steps, R] held in every step, computed from starts and durations alone."""
    held = np.zeros((max(0, int(schedule.start.max())) + int(jobs.duration.max()), len(of.capacity)), dtype=np.int64)
    for begin, duration, demand in zip(schedule.start, jobs.duration, jobs.demand, strict=True):
        if begin >= 0:
            held[begin : begin + duration] += demand
    return held


TINY = PoolScenario(
    problem="pool",
    resources={"cpu": 4, "memory": 4},
    horizon=6,
    slots=3,
    backlog=6,
    place_ahead=False,
    step_limit=100,
    demand="wide",
    arrivals=Streaming(name="poisson", steps=12),
    loads=(120,),
    jobsets=Counts(train=40, validation=20, test=10),
    stall=0,  # expected values computed by hand: an idle cluster must start a job that fits
)
TINY_WORKLOAD = Synthetic(name="synthetic", short=(1, 2), long=(5, 6), short_share=0.7)
WIDE = Demand(dominant=(0.5, 1.0), other=(0.25, 0.5))


def tiny_jobset(load: int, split: int, number: int) -> JobSet:
    """A jobset of a problem that is learned within seconds: three slots, jobs either short or long."""
    return draw_jobset(TINY_WORKLOAD, WIDE, TINY, load, np.random.default_rng([7, split, load, number]))


def tiny_piece(split: str, load: int, number: int, steps: int) -> JobSet:
    """The beginning of a stream of the tiny problem."""
    longer = TINY.model_copy(update={"arrivals": Streaming(name="poisson", steps=steps)})
    return draw_jobset(TINY_WORKLOAD, WIDE, longer, load, np.random.default_rng([7, SPLIT[split], load, number]))


def tiny_task(recipe: Recipe, objective: str = "slowdown", step_limit: int = 100, seed: int = 3) -> Task:
    """The tiny problem as a task, to be learned by a recipe."""
    train, validation = ({120: [tiny_jobset(120, s, k) for k in range(count)]} for s, count in ((0, 40), (1, 30)))
    return Task(
        cluster=Cluster.of(TINY),
        step_limit=step_limit,
        objective=objective,
        recipe=recipe,
        seed=seed,
        loads=[120],
        train=train,
        validation=validation,
        fresh=lambda load, number: tiny_jobset(load, 2, number),
        stream=tiny_piece,
    )
