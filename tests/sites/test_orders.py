"""Priorities under every order, computed by hand."""

from math import log, log10

import numpy as np
import pytest
from queue_builders import Job, queue

from pipeline.sites.orders import FAMILIES, HEURISTICS, ORDERS, order_of
from pipeline.sites.replay import AREA_AGED, LINEAR, UNICEP, WFP3, Backfill, Queue, replay

HOUR = 3_600.0
QUEUE = queue([8], Job(0, 60, 2, limit=HOUR), Job(1000, 60, 1, limit=2 * HOUR), Job(1000, 60, 1, limit=60, nodes=1))


def starts(name: str, q: Queue) -> list[float]:
    order = order_of(name, q)
    return [float(at) for at in replay(q, order, Backfill(), q.submit, np.argsort(q.submit, kind="stable"))]


def test_there_are_heuristics_bounded_ones_and_two_families() -> None:
    assert HEURISTICS == ("fcfs", "sjf", "saf", "saf_aged", "f1", "wfp3", "unicep")
    hours = (1, 2, 4, 8, 16, 32, 64)
    wanted = [f"{feature}_{hour}h" for feature in ("limit", "area") for hour in hours]
    assert list(FAMILIES) == wanted
    assert list(ORDERS) == [*HEURISTICS, "sjf_first_after_24h", "saf_first_after_24h", *wanted]


@pytest.mark.parametrize(
    ("name", "static", "slope"),
    [
        ("fcfs", (0, 0, 0), 1.0),
        ("sjf", (-3600, -7200, -60), 0.0),
        ("saf", (-7200, -7200, -60), 0.0),
        ("f1", (-2 * log10(3600), -log10(7200) - 870 * 3, -log10(60) - 870 * 3), 0.0),
        ("limit_1h", (-log(3600), -log(7200), -log(60)), 1 / 3600),
        ("limit_8h", (-log(3600), -log(7200), -log(60)), 1 / 28_800),
        ("area_8h", (-log(7200), -log(7200), -log(60)), 1 / 28_800),
        ("area_64h", (-log(7200), -log(7200), -log(60)), 1 / 230_400),
    ],
)
def test_static_priorities_and_what_a_second_of_waiting_adds(
    name: str, static: tuple[float, ...], slope: float
) -> None:
    order = order_of(name, QUEUE)
    assert (order.rule, order.slope, order.fair_share, order.longest) == (LINEAR, slope, 0.0, 1e12)
    assert order.static.tolist() == pytest.approx(static)


@pytest.mark.parametrize(("name", "rule"), [("wfp3", WFP3), ("unicep", UNICEP), ("saf_aged", AREA_AGED)])
def test_the_other_heuristics_have_rules_of_their_own(name: str, rule: int) -> None:
    order = order_of(name, QUEUE)
    assert (order.rule, order.slope, order.longest) == (rule, 0.0, 1e12)
    assert order.age == (4 * HOUR if name == "saf_aged" else 1.0)


@pytest.mark.parametrize("name", ["sjf", "saf"])
def test_a_bounded_order_is_its_base_until_a_job_has_waited_for_a_day(name: str) -> None:
    base, bounded = order_of(name, QUEUE), order_of(f"{name}_first_after_24h", QUEUE)
    assert (bounded.static == base.static).all()
    assert bounded._replace(longest=1e12, static=base.static) == base
    assert bounded.longest == 24 * HOUR
    # The first waits from 1 s to 24 h and 2 s; the second is shorter and waits for a minute.
    q = queue([1], Job(0, 24 * HOUR + 2), Job(1, HOUR), Job(24 * HOUR - 58, 60))
    assert starts(name, q)[1] == 24 * HOUR + 62
    assert starts(f"{name}_first_after_24h", q)[1] == 24 * HOUR + 2


@pytest.mark.parametrize(("name", "later"), [("limit_8h", 19_963), ("limit_1h", 2_495), ("area_8h", 19_963)])
def test_a_doubled_limit_costs_tau_times_ln_2_of_waiting(name: str, later: int) -> None:
    """8 h * ln 2 = 28,800 s * 0.693147 = 19,962.6 s, or 5.5 hours."""
    for gap, first in ((later - 2, 2), (later + 2, 1)):
        q = queue([1], Job(0, 30_000), Job(10, 2 * HOUR), Job(10 + gap, HOUR))
        assert int(np.argsort(starts(name, q))[1]) == first


def test_wfp3_weighs_the_cube_of_the_share_that_a_job_has_waited() -> None:
    """At 100: (90 / 90)^3 * 2 = 2, and (65 / 50)^3 * 1 = 2.197; the square would be 1.69."""
    assert starts("wfp3", queue([2], Job(0, 100, 2), Job(10, 90, 2), Job(35, 50, 1))) == [0, 150, 100]


def test_unicep_divides_by_the_logarithm_of_processors() -> None:
    """At 130: 120 / (log2(8) * 10) = 4, and 40 / (log2(2) * 11) = 3.6; with processors, 1.5 and 1.8."""
    assert starts("unicep", queue([8], Job(0, 130, 8), Job(10, 10, 8), Job(90, 11, 2))) == [0, 130, 140]


@pytest.mark.parametrize(("hours", "wanted"), [(3.0, [0, 12, 16]), (1.9, [0, 13.9, 12])])
def test_an_aged_area_is_divided_by_one_and_the_wait_in_four_hours(hours: float, wanted: list[float]) -> None:
    """After 12 h, the area of 4 h * 2 counts as 2 h: less than 3 h, more than 1.9 h of a job that just arrived."""
    q = queue([2], Job(0, 12 * HOUR, 2), Job(1, 4 * HOUR, 2), Job(12 * HOUR - 1, hours * HOUR, 1))
    assert [at / HOUR for at in starts("saf_aged", q)] == pytest.approx(wanted)


def test_an_unknown_order_is_an_error() -> None:
    with pytest.raises(KeyError, match="limit_3h"):
        order_of("limit_3h", QUEUE)
