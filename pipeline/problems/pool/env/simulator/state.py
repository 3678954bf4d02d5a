"""State of every episode of the compiled simulator."""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, JobSet, room


class State(NamedTuple):
    """Everything that kernels read and write; episodes and jobs are numbered as in the batch.

    The horizon is a ring, so that no data is moved when a step passes: the row of step now + t is
    (head + t) modulo T.
    """

    first: IntArray  # [B + 1]
    arrival: IntArray  # [J]
    duration: IntArray  # [J]
    requested: IntArray  # [J]           the requested duration; the same array where run times are known
    demand: IntArray  # [J, R]
    arrived: FloatArray  # [J + 1, 2 + R]  sums over the preceding jobs: 1, requested steps, requested steps * demand
    capacity: IntArray  # [R]
    start: IntArray  # [J]           -1 = not started
    withheld: IntArray  # [J]           steps that passed although the job fitted
    free: IntArray  # [B, T, R]     a ring
    head: IntArray  # [B]           row of the present step in the ring
    slot_job: IntArray  # [B, M]        -1 = empty
    slot_duration: IntArray  # [B, M]        requested duration of its job; 0 = empty
    slot_demand: IntArray  # [B, M, R]     demand of its job; 0 = empty
    fits_now: BoolArray  # [B, M]
    legal: BoolArray  # [B, M]        the same array as `fits_now` if jobs are never placed ahead
    fitting: IntArray  # [B]           number of slots whose job fits now
    placeable: IntArray  # [B]           number of slots whose job may be placed
    queue: IntArray  # [B]           first job of the backlog, which ends before `to_come`
    to_come: IntArray  # [B]           the next job to arrive
    now: IntArray  # [B]
    last_arrival: IntArray  # [B]
    leaving: IntArray  # [B, T]        number of jobs whose last step is this row of the ring
    leaving_inverse: FloatArray  # [B, T]        sum of their 1 / duration; no columns without rewards
    running: IntArray  # [J]           running jobs, from each episode's first job on; empty if run times are known
    runs: IntArray  # [B]           number of running jobs
    present: IntArray  # [B]           jobs in the system
    inverse: FloatArray  # [B]           sum of their 1 / duration; only for rewards
    finished: IntArray  # [B]
    unstarted: IntArray  # [B]           number of measured jobs that have not started; -1 if all jobs count
    withheld_steps: IntArray  # [B]
    used: FloatArray  # [B]
    rewards: FloatArray  # [B, steps]    of step [t, t + 1); no columns without an objective
    gained: FloatArray  # [B]           rewards so far; 0 without an objective
    done: BoolArray  # [B]
    load: FloatArray  # [B]           in percent; nan: unknown to policies


class Rules(NamedTuple):
    """Constants of a run."""

    place_ahead: bool
    step_limit: int
    objective: int
    skip_forced: bool  # carry out forced moves without asking
    estimated: bool  # do some jobs run longer or shorter than requested?
    stall: int  # steps without an arrival after which an idle cluster must start a job that fits
    arrivals_end: int  # step at which arrivals end; -1: unknown to policies
    first: int = 0  # jobs that arrive in [first, after) are measured
    after: int = 0


def empty_state(jobs: JobBatch, cluster: Cluster, rewarded_steps: int, reusable: bool = False) -> State:
    """Return the state before step 0, without arrivals; `reusable` leaves room for estimates even if all are exact."""
    episodes, rows, resources = jobs.episodes, cluster.horizon, len(cluster.capacity)
    capacity = np.array(cluster.capacity, dtype=np.int16)
    slots = (episodes, cluster.slots)
    fits_now = np.zeros(slots, dtype=np.bool_)
    requested = requested_steps(jobs, cluster)
    duration = jobs.duration.astype(np.int16)
    unstarted = np.full(jobs.episodes, -1)
    if cluster.measured is not None:
        first, after = cluster.measured
        unstarted = np.diff(np.append(0, np.cumsum((jobs.arrival >= first) & (jobs.arrival < after)))[jobs.first])
    load = np.full(jobs.episodes, np.nan if cluster.load is None else cluster.load)
    known = jobs.estimate is None or (not reusable and np.array_equal(requested, jobs.duration))
    return State(
        first=jobs.first,
        arrival=jobs.arrival.astype(np.int64),
        duration=duration,
        requested=duration if known else requested.astype(np.int16),
        demand=jobs.demand.astype(np.int16),
        arrived=arrived_before(requested, jobs.demand),
        capacity=capacity,
        start=np.full(len(jobs.arrival), -1, dtype=np.int64),
        withheld=np.zeros(len(jobs.arrival), dtype=np.int32),
        free=np.ascontiguousarray(np.broadcast_to(capacity, (episodes, rows, resources))),
        head=np.zeros(episodes, dtype=np.int64),
        slot_job=np.full(slots, -1, dtype=np.int64),
        slot_duration=np.zeros(slots, dtype=np.int16),
        slot_demand=np.zeros((*slots, resources), dtype=np.int16),
        fits_now=fits_now,
        legal=np.zeros_like(fits_now) if cluster.place_ahead else fits_now,
        fitting=np.zeros(episodes, dtype=np.int64),
        placeable=np.zeros(episodes, dtype=np.int64),
        queue=jobs.first[:-1].copy(),
        to_come=jobs.first[:-1].copy(),
        now=np.zeros(episodes, dtype=np.int64),
        last_arrival=np.zeros(episodes, dtype=np.int64),
        leaving=np.zeros((episodes, rows), dtype=np.int32),
        leaving_inverse=np.zeros((episodes, rows if rewarded_steps else 0)),
        running=np.zeros(0 if known else len(jobs.arrival), dtype=np.int64),
        runs=np.zeros(episodes, dtype=np.int64),
        present=np.zeros(episodes, dtype=np.int64),
        inverse=np.zeros(episodes),
        finished=np.zeros(episodes, dtype=np.int64),
        unstarted=unstarted,
        withheld_steps=np.zeros(episodes, dtype=np.int32),
        used=np.zeros(episodes),
        rewards=np.zeros((episodes, rewarded_steps)),
        gained=np.zeros(episodes),
        done=unstarted == 0,
        load=load if jobs.load is None else np.where(np.isnan(jobs.load), load, jobs.load),
    )


def state_under_way(
    jobs: JobBatch, cluster: Cluster, start: IntArray, free: IntArray, now: int, last_arrival: int, arrived: FloatArray
) -> State:
    """Return the state of one episode whose jobs have all arrived with known run times, without rewards.

    Args:
        jobs: first the running jobs and those with a reserved start, then the waiting ones in order of arrival.
        cluster: the cluster that they run on.
        start: [H] first steps of the H jobs that do not wait; a job that ends beyond the horizon seems to end with it.
        free: units [T, R] that these leave free in each step from now on.
        now: the current step.
        last_arrival: step of the last arrival.
        arrived: sums over all jobs so far [2 + R]; see `Observation.arrived`.
    """
    s, runs, count = empty_state(jobs, cluster, 0), len(start), len(jobs.arrival)
    s.start[:runs], s.free[0], s.arrived[:-1], s.arrived[-1] = start, free, 0.0, arrived
    np.add.at(s.leaving[0], np.clip(start + s.duration[:runs] - now, 1, cluster.horizon) - 1, 1)
    slots = min(count - runs, cluster.slots)
    mine = np.arange(runs, runs + slots)
    s.slot_job[0, :slots], s.slot_duration[0, :slots], s.slot_demand[0, :slots] = mine, s.duration[mine], s.demand[mine]
    fits = room(free[None], jobs.demand[None, mine], jobs.duration[None, mine])[0]
    s.legal[0, :slots] = fits.any(axis=1)
    s.fits_now[0, :slots] = fits[:, 0]  # the same array if jobs are never placed ahead
    s.fitting[0], s.placeable[0] = s.fits_now.sum(), s.legal.sum()
    s.queue[0], s.to_come[0], s.present[0] = runs + slots, count, count
    s.now[0], s.last_arrival[0], s.done[0] = now, last_arrival, count == 0
    return s


def observed_state(view: Observation) -> State:
    """Return observations of one machine as episodes from which compiled rules read the current step."""
    count, slots, resources = view.demand.shape
    places = np.arange(count * slots).reshape(count, slots)
    jobs = JobBatch(
        np.arange(count + 1) * slots,
        (view.now[:, None] - view.waited).ravel().astype(np.int64),
        view.duration.ravel().astype(np.int64),
        view.demand.reshape(-1, resources),
    )
    capacity = view.capacity.max(axis=(0, 1), initial=1)
    s = empty_state(jobs, Cluster(tuple(capacity.tolist()), view.free.shape[2], slots, 0, place_ahead=True), 0)
    s.free[:], s.slot_job[:] = view.free[:, 0], np.where(view.duration > 0, places, -1)
    s.slot_duration[:], s.slot_demand[:] = view.duration, view.demand
    s.legal[:], s.fits_now[:] = view.legal[:, :, 0], view.fits_now[:, :, 0]
    s.now[:], s.last_arrival[:], s.load[:] = view.now, view.now - view.since_arrival, view.load
    # Sums over arrivals are differences of two rows; the last row is 0.
    arrived = np.concatenate([view.arrived, np.zeros((1, view.arrived.shape[1]))]).astype(np.float64)
    episode = np.arange(count)
    return s._replace(
        arrived=arrived, first=np.full(count + 1, count), to_come=episode, queue=episode - view.backlog.astype(np.int64)
    )


def requested_steps(jobs: JobSet | JobBatch, cluster: Cluster) -> IntArray:
    """Return the run times [J] known to policies, in steps: durations, or estimates cut to the horizon.

    Raises:
        ValueError: jobs have estimates and are placed ahead: one that overruns would collide with reservations.
    """
    if jobs.estimate is None:
        return jobs.duration
    other = jobs.estimate != jobs.duration
    if cluster.place_ahead and other.any():
        job = int(other.argmax())
        runs = f"job {job} requests {jobs.estimate[job]} steps and runs {jobs.duration[job]}"
        raise ValueError(f"{runs}: jobs can be placed ahead only where run times are known")
    # A job with an exact estimate is treated as if run times were known: if too long for the horizon, it never starts.
    return np.where(other, np.minimum(jobs.estimate, cluster.horizon), jobs.duration)


def arrived_before(requested: IntArray, demand: IntArray) -> FloatArray:
    """Return the sums [J + 1, 2 + R] over the preceding jobs, as in `Observation.arrived`."""
    steps = requested.astype(float)[:, None]
    each = np.concatenate([np.ones_like(steps), steps, steps * demand], axis=1)
    return np.concatenate([np.zeros((1, each.shape[1])), each.cumsum(axis=0)])
