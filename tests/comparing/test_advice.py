"""What a site is advised, of trials made by hand."""

import numpy as np
import pandas as pd
import pytest

from pipeline.comparing.advice import Advice, advise, best_heuristic, losers
from pipeline.core.config import Evaluation
from pipeline.core.schemas import TRIAL

SETTINGS = Evaluation(resamples=400, confidence=0.95)
WEEKS, EACH = 12, 40  # a block of each week has jobs


def played(policy: str, factor: float, period: str = "test", load: float = 1.0, weeks: int = WEEKS) -> pd.DataFrame:
    """Jobs whose bounded slowdown and wait are a factor times what they are under `fcfs`, the same for all policies."""
    rng = np.random.default_rng(7)
    count = weeks * EACH
    base = 1 + 9 * rng.random(count)
    columns = {
        "period": period,
        "load": load,
        "policy": policy,
        "job": np.arange(count),
        "week": np.repeat(np.arange(weeks), EACH),
        "block": np.repeat(np.arange(weeks), EACH),
        "user": np.arange(count) % 3,
        "run_s": np.where(np.arange(count) % 2 == 0, 100.0, 10_000.0),
        "share": 0.05,
        "wait": 1_000 * base * factor,
        "bounded_slowdown": np.maximum(1.0, base * factor),
    }
    return TRIAL.validate(pd.DataFrame(columns))


def trial(weeks: int = WEEKS, **factors: tuple[float, float]) -> pd.DataFrame:
    """The periods of policies, each (validation, test)."""
    frames = [
        played(policy, factor, period, weeks=weeks)
        for policy, both in factors.items()
        for period, factor in zip(("validation", "test"), both, strict=True)
    ]
    frames += [played(policy, 1.0, "validation", 1.2) for policy in ("fcfs", "saf")]
    return pd.concat(frames, ignore_index=True)


def advised(weeks: int = WEEKS, **factors: tuple[float, float]) -> Advice:
    return advise("mine", trial(weeks, **factors), "fcfs", "net", SETTINGS, seed=1)


EVEN = (1.0, 1.0)


def test_the_best_heuristic_of_validation_is_advised_and_told_of_on_the_test_period() -> None:
    found = advised(fcfs=EVEN, saf=(0.5, 0.6), f1=(0.6, 0.4), net=(0.9, 0.9))
    assert (found.policy, found.best_heuristic, found.learned, found.clear) == ("saf", "saf", False, True)
    assert found.wait.change == pytest.approx(-0.4)
    assert found.wait.low == pytest.approx(-0.4)  # every block alike
    assert found.p99_wait.change == pytest.approx(-0.4)
    assert found.mean.change == pytest.approx(-0.4, abs=0.01)
    assert (found.blocks, found.jobs) == (WEEKS, WEEKS * EACH)


def test_a_learned_policy_is_advised_only_where_both_periods_say_so() -> None:
    assert advised(fcfs=EVEN, saf=(0.5, 0.5), net=(0.4, 0.4)).learned
    for factors in ((0.4, 0.5), (0.5, 0.4), (0.6, 0.4)):  # no better on test; level on validation; worse there
        found = advised(fcfs=EVEN, saf=(0.5, 0.5), net=factors)
        assert (found.policy, found.learned) == ("saf", False), factors


def test_where_the_interval_holds_0_the_site_stays_as_it_is_and_is_told_how_many_more_days() -> None:
    rows = trial(fcfs=EVEN, saf=(0.5, 1.0), net=EVEN)
    mixed = (rows["policy"] == "saf") & (rows["period"] == "test")
    # Four blocks of twelve are far worse, the others better: in the mean a little better.
    rows.loc[mixed, "bounded_slowdown"] *= np.where(rows.loc[mixed, "week"] % 3 == 0, 1.9, 0.45)
    rows["bounded_slowdown"] = rows["bounded_slowdown"].clip(lower=1.0)
    found = advise("mine", rows, "fcfs", "net", SETTINGS, seed=1)
    assert found.mean.change < 0 < found.mean.high
    assert (found.policy, found.candidate, found.clear) == ("fcfs", "saf", False)
    assert found.more_days is not None
    assert found.more_days % 3 == 0


def test_three_blocks_tell_nothing() -> None:
    found = advised(weeks=3, fcfs=EVEN, saf=(0.5, 0.5), net=EVEN)
    assert (found.policy, found.clear, found.blocks) == ("fcfs", False, 3)


def test_the_worst_week_and_who_loses_are_told() -> None:
    rows = trial(fcfs=EVEN, saf=(0.5, 0.5), net=EVEN)
    mine = (rows["policy"] == "saf") & (rows["period"] == "test")
    rows.loc[mine & (rows["week"] == 4), "bounded_slowdown"] *= 4
    rows.loc[mine & (rows["run_s"] > 7_200), "wait"] *= 3  # half as long, times three
    rows.loc[mine & (rows["user"] == 2), "wait"] *= 2.5
    found = advise("mine", rows, "fcfs", "net", SETTINGS, seed=1)
    assert found.worst_week[0] == 5
    assert found.worst_week[1] == pytest.approx(1.0, abs=0.05)
    told = {loser.what: loser.wait_s / loser.today_s for loser in found.losers}
    assert "jobs of 2 hours to a day" in told
    assert "user 2" in told
    assert "jobs below 10 minutes" not in told


def test_a_class_of_few_jobs_is_not_told_of() -> None:
    rows = pd.concat([played("fcfs", 1.0), played("saf", 0.5)], ignore_index=True)
    rows["user"] = np.where(rows["job"] < 29, 9, 1)
    rows.loc[(rows["policy"] == "saf") & (rows["user"] == 9), "wait"] *= 100
    assert "user 9" not in {loser.what for loser in losers(rows, "saf", "fcfs")}
    rows.loc[rows["job"] == 29, "user"] = 9  # the thirtieth
    assert "user 9" in {loser.what for loser in losers(rows, "saf", "fcfs")}


def test_the_best_heuristic_at_another_load_is_told() -> None:
    rows = trial(fcfs=EVEN, saf=(0.5, 0.5), net=EVEN)
    assert advise("mine", rows, "fcfs", "net", SETTINGS, seed=1).elsewhere == {1.2: "fcfs"}  # level: first by name
    assert best_heuristic(rows[rows["load"] == 1.0], ["net"]) == "saf"


def test_what_was_learned_is_never_taken_for_the_best_heuristic() -> None:
    found = advised(fcfs=EVEN, saf=(0.9, 0.9), net=(0.1, 1.0))
    assert (found.best_heuristic, found.policy, found.agent[0]) == ("saf", "saf", "net")
