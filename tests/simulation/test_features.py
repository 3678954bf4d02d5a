import numpy as np
from builders import observation

from pipeline.simulation.features import encoded


def test_features_of_one_state_are_those_worked_by_hand() -> None:
    """Two slots, the second one empty; capacity 10, half of the cpu free now; scale 5."""
    view = observation(
        [5, 0], [[4, 2], [0, 0]], free=[[5, 10]], waited=[15, 0], backlog=2, since_arrival=5, now=50, to_end=25.0
    )
    seen = encoded(view, 5.0)
    # there, 5 / 10, 15 / 20, fits, 0, 1 machine, demands; an empty slot is zeros
    assert np.allclose(seen.jobs[0, 0], [1, 0.5, 0.75, float(view.fits_now[0, 0, 0]), 0, 1, 0.4, 0.2])
    assert not seen.jobs[0, 1, :3].any()
    assert np.allclose(seen.cluster[0, :4], [0.5, 1, 1, 1])
    # backlog 2 / (2 + 2 slots), then its head, 15 / 20, 5 / 10, 50 / 100, known, 25 / 50
    assert np.allclose(seen.queue[0, [0, 2, 3, 4, 5, 6]], [0.5, 0.75, 0.5, 0.5, 1, 0.5])
