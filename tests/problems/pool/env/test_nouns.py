"""Room for jobs in the image of a pooled cluster, by hand."""

import numpy as np

from pipeline.problems.pool.env.nouns import room


def test_a_job_has_room_where_enough_is_free_until_it_ends_within_the_horizon() -> None:
    free = np.array([[[1], [1], [0], [1]]])  # one unit in all steps but the third
    demand, duration = np.ones((1, 3, 1), dtype=np.int64), np.array([[1, 2, 0]])
    found = room(free, demand, duration)[0]
    assert found[0].tolist() == [True, True, False, True]
    assert found[1].tolist() == [True, False, False, False]
    assert not found[2].any()  # no job
