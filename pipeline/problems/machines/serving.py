"""A stored policy of many machines, asked with rows of numbers; what stands in a row, `flat` says.

An answer is an action: slot * machines + machine, or last, slots * machines, to let time pass.
"""

from functools import cache
from pathlib import Path

from pipeline import storage
from pipeline.config import MachinesCard
from pipeline.core import FloatArray, IntArray
from pipeline.problems.machines.flat import unflatten, width
from pipeline.problems.parts import Answering, Served


def served(folder: Path) -> Served:
    """Return what makes a stored policy answer rows of `flat` with actions."""
    model = storage.read_model(folder, MachinesCard)

    @cache
    def load() -> Answering:
        from pipeline.problems.machines.networks.loading import restore

        loaded = restore(model.card, model.weights)

        def act(rows: FloatArray, draws: FloatArray) -> IntArray:
            return loaded.policy(unflatten(rows, model.card), draws)

        return act

    return Served(width(model.card), None, load)
