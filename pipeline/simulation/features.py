"""Observations as numbers in [0, 1], for external networks and the library's environments.

    jobs     [M, 6 + R]  for each slot: is there a job, its run time, its wait, does it fit now, the time until it
                         fits, the machines it needs; its demand of each resource
    cluster  [K * T * R] free share of each machine's resources, in each step of the horizon
    queue    [7 + R]     jobs in the backlog, the first one's run time; the longest wait in a slot, time since the last
                         arrival, time; is the end of arrivals known, time until it; demand of the backlog's first job

A time t becomes t / (t + scale), a number n of jobs n / (n + M), a demand its share of the largest machine. The time
until arrivals end is cut at LONG * scale. Compiled code (`pool/env/simulator/features.py`) writes identical bits.
"""

from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation, TimeArray

JOB, QUEUE = 6, 7  # number of features of a job, and of the queue, without the demands
LONG = 10.0  # scales: the maximum of the time until arrivals end, and the unit of the clock
CLOCK = 10  # maximum of the steps since the last arrival in the image


class Features(NamedTuple):
    """Features of B observations, each in [0, 1]."""

    jobs: FloatArray  # [B, M, JOB + R]
    cluster: FloatArray  # [B, K * T * R]
    queue: FloatArray  # [B, QUEUE + R]


def encoded(view: Observation, scale: float) -> Features:
    """Return observations as features; `scale` is the time that becomes one half."""
    count, slots = view.duration.shape
    units = np.maximum(view.capacity.max(axis=(0, 1), initial=0), 1)
    jobs = np.zeros((count, slots, JOB + len(units)), dtype=np.float32)
    jobs[..., 0] = view.duration > 0
    jobs[..., 1] = _squashed(view.duration, scale)
    jobs[..., 2] = _squashed(view.waited, scale)
    jobs[..., 3] = view.fits_now.any(axis=2)
    jobs[..., 4] = _squashed(np.minimum(view.fits_in, 1e9 * scale), scale)
    jobs[..., 5] = view.nodes / view.legal.shape[2]
    jobs[..., JOB:] = view.demand / units
    queue = np.zeros((count, QUEUE + len(units)), dtype=np.float32)
    queue[:, 0] = _squashed(view.backlog, slots)
    queue[:, 1] = _squashed(view.backlog_head[:, 0], scale)
    queue[:, 2] = _squashed(view.waited.max(axis=1), scale)
    queue[:, 3] = _squashed(view.since_arrival, scale)
    queue[:, 4] = _squashed(view.now, LONG * scale)
    known = np.isfinite(view.to_end)
    queue[:, 5] = known
    queue[:, 6] = np.minimum(np.where(known, view.to_end, 0.0) / (LONG * scale), 1.0)
    queue[:, QUEUE:] = view.backlog_head[:, 1:] / units
    there = np.maximum(view.capacity, 1)[:, :, None]
    cluster = np.maximum(view.free, 0) / there
    found = Features(jobs, cluster.reshape(count, -1).astype(np.float32), queue)
    return Features._make(np.clip(each, 0.0, 1.0, out=each) for each in found)


def _squashed(amount: TimeArray, scale: float) -> FloatArray:
    return np.asarray(amount / (amount + scale))


def image(view: Observation, backlog: int) -> IntArray:
    """Return DeepRM's image [B, 1, T, columns] of a pooled cluster, 255 where a unit is in use.

    Columns: for each resource the units in use, then each slot's job; the backlog; the time since a job arrived.
    `backlog` is the capacity of its columns, in jobs.
    """
    count, _, steps, _ = view.free.shape
    row, parts = np.arange(steps)[:, None], list[BoolArray]()
    for r, units in enumerate(view.capacity[0, 0].tolist()):
        parts.append(np.arange(units) < (units - view.free[:, 0, :, r])[:, :, None])
        runs = row[None, None] < view.duration[:, :, None, None]  # [B, M, T, 1]
        jobs = runs & (np.arange(units) < view.demand[:, :, r, None, None])
        parts.append(jobs.transpose(0, 2, 1, 3).reshape(count, steps, -1))
    columns = -(-backlog // steps)
    parts.append(row * columns + np.arange(columns) < view.backlog[:, None, None])
    parts.append(np.ones((count, steps, 1), dtype=np.bool_))
    found = np.concatenate(parts, axis=2) * np.uint8(255)
    found[:, :, -1] = np.minimum(view.since_arrival, CLOCK)[:, None] * 255 // CLOCK
    return found[:, None]
