"""A stored policy of many machines, asked with rows of numbers.

A row [N] holds free [K * R], capacity [K * R], demand [M * R], nodes [M], duration [M], waited [M], fits_in [M],
legal [M * K], fits_now [M * K], backlog [1], backlog_head [R + 1], since_arrival [1], in that order: all that a network
reads. K machines, M slots and R resources are those of the model's card. Amounts are thousandths, exact up to
16,777,216 in single precision; times are the scenario's own; legal and fits_now are 0 or 1; an
empty slot is 0 throughout. With greedy dispatch legal is fits_now; else it says where idle machines could hold the job.

An answer is an action: slot * machines + machine, or last, slots * machines, to let time pass.
"""

from functools import cache
from pathlib import Path

import numpy as np

from pipeline import storage
from pipeline.config import MachinesCard
from pipeline.core import FloatArray, IntArray, Observation
from pipeline.problems.parts import Answering, Served


def served(folder: Path) -> Served:
    """Return what makes a stored policy answer rows with actions."""
    model = storage.read_model(folder, MachinesCard)

    @cache
    def load() -> Answering:
        from pipeline.problems.machines.networks.loading import restore

        loaded = restore(model.card, model.weights)

        def act(rows: FloatArray, draws: FloatArray) -> IntArray:
            return loaded.policy(unflatten(rows, model.card), draws)

        return act

    return Served(width(model.card), None, load)


SLOT_FIELDS = ("nodes", "duration", "waited", "fits_in")


def width(card: MachinesCard) -> int:
    """Return N."""
    return sum(_sizes(card).values())


def _sizes(card: MachinesCard) -> dict[str, int]:
    """Return how many numbers of a row each field has, in order."""
    machines, slots, resources = card.machines, card.slots, len(card.resources)
    sizes = {"free": machines * resources, "capacity": machines * resources, "demand": slots * resources}
    sizes |= dict.fromkeys(SLOT_FIELDS, slots) | dict.fromkeys(("legal", "fits_now"), slots * machines)
    return sizes | {"backlog": 1, "backlog_head": resources + 1, "since_arrival": 1}


def flatten(view: Observation, card: MachinesCard) -> FloatArray:
    """Return the rows [B, N], float32."""
    columns = [np.asarray(getattr(view, name)).reshape(len(view.now), -1) for name in _sizes(card)]
    return np.concatenate(columns, axis=1).astype(np.float32)


def unflatten(rows: FloatArray, card: MachinesCard) -> Observation:
    """Return the observation of some rows [B, N]; of what no network reads, nothing."""
    count, machines, slots, resources = len(rows), card.machines, card.slots, len(card.resources)
    sizes = _sizes(card)
    parts = np.split(rows.astype(np.float64), np.cumsum(list(sizes.values()))[:-1], axis=1)
    field = dict(zip(sizes, parts, strict=True))
    whole = {name: np.rint(field[name]).astype(np.int64) for name in ("free", "capacity", "demand", "nodes", "backlog")}
    return Observation(
        free=whole["free"].reshape(count, machines, 1, resources),
        demand=whole["demand"].reshape(count, slots, resources),
        duration=np.ascontiguousarray(field["duration"]),
        waited=np.ascontiguousarray(field["waited"]),
        backlog=whole["backlog"][:, 0].copy(),
        backlog_head=np.ascontiguousarray(field["backlog_head"]),
        capacity=whole["capacity"].reshape(count, machines, resources),
        since_arrival=field["since_arrival"][:, 0].copy(),
        legal=(field["legal"] > 0.5).reshape(count, slots, machines),
        fits_now=(field["fits_now"] > 0.5).reshape(count, slots, machines),
        now=np.zeros(count),
        nodes=whole["nodes"],
        fits_in=np.ascontiguousarray(field["fits_in"]),
        arrived=np.zeros((count, 2 + resources)),
        may_idle=field["since_arrival"][:, 0] < card.stall,
        to_end=np.full(count, np.inf),
    )
