"""Orders are drawn with the probability that is recorded."""

from collections import Counter

import numpy as np

from pipeline.steering.factors import draw_order


def test_orders_come_as_often_as_is_said() -> None:
    rng, scores = np.random.default_rng(1), [float(np.log(4)), float(np.log(2)), float(np.log(2))]
    found = [draw_order([7, 8, 9], scores, 1.0, rng) for _ in range(20_000)]
    heads = Counter(one.order[0] for one in found)
    assert abs(heads[7] / 20_000 - 0.5) < 0.02
    assert {one.order[0]: round(one.head, 3) for one in found} == {7: 0.5, 8: 0.25, 9: 0.25}
    for order, count in Counter(tuple(one.order) for one in found).items():
        (log,) = {round(one.log, 6) for one in found if tuple(one.order) == order}
        assert abs(count / 20_000 - np.exp(log)) < 0.02


def test_a_low_temperature_keeps_the_order_and_jobs_without_a_score_stay_behind() -> None:
    found = draw_order([5, 4, 3, 2], [3.0, 2.0, None, None], 0.01, np.random.default_rng(2))
    assert (list(found.order), round(found.head, 6), round(found.log, 6)) == ([5, 4, 3, 2], 1.0, 0.0)
    assert draw_order([5, 4], [None, None], 1.0, np.random.default_rng(2)) == ([5, 4], 1.0, 0.0)
