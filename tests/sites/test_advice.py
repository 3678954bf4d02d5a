"""Advice derived from given waits under every order."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from queue_builders import Job, period, queue

from pipeline.core.config import Evaluation, Site, Vetoes
from pipeline.sites import advice
from pipeline.sites.advice import Advice, advise, steps, vetoes
from pipeline.sites.figures import Change
from pipeline.sites.learned import GENERATIONS, MARGIN
from pipeline.sites.orders import FAMILIES, ORDERS
from pipeline.sites.queue import Period
from pipeline.sites.replay import Order
from pipeline.sites.slurm_settings import SlurmOrder

DAY, HOUR = 86_400.0, 3_600.0
BLOCKS, JOBS = 8, 60  # of each block
SETTINGS = Evaluation(resamples=400, confidence=0.95)
SITE = Site()
FEW = (
    *("fcfs", "sjf", "wfp3", "saf_first_after_24h", "limit_4h", "limit_8h"),
    *("area_1h", "area_2h", "area_4h", "area_8h", "area_64h"),
)
Waits = Mapping[str, float | np.ndarray]  # by order: a factor [J] on today's waits; 1 for other orders


def long(blocks: int = BLOCKS) -> Period:
    """Days with 20 jobs of 10 users on 100 processors; every twelfth job holds 20 processors; replayed twice."""
    jobs = [
        Job(3 * DAY / JOBS * k, 600, 20 if k % 12 == 0 else 1, limit=HOUR, user=k % 10) for k in range(blocks * JOBS)
    ]
    return period(queue([100], *jobs), moved=[[0.0], [1.0]])


PERIODS = {"train": long(), "validation": long(), "test": long()}
BASE = np.random.default_rng(4).uniform(2_000, 4_000, (2, BLOCKS * JOBS))


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Advice]:
    """Advise from given waits in the two periods."""

    def run(
        validation: Waits,
        test: Waits,
        site: Site = SITE,
        periods: Mapping[str, Period] = PERIODS,
        base: np.ndarray = BASE,
    ) -> Advice:
        def waits_of(one: Period, name: str, workers: ThreadPoolExecutor) -> np.ndarray:
            wait = base[:, : len(one.run)]
            return np.asarray(wait * (validation if one is periods["validation"] else test).get(name, 1.0))

        monkeypatch.setattr(advice, "waits_of", waits_of)
        monkeypatch.setattr(advice, "names_of", lambda slurm: FEW)
        return advise(periods, site, SETTINGS, 1, 1, lambda count: None)

    return run


Given = Callable[..., Advice]
EVERY_OTHER = np.repeat(np.arange(BLOCKS) % 2, JOBS)  # block
MIDDLE = np.arange(BLOCKS * JOBS) % 12 == 5  # small jobs


def test_a_clear_gain_without_a_veto_is_used(given: Given) -> None:
    found = given({"limit_8h": 0.5, "area_4h": 0.6}, {"limit_8h": 0.5, "area_4h": 0.6})
    assert (found.verdict, found.candidate, found.runner_up) == ("use", "limit_8h", "area_4h")
    wait = found.test["limit_8h"].figures["wait"]
    assert wait == pytest.approx((BASE.mean() / 2, BASE.mean(), -0.5, -0.5, -0.5))
    slow = (BASE / 2 + 600).mean() / (BASE + 600).mean()
    gain = found.test["limit_8h"].figures["gain"]
    assert gain.change == pytest.approx((0.5 * slow) ** 0.5 - 1)
    assert gain.low < gain.change < gain.high < 0
    assert (found.blocks, found.jobs, found.replays, found.more_days) == (8, 480, 2, None)
    assert found.test["limit_8h"].vetoes == []
    assert [one.name for one in found.validation] == list(FEW) == list(found.test)


def test_the_candidate_is_that_of_the_validation_period_whatever_the_test_period_says(given: Given) -> None:
    validation: Waits = {"limit_8h": 0.5, "limit_4h": 0.6, "area_2h": 0.7}
    for test in ({"limit_4h": 0.1}, {"limit_8h": 3.0, "area_1h": 0.2}, validation):
        found = given(validation, test)
        assert (found.candidate, found.runner_up) == ("limit_8h", "area_2h")


def test_a_runner_up_that_the_test_period_vetoes_is_dropped_and_not_replaced(given: Given) -> None:
    validation: Waits = {"limit_8h": 0.5, "area_2h": 0.6, "area_4h": 0.7}
    assert given(validation, validation).runner_up == "area_2h"
    assert given(validation, {"limit_8h": 0.5, "area_2h": 1.5, "area_4h": 0.2}).runner_up == ""


def test_what_the_test_period_refutes_is_not_used(given: Given) -> None:
    found = given({"limit_8h": 0.5}, {"limit_8h": 1.04})
    assert (found.verdict, found.more_days) == ("equal", None)
    assert given({"limit_8h": 0.5}, {"limit_8h": 1.2}).verdict == "undecided"


def test_only_orders_that_slurm_can_be_set_to_are_recommended(given: Given) -> None:
    waits: Waits = {"sjf": 0.1, "saf_first_after_24h": 0.1, "wfp3": 0.2, "area_64h": 0.9}
    assert given(waits, waits).candidate == "area_64h"


def test_a_learned_order_must_be_clearly_better_than_those_by_hand(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "learn", lambda *_: SlurmOrder(HOUR, limit=0.9))
    by = 0.6

    def replayed(period: Period, order: Order, workers: ThreadPoolExecutor) -> np.ndarray:
        return BASE * (by if order.slope == 1 / (4 * HOUR) else 1.0)

    monkeypatch.setattr(advice, "replayed", replayed)
    found = given({"limit_8h": 0.6}, {"limit_8h": 0.6})
    assert (found.candidate, found.runner_up) == ("limit_8h", "learned_4h")
    by = 0.6 - 3 * MARGIN
    found = given({"limit_8h": 0.6}, {"limit_8h": 0.6})
    assert (found.verdict, found.candidate, found.runner_up) == ("use", "learned_4h", "limit_8h")
    assert found.learned == SlurmOrder(HOUR, limit=0.9)
    assert len(found.test) == len(FEW) + 7


def test_without_a_better_order_today_s_stays(given: Given) -> None:
    found = given({name: 1.1 for name in FEW if name != "fcfs"}, {"limit_8h": 0.1})
    assert (found.verdict, found.candidate, found.runner_up, found.more_days) == ("stay", "fcfs", "", None)
    same = given({}, {})
    assert (same.verdict, same.candidate, same.runner_up) == ("stay", "fcfs", "")


def test_today_s_order_is_compared_with_and_is_not_its_own_runner_up(given: Given) -> None:
    site = Site(today="area_8h")
    found = given({"area_8h": 1.0, "limit_8h": 0.5}, {"limit_8h": 0.5}, site)
    assert (found.verdict, found.candidate, found.runner_up) == ("use", "limit_8h", "")
    assert given({"area_8h": 0.5}, {"area_8h": 0.5}, site).verdict == "stay"
    assert given({"area_8h": 0.5}, {"area_8h": 0.5, "fcfs": 1.0}, site).test["fcfs"].figures["gain"].change > 0.5


def test_jobs_that_wait_less_than_a_minute_have_no_better_order(given: Given) -> None:
    for seconds, verdict in ((0.0, "stay"), (59.9, "stay"), (60.1, "use")):
        found = given({"limit_8h": 0.5}, {"limit_8h": 0.5}, base=seconds * BASE / BASE.mean())
        assert found.verdict == verdict
        assert (found.candidate == "fcfs") == (verdict == "stay")


def test_an_order_is_vetoed_for_its_longest_wait_on_the_validation_period(given: Given) -> None:
    longer = np.where(np.arange(BLOCKS * JOBS) == 77, 4.0, 0.3)
    waits: Waits = {"limit_8h": longer, "limit_4h": 0.6}
    found = given(waits, waits)
    assert found.candidate == "limit_4h"
    (judged,) = [one for one in found.validation if one.name == "limit_8h"]
    grown = 100 * ((4 * BASE[:, 77]).mean() / BASE.max(axis=1).mean() - 1)
    assert judged.vetoes == [f"the longest wait grows by {grown:.0f} %"]
    assert judged.figures["gain"].change < -0.5
    patient = Site(most=Vetoes(longest=grown / 100 + 0.01))
    assert given(waits, waits, patient).candidate == "limit_8h"


def test_a_veto_on_the_test_period_is_the_verdict(given: Given) -> None:
    tail = np.where(MIDDLE, 1.3, 0.3)
    found = given({"limit_8h": 0.5}, {"limit_8h": tail})
    assert (found.verdict, found.candidate, found.more_days) == ("vetoed", "limit_8h", None)
    what = [text.rsplit(" grows by ", maxsplit=1)[0] for text in found.test["limit_8h"].vetoes]
    assert what == ["the longest wait", "the 99th percentile of waits"]


def test_large_jobs_are_protected_where_there_are_enough_of_them(given: Given) -> None:
    """Every twelfth of 480 jobs is large: 40. Seven blocks have 35; five have 25, fewer than the 30 needed."""
    large = PERIODS["test"].queue.cpus > 10
    base = np.where(large, 0.5, 1.0) * BASE  # so that no tail becomes longer
    waits: Waits = {"limit_8h": np.where(large, 1.3, 0.5)}
    found = given(waits, waits, base=base)
    assert found.candidate == "fcfs"
    (judged,) = [one for one in found.validation if one.name == "limit_8h"]
    assert judged.vetoes == ["the mean wait of large jobs grows by 30 %"]
    assert judged.large is not None
    assert judged.large.value == pytest.approx(1.3 * base[:, large].mean())
    few = {name: long(5) for name in PERIODS}
    some = {name: factor[: 5 * JOBS] for name, factor in waits.items()}  # type: ignore[index]
    found = given(some, some, periods=few, base=base[:, : 5 * JOBS])
    assert (found.verdict, found.candidate, found.test["limit_8h"].large) == ("use", "limit_8h", None)


def test_a_veto_begins_above_its_limit() -> None:
    change = {name: Change(1100, 1000, 0.1, 0.0, 0.2) for name in ("longest_wait", "p99_wait")}
    assert vetoes(change, Change(1250, 1000, 0.25, 0.0, 0.3), Vetoes()) == []
    more = {name: one._replace(change=0.101) for name, one in change.items()}
    assert vetoes(more, Change(1300, 1000, 0.26, 0.0, 0.3), Vetoes()) == [
        "the longest wait grows by 10 %",
        "the 99th percentile of waits grows by 10 %",
        "the mean wait of large jobs grows by 26 %",
    ]
    assert vetoes(more, None, Vetoes(longest=1, p99=1)) == []


def test_growth_of_less_than_a_minute_is_no_veto() -> None:
    """From 10 s to 69 s is nearly seven times as long."""
    change = {name: Change(69.0, 10.0, 5.9, 5.0, 7.0) for name in ("longest_wait", "p99_wait")}
    assert vetoes(change, None, Vetoes()) == []
    change["p99_wait"] = Change(71.0, 10.0, 6.1, 5.0, 7.0)
    assert vetoes(change, None, Vetoes()) == ["the 99th percentile of waits grows by 610 %"]


def test_a_gain_of_some_weeks_is_undecided_and_more_days_are_estimated(given: Given) -> None:
    found = given({"limit_8h": 0.5}, {"limit_8h": np.where(EVERY_OTHER, 0.6, 1.3)})
    assert (found.verdict, found.candidate) == ("undecided", "limit_8h")
    gain = found.test["limit_8h"].figures["gain"]
    assert gain.low < gain.change < 0 < gain.high
    blocks = np.ceil(8 * ((gain.high - gain.change) / gain.change) ** 2)  # so that the upper end reaches 0
    assert found.more_days == 3 * (blocks - 8) > 0


def test_orders_within_a_twentieth_either_way_are_equal(given: Given) -> None:
    found = given({"limit_8h": 0.5}, {"limit_8h": np.where(EVERY_OTHER, 0.98, 1.02)})
    gain = found.test["limit_8h"].figures["gain"]
    assert -0.05 < gain.low < 0 < gain.high < 0.05
    assert (found.verdict, found.more_days) == ("equal", None)


def test_fewer_than_four_blocks_decide_nothing(given: Given) -> None:
    short = {name: long(2) for name in PERIODS}
    found = given({"limit_8h": 0.5}, {"limit_8h": 0.5}, periods=short, base=BASE[:, : 2 * JOBS])
    assert (found.blocks, found.verdict, found.more_days) == (2, "undecided", 6)
    three = {name: long(3) for name in PERIODS}
    assert given({"limit_8h": 0.5}, {"limit_8h": 0.5}, periods=three, base=BASE[:, : 3 * JOBS]).verdict == "undecided"
    four = {name: long(4) for name in PERIODS}
    assert given({"limit_8h": 0.5}, {"limit_8h": 0.5}, periods=four, base=BASE[:, : 4 * JOBS]).verdict == "use"


def test_users_gain_and_lose_by_more_than_a_tenth_and_a_minute(given: Given) -> None:
    """Of ten users with means near 3,000 s, two gain, one loses, and two change by too little."""
    user = PERIODS["test"].queue.user
    factor = np.array([0.5, 0.8, 1.3, 0.92, 1.08, 1, 1, 1, 1, 1])[user]
    assert given({"limit_8h": 0.5}, {"limit_8h": factor}).users == (2, 1, 10)
    none = {name: one._replace(user=np.full_like(user, -1)) for name, one in PERIODS.items()}
    assert given({"limit_8h": 0.5}, {"limit_8h": factor}, periods=none).users == (0, 0, 0)  # the log names no users
    short = BASE / 30  # near 100 s: half of that is less than a minute
    assert given({"limit_8h": 0.5}, {"limit_8h": factor}, base=short).users == (0, 0, 10)


def test_classes_of_jobs_have_mean_99th_percentile_and_longest_wait(given: Given) -> None:
    """Small jobs hold 1 %, large ones 20 %; all limits are one hour."""
    large = PERIODS["test"].queue.cpus > 10
    found = {one.what: one for one in given({"limit_8h": 0.5}, {"limit_8h": np.where(large, 2.0, 0.5)}).classes}
    assert {what: one.jobs for what, one in found.items()} == {
        "jobs of up to 1 % of the processors": 440,
        "jobs of more than 10 % of the processors": 40,
        "limits of up to 1 hour": 480,
    }
    one, some = found["jobs of more than 10 % of the processors"], BASE[:, large]
    p99 = np.mean([np.quantile(row, 0.99, method="inverted_cdf") for row in some])
    assert one.today == pytest.approx((some.mean(), p99, some.max(axis=1).mean()))
    assert one.value == pytest.approx([2 * value for value in one.today])
    small = found["jobs of up to 1 % of the processors"]
    assert small.value == pytest.approx([value / 2 for value in small.today])


def test_the_log_s_own_waits_are_those_of_jobs_that_count(given: Given) -> None:
    own = np.full(BLOCKS * JOBS, np.nan)
    assert np.isnan(given({}, {}).own).all()
    own[:4] = [10.0, 20.0, 30.0, 1000.0]
    known = {**PERIODS, "test": PERIODS["test"]._replace(wait=own)}
    assert given({}, {}, periods=known).own == (265.0, 1000.0, 1000.0)
    later = {**PERIODS, "test": known["test"]._replace(first=1)}
    assert given({}, {}, periods=later).own == (350.0, 1000.0, 1000.0)


def test_every_order_is_replayed_on_the_same_submissions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Order, np.ndarray, np.ndarray]] = []

    def replay(q: object, order: Order, backfill: object, submit: np.ndarray, arrivals: np.ndarray) -> np.ndarray:
        seen.append((order, submit, arrivals))
        return submit + 5.0

    monkeypatch.setattr(advice, "replay", replay)
    rng = np.random.default_rng(3)
    periods = {name: period(PERIODS[name].queue, 10, rng.uniform(-60, 60, (2, BLOCKS * JOBS))) for name in PERIODS}
    done: list[int] = []
    found = advise(periods, SITE, SETTINGS, 1, 1, done.append)
    assert sum(done) == steps(SITE) == 2 * (len(ORDERS) + 7) + GENERATIONS
    assert len(seen) == 2 * 2 * len(ORDERS)
    for number, split in enumerate(("validation", "test")):
        some = seen[number * 2 * len(ORDERS) :][: 2 * len(ORDERS)]
        for k, (_, submit, arrivals) in enumerate(some):
            assert (submit == periods[split].submit[k % 2]).all()
            assert (arrivals == periods[split].arrivals[k % 2]).all()
    assert found.jobs == BLOCKS * JOBS - 10
    assert found.test["fcfs"].figures["wait"].value == pytest.approx(5.0)


def test_real_replays_are_the_same_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(8)
    jobs = [
        Job(at, run, int(rng.integers(1, 5)), limit=2 * run, user=int(rng.integers(3)))
        for at, run in zip(np.sort(rng.uniform(0, 16 * DAY, 300)), rng.uniform(600, 30_000, 300), strict=True)
    ]
    q = queue([8], *jobs)
    periods = {name: period(q, 20, rng.uniform(-60, 60, (3, 300))) for name in ("train", "validation", "test")}
    one, three = (advise(periods, SITE, SETTINGS, 1, threads, lambda count: None) for threads in (1, 3))
    assert repr(one) == repr(three)
    assert one.candidate in (*FAMILIES, "fcfs")
    assert one.test["fcfs"].figures["wait"].value > 600
    assert len({round(judged.figures["wait"].value, 6) for judged in one.test.values()}) > 15
