import numpy as np
import pytest
from environments import made

from pipeline.simulation.features import encoded


@pytest.mark.parametrize("name", ["deeprm/Pool-v0", "deeprm/Stream-v1", "deeprm/Offline-v0"])
def test_compiled_features_are_the_plain_ones_bit_for_bit(name: str) -> None:
    game = made(name).episodes.game
    simulator = game.simulator([game.source.fresh(game.loads[-1], number) for number in range(6)])
    rows, rng, shown = np.arange(6), np.random.default_rng(1), 0.0
    for _ in range(30):
        seen, masks = game.look(simulator, rows)
        plain, legal = game.features(simulator.observe(rows))
        assert all(np.array_equal(seen[key], plain[key]) for key in seen)
        assert np.array_equal(masks, legal)
        shown += seen["queue"].sum()
        simulator.step(rows, np.array([rng.choice(np.flatnonzero(mask)) for mask in masks]))
        rows = rows[~simulator.ended(rows)[0]]
    assert shown > 0
    assert encoded(simulator.observe(rows), game.scale).jobs.dtype == np.float32
