import numpy as np
import pytest
from flat_rows import flattened

from pipeline.core.types import Observation
from pipeline.interactive.pool.serving import layout, unflatten
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from tests.oracles.pool import Timestep


def cluster(place_ahead: bool) -> Cluster:
    return Cluster((4, 3), horizon=6, slots=3, backlog=5, place_ahead=place_ahead)


def views(place_ahead: bool) -> list[Observation]:
    """Observations along one episode of random jobs and random moves, some jobs longer than the horizon."""
    rng = np.random.default_rng(3)
    jobs = JobSet(np.sort(rng.integers(0, 12, 30)), rng.integers(1, 8, 30), rng.integers(1, 4, (30, 2)))
    episode, observed, rows = Timestep(jobs, cluster(place_ahead), step_limit=40), [], np.array([0])
    while not episode.done:
        observed.append(Observation._make(field.copy() for field in episode.observe(rows)))
        episode.step(rows, rng.integers(0, 4, 1))
    return observed


@pytest.mark.parametrize("place_ahead", [False, True])
def test_an_observation_survives_being_a_row(place_ahead: bool) -> None:
    observed = views(place_ahead)
    assert len({(view.legal.any(), view.fits_now.any()) for view in observed}) == 2 + place_ahead
    for view in observed:
        row = flattened(layout(2, 6, 3), view)
        assert (row.shape, row.dtype) == ((1, layout(2, 6, 3).width), np.float32)
        again = unflatten(row, cluster(place_ahead))
        for name in Observation._fields:
            np.testing.assert_array_equal(getattr(again, name), getattr(view, name), err_msg=name)


def test_rows_of_many_episodes_keep_their_order() -> None:
    rows = np.concatenate([flattened(layout(2, 6, 3), view) for view in views(False)[:5]])
    np.testing.assert_array_equal(flattened(layout(2, 6, 3), unflatten(rows, cluster(False))), rows)
    inexact = layout(2, 6, 3).fields(rows - 0.001)  # as from another program; counts are rounded
    np.testing.assert_array_equal(inexact["demand"], layout(2, 6, 3).fields(rows)["demand"])
