"""A stored policy of a pooled cluster, asked with rows of numbers."""

from functools import cache
from pathlib import Path

from pipeline import storage
from pipeline.config import PoolCard
from pipeline.core import FloatArray, IntArray
from pipeline.problems.parts import Answering, Served
from pipeline.problems.pool.flat import unflatten, width


def served(folder: Path) -> Served:
    """Return what makes a stored policy answer rows of `flat` with actions: a slot or, last, void."""
    model = storage.read_model(folder, PoolCard)
    card = model.card

    @cache
    def load() -> Answering:
        from pipeline.problems.pool.networks.loading import restore

        loaded = restore(card, model.weights)

        def act(rows: FloatArray, draws: FloatArray) -> IntArray:
            return loaded.policy(unflatten(rows, loaded.cluster), draws)

        return act

    return Served(width(len(card.resources), card.horizon, card.slots), None, load)
