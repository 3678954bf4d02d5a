"""A stored policy of many machines that answers rows of numbers.

A row [N] holds free [K * R], capacity [K * R], demand [M * R], nodes [M], duration [M], waited [M], fits_in [M],
legal [M * K], fits_now [M * K], backlog [1], backlog_head [R + 1], since_arrival [1], in that order: all inputs of a
network. K machines, M slots and R resources are those of the model's card. Amounts are thousandths, exact up to
16,777,216 in single precision; times are the scenario's own; legal and fits_now are 0 or 1; an empty slot is 0
throughout. With greedy dispatch, legal equals fits_now; otherwise it is 1 where an idle machine could hold the job.

An answer is an action: slot * machines + machine, or the last one, slots * machines, to let time pass.
"""

from functools import cache
from pathlib import Path

import numpy as np

from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.core.types import FloatArray, Observation
from pipeline.interactive.live.rows import Rows
from pipeline.problems.parts import Answering, Served

AXES = {
    **{"free": "KR", "capacity": "KR", "demand": "MR", "nodes": "M", "duration": "M", "waited": "M", "fits_in": "M"},
    **{"legal": "MK", "fits_now": "MK", "backlog": "", "backlog_head": "H", "since_arrival": ""},
}
WHOLE = ("free", "capacity", "demand", "nodes", "backlog")


def served(folder: Path) -> Served:
    """Return a stored policy that answers rows with actions."""
    model = storage.read_model(folder, MachinesCard)

    @cache
    def load() -> Answering:
        from pipeline.problems.machines.agents.networks.loading import restore

        policy = restore(model.card, model.weights).policy
        return lambda rows, draws: policy(unflatten(rows, model.card), draws)

    return Served(layout(model.card).width, None, load)


def layout(card: MachinesCard) -> Rows:
    """Return how rows are laid out."""
    resources = len(card.resources)
    return Rows(AXES, WHOLE, K=card.machines, M=card.slots, R=resources, H=resources + 1)


def unflatten(rows: FloatArray, card: MachinesCard) -> Observation:
    """Return the observation of some rows [B, N], without the fields that no network reads."""
    count, fields = len(rows), layout(card).fields(rows)
    return Observation(
        **fields
        | {"free": fields["free"][:, :, None], "legal": fields["legal"] > 0.5, "fits_now": fields["fits_now"] > 0.5},
        now=np.zeros(count),
        arrived=np.zeros((count, 2 + len(card.resources))),
        may_idle=fields["since_arrival"] < card.stall,
        to_end=np.full(count, np.inf),
        load=np.full(count, np.nan),
    )
