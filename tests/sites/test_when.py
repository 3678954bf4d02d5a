"""`when`: simulated futures, their calibration, the command, and the numbers on its page."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import commands
import numpy as np
import pytest
from builders import REPOSITORY
from commands import Command
from log_scenarios import log_scenario
from queue_builders import Job, queue
from swf_lines import HPC2N, line

from pipeline.core.config import Params, Site, load_params
from pipeline.core.config.evaluation import Quota
from pipeline.core.logs import swf
from pipeline.core.storage.params_file import with_rows
from pipeline.core.types import Json
from pipeline.report.advice import duration
from pipeline.sites.orders import order_of
from pipeline.sites.queue import HOUR_S, backfill_of
from pipeline.sites.replay import Backfill, Queue, replay
from pipeline.sites.when import WEEK_S, drawn_runs, futures, hidden_load, is_linear, moment, past_of, plan
from pipeline.sites.when_check import (
    QUANTILES,
    Questions,
    ask,
    at_positions,
    check,
    intervals,
    is_calibrated,
    known_by,
    positions,
    score,
)
from pipeline.stages import log
from pipeline.stages.when import CHECKED, Asked, seconds

PAGE = REPOSITORY / "docs/how-to/when.md"
EASY = Backfill()
command, place = commands.command, commands.place  # fixtures


def exact(seed: int = 3, jobs: int = 200) -> Queue:
    """Jobs that use their whole limit, all within six days, so that no arrivals of earlier weeks are repeated."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, 5 * 86_400.0, jobs))
    size, run = rng.integers(1, 6, jobs), rng.uniform(600, 30_000, jobs)
    return queue([8], *(Job(at, long, int(few)) for at, long, few in zip(submit, run, size, strict=True)))


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile the replay; otherwise the first command would take so long that it reports its progress."""
    plan(moment(past_of(exact(), np.full(200, 600.0), "fcfs", EASY), 86_400.0))


def unknown(jobs: Queue) -> np.ndarray:
    return np.full(len(jobs.submit), np.nan)


# Futures


def test_with_known_run_times_and_no_arrivals_a_future_is_what_the_replay_does() -> None:
    jobs = exact()
    order = "limit_8h"
    whole = replay(jobs, order_of(order, jobs), EASY, jobs.submit, np.arange(200))
    past = past_of(jobs, unknown(jobs), order, EASY)
    assert past.start.tolist() == whole.tolist()
    at = moment(past, float(jobs.submit[-1]))  # no job arrives later
    assert len(at.waiting) > 5
    assert len(at.running) > 1
    found = futures(at, 2, np.random.default_rng(1))
    np.testing.assert_allclose(found, np.tile(whole[at.waiting] - at.now, (2, 1)), atol=1e-6)


def test_the_state_is_that_of_the_log_and_nothing_later_is_read() -> None:
    jobs = queue([4], Job(0, 100, 4), Job(10, 50, 2), Job(20, 50, 4), Job(500, 10))
    past = past_of(jobs, np.array([0.0, 90.0, 200.0, 0.0]), "fcfs", EASY)
    at = moment(past, 110.0)
    assert (at.finished.tolist(), at.running.tolist(), at.waiting.tolist()) == ([0], [1], [2])
    assert at.elapsed.tolist() == [10.0, 0.0]
    other = jobs._replace(run=np.array([100.0, 999.0, 999.0, 999.0]))
    later = moment(past_of(other, np.array([0.0, 90.0, 900.0, 9.0]), "fcfs", EASY), 110.0)
    one, two = (futures(some, 3, np.random.default_rng(1)) for some in (at, later))
    assert one.tolist() == two.tolist()


def test_run_times_are_drawn_from_shares_of_the_same_user_that_are_longer_than_the_run_so_far() -> None:
    """Jobs of user 0 use 0.1 or 0.9 of their limit, those of user 1 all of it."""
    shares = [0.1, 0.9] * 15
    done = [Job(0.0, 100.0 * share, limit=100, user=0) for share in shares] + [Job(0, 100, limit=100, user=1)] * 30
    jobs = queue([100], *done, Job(900, 9_999, limit=1_000, user=0), Job(1_000, 9_999, limit=1_000, user=0))
    at = moment(past_of(jobs, np.array([0.0] * 61 + [500.0]), "fcfs", EASY), 1_100.0)
    assert (at.running.tolist(), at.waiting.tolist()) == ([60], [61])
    drawn = drawn_runs(at, 200, np.random.default_rng(1))
    assert set(drawn[:, 0].round().tolist()) == {900.0}  # it has run for 200 s
    assert set(drawn[:, 1].round().tolist()) == {100.0, 900.0}
    assert 60 < (drawn[:, 1] < 500).sum() < 140


def test_a_job_that_ran_longer_than_all_others_may_run_as_long_again() -> None:
    jobs = queue([1], Job(0, 5_000, limit=100), Job(10, 10, limit=100))
    at = moment(past_of(jobs, np.array([0.0, 6_000.0]), "fcfs", EASY), 1_000.0)
    assert drawn_runs(at, 1, np.random.default_rng(1))[0].tolist() == [2_000.0, 100.0]
    assert plan(at).tolist() == [1_000.0]


def test_futures_backfill_as_the_site_does() -> None:
    """Without earlier runs, limits are used: the narrow job overtakes the wide one unless this has a reservation."""
    jobs = queue([2], Job(0, 10, 1, limit=100), Job(1, 10, 2, limit=50), Job(2, 10, 1, limit=200))
    starts = {}
    for reservations in (0, 1):
        past = past_of(jobs, np.array([0.0, 20.0, 60.0]), "fcfs", Backfill(reservations))
        starts[reservations] = futures(moment(past, 5.0), 1, np.random.default_rng(1))[0].tolist()
    assert starts == {0: [200.0, 0.0], 1: [95.0, 145.0]}


def test_the_plan_takes_limits_and_knows_no_arrivals() -> None:
    """On two processors, the running job may last until 100; then come the wide job and the narrow one."""
    jobs = queue(
        [2], Job(0, 10, 1, limit=100), Job(1, 10, 2, limit=50), Job(2, 10, 1, limit=200), Job(3, 5, 1, limit=80)
    )
    at = moment(past_of(jobs, np.array([0.0, 20.0, 60.0, 60.0]), "fcfs", EASY), 5.0)
    assert plan(at).tolist() == [95.0, 145.0, 0.0]


def test_what_runs_already_comes_before_jobs_of_a_higher_tier() -> None:
    jobs = queue([4], Job(0, 100, 4), Job(10, 50, 4, partition=1), members=[[0], [0]], tier=[1, 9])
    at = moment(past_of(jobs, np.array([0.0, 90.0]), "fcfs", EASY), 20.0)
    assert plan(at).tolist() == [80.0]


def test_what_runs_already_may_exceed_its_quotas() -> None:
    jobs = queue([4], Job(0, 100, 2), Job(0, 100, 2), Job(10, 50, 4, user=1), quotas=[Quota(each="user", jobs=1)])
    at = moment(past_of(jobs, np.array([0.0, 0.0, 90.0]), "fcfs", EASY), 20.0)
    assert plan(at).tolist() == [80.0]


def test_a_job_that_a_replay_would_start_shows_a_hidden_load_and_others_do_not() -> None:
    jobs = queue([10], Job(0, 1_000, 4), Job(100, 10, 3), Job(100, 10, 2), Job(100, 10, 9))
    past = past_of(jobs, np.array([0.0, 5_000.0, 5_000.0, 6_000.0]), "fcfs", EASY)
    assert hidden_load(moment(past, 900.0)) == 5  # 6 are free and a waiting job needs 2: at least 5 must be held
    assert hidden_load(moment(past, 600.0)) == 0  # the job has not yet waited for ten minutes
    assert hidden_load(moment(past, 50.0)) == 0
    fits = past_of(exact(), unknown(exact()), "fcfs", EASY)
    assert not fits.hidden.any()
    assert past_of(queue([4, 6], Job(0, 1)), np.zeros(1), "fcfs", EASY).hidden.tolist() == []


def test_a_hidden_load_delays_what_would_start_at_once() -> None:
    """A narrow job always waits for 19 h although processors are free, for eight weeks."""
    rows = [Job(20 * HOUR_S * k, HOUR_S, 4) for k in range(70)]
    jobs = queue([10], *rows)
    at = moment(past_of(jobs, np.full(70, 19 * HOUR_S), "fcfs", EASY), 69 * 20 * HOUR_S + 4 * HOUR_S)
    assert len(at.waiting) == 1
    assert futures(at, 16, np.random.default_rng(1)).mean() > HOUR_S
    bare = moment(at.past._replace(hidden=np.empty(0)), at.now)
    assert futures(bare, 16, np.random.default_rng(1)).max() == 0


def test_arrivals_of_earlier_weeks_delay_jobs_with_a_lower_priority() -> None:
    """Every hour of each week, a short job takes half of the pool for 1.5 h; the long wide one needs both halves."""
    rows = [Job(HOUR_S * k, HOUR_S * 1.5) for k in range(24 * 15)]
    last = len(rows) * HOUR_S
    jobs = queue([2], *rows, Job(last - HOUR_S * 0.5, HOUR_S, 2, limit=100 * HOUR_S, user=1))
    at = moment(past_of(jobs, np.array([0.0] * len(rows) + [9 * HOUR_S]), "sjf", EASY), last - HOUR_S * 0.4)
    assert len(at.waiting) == 1
    assert at.now > 2 * WEEK_S
    found = futures(at._replace(past=at.past._replace(hidden=np.empty(0))), 8, np.random.default_rng(1))
    assert plan(at)[0] < 2 * HOUR_S < 24 * HOUR_S < found.min()


def test_answers_depend_on_the_seed_and_the_moment_alone() -> None:
    past = past_of(exact(), unknown(exact()), "fcfs", EASY)
    past = past._replace(queue=past.queue._replace(limit=past.queue.limit * np.tile([1.0, 3.0], 100)))
    at = moment(past, float(past.queue.submit[150]))
    one, two, other = (ask(at, seed).future for seed in (1, 1, 2))
    assert one.tolist() == two.tolist() != other.tolist()
    assert (np.diff(one, axis=0) >= 0).all()


def test_only_priorities_that_are_linear_in_the_wait_can_be_simulated() -> None:
    linear = [
        name for name in ("fcfs", "sjf", "f1", "area_8h", "wfp3", "sjf_first_after_24h") if is_linear(name, exact())
    ]
    assert linear == ["fcfs", "sjf", "f1", "area_8h"]


# Calibration


def asked(future: np.ndarray, actual: np.ndarray) -> Questions:
    """Similar questions, each at a different moment."""
    ones = np.ones(len(actual))
    return Questions(
        np.sort(future, axis=0), ones, np.zeros((len(actual), 3)), actual, np.arange(len(actual)) * 1.0, ones
    )


def test_a_position_is_the_share_of_futures_below_and_continues_outside_by_ratio() -> None:
    future = np.tile(np.array([[HOUR_S * 4], [HOUR_S * 8]]), 4)
    rng = np.random.default_rng(1)
    found = positions(future, HOUR_S * np.array([6.0, 0.0, 20.0, 12.0]), rng)
    np.testing.assert_allclose(found, [0.5, -np.log(2), 1 + np.log(2), 1 + np.log(16 / 12)])
    back = at_positions(future, np.tile(found, (2, 1)))
    np.testing.assert_allclose(back, HOUR_S * np.tile([6.0, 0.0, 20.0, 12.0], (2, 1)), atol=1e-6)


def test_many_jobs_that_wait_at_one_moment_calibrate_nothing() -> None:
    many = asked(np.zeros((2, 400)), np.zeros(400))
    for moments, enough in ((19, False), (20, True)):
        assert is_calibrated(many._replace(now=np.arange(400.0) % moments)) is enough
    assert not is_calibrated(asked(np.zeros((2, 99)), np.zeros(99)))
    assert not is_calibrated(None)


def test_intervals_are_widened_by_what_earlier_starts_were() -> None:
    """Simulated starts are at 10 h with a spread of 1 h; actual ones vary four times as much."""
    rng = np.random.default_rng(1)
    futures_of = [10 * HOUR_S + HOUR_S * rng.standard_normal((64, 2_000)) for _ in range(2)]
    truth = [np.maximum(10 * HOUR_S + 4 * HOUR_S * rng.standard_normal(2_000), 0) for _ in range(2)]
    known, later = (asked(*both) for both in zip(futures_of, truth, strict=True))
    raw, found = score(intervals(None, later), later), score(intervals(known, later), later)
    assert raw.cover80 < 0.3
    assert found.cover80 == pytest.approx(0.8, abs=0.06)
    assert found.cover50 == pytest.approx(0.5, abs=0.06)
    assert (found.questions, found.moments) == (2_000, 2_000)
    few = known_by(known, 0, 99)
    assert intervals(few, later).tolist() == intervals(None, later).tolist()
    assert intervals(None, later)[2].tolist() == np.quantile(later.future, 0.5, axis=0).tolist()
    assert len(QUANTILES) == 5


def test_a_period_knows_only_that_a_job_still_waited_at_its_end() -> None:
    known = known_by(asked(np.ones((2, 4)), np.array([5.0, 5.0, 0.5, 5.0])), 1.0, 3.0)
    assert known.now.tolist() == [1.0, 2.0]
    assert known.actual.tolist() == [2.0, 0.5]


# The command

ROWS = [
    line(
        number, submit=9_000 * number, wait=9_000 * (number % 5 if number > 2 else 0), run=3_000 + 10 * number,
        allocated=1, estimate=9_000, user=number % 3,
    )
    for number in range(1, 401)
]  # fmt: skip


def placed(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder with a log the one of a site `mine`, and use few simulations, so that answers are fast."""
    (folder / "mine.swf").write_text(text)
    monkeypatch.setattr("pipeline.stages.when.MOMENTS", 60)
    monkeypatch.setattr("pipeline.sites.when_check.FUTURES", 8)
    rows: dict[str, Mapping[str, Mapping[str, Json]]] = {
        "scenarios": {"mine": log_scenario(6.0, "mine.swf")},
        "sites": {"mine": {"today": "fcfs"}},
    }
    params = folder / "params.yaml"
    params.write_text(with_rows("params.yaml", params.read_text(), rows)[0])
    found = load_params()
    log.run(Params.model_validate(found.model_copy(update={"scenarios": {"mine": found.scenarios["mine"]}})))


@pytest.fixture
def mine(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    placed(place, "; MaxProcs: 6\n; UnixStartTime: 1000000000\n" + "\n".join(ROWS) + "\n", monkeypatch)
    return place


@pytest.mark.usefixtures("mine")
def test_the_command_answers_as_a_table_and_as_json(command: Command) -> None:
    done = command("when", "mine", "--at", 9_000 * 399 + 100)
    assert (done.code, "warning" in done.err) == (0, False)
    head, *rows = done.out.splitlines()
    assert re.split(r"\s{2,}", head.strip()) == [
        "job",
        "CPUs",
        "waited",
        "starts in",
        "50 % interval",
        "80 % interval",
    ]
    jobs = [int(row.split()[0]) for row in rows]
    assert jobs == [398, 399]
    answer = json.loads(command("when", "mine", 399, "--at", 9_000 * 399 + 100, "--json").out)
    assert (answer["site"], answer["now_s"], answer["calibrated"], answer["own_waits"]) == (
        "mine",
        3_591_100,
        True,
        True,
    )
    (it,) = answer["jobs"]
    assert (it["job"], it["waited_s"], it["processors"]) == (399, 100, 1)
    assert 0 <= it["low80_s"] <= it["low50_s"] <= it["median_s"] <= it["high50_s"] <= it["high80_s"]
    assert rows[1].split()[:4] == ["399", "1", "1.7", "min"]  # 100 s
    assert " ".join(rows[1].split()[4:6]) == duration(it["median_s"])


@pytest.mark.usefixtures("mine")
def test_a_date_is_a_second_of_the_clock_that_the_log_names(command: Command) -> None:
    """1000000000 is 2001-09-09T01:46:40; 3,591,100 s are 41 days, 13 h, 31 min and 40 s."""
    one, two = (command("when", "mine", "--at", at, "--json") for at in ("2001-10-20T15:18:20", 3_591_100))
    assert one.out == two.out != ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("other",), "unknown site 'other'; "),
        (("mine", "7", "--at", "3591100"), "mine: job 7 does not wait at second 3591100; waiting: 398, 399"),
        (("mine", "--at", "9000"), "mine: no job waits at second 9000 of the log; --at names another time"),
        (("mine", "--at", "1"), "--at 1: expected a time of the log, which is from 9000 to 3600000 s; found 1 s"),
        (
            ("mine", "--at", "noon"),
            "--at: expected seconds on the log's clock or an ISO date, as 2002-12-24T18:00; got 'noon'",
        ),
        (("mine", "--serve", "0", "--json"), "--check, --serve: expected no jobs and no other option with it"),
    ],
)
@pytest.mark.usefixtures("mine")
def test_a_mistake_is_one_line(command: Command, words: tuple[str, ...], said: str) -> None:
    done = command("when", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {said}")
    assert done.err.count("\n") == 1


def test_a_site_that_cannot_be_asked_is_refused_in_one_line(command: Command, mine: Path) -> None:
    params = mine / "params.yaml"
    params.write_text(params.read_text().replace("today: fcfs", "today: wfp3"))
    assert "sites.mine.today: expected an order that is linear in the wait, found wfp3" in command("when", "mine").err
    (mine / "mine.swf").write_text((mine / "mine.swf").read_text().replace("; UnixStartTime: 1000000000\n", ""))
    params.write_text(params.read_text().replace("today: wfp3", "today: fcfs"))
    assert "the log has no UnixStartTime" in command("when", "mine", "--at", "2001-09-10").err
    assert seconds("mine", "2023-11-14T22:13:20", 1_700_000_000.0) == 1_700_000_000  # Unix time
    shutil.rmtree(mine / "data")
    assert "expected the log of mine, found none; 'python -m pipeline log' links it" in command("when", "mine").err


def test_a_log_without_waits_is_replayed_and_jobs_keep_its_numbers(
    command: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Job 5 does not fit on any machine."""
    rows = [
        line(k, submit=20_000 * k, wait=-1, run=25_000, allocated=9 if k == 5 else 4, estimate=30_000)
        for k in range(1, 201)
    ]
    placed(place, "; MaxProcs: 9\n" + "\n".join(rows) + "\n", monkeypatch)
    found = json.loads(command("when", "mine", "--json").out)
    assert found["own_waits"] is False
    assert found["jobs"][-1]["job"] == 200
    assert "warning: the log records no waits" in command("when", "mine", 200).err
    params = place / "params.yaml"
    params.write_text(params.read_text().replace("    today: fcfs\n", "    today: fcfs\n    backfill: {tested: 3}\n"))
    assert Asked(load_params(), "mine").past.backfill == Backfill(500, 3, 86_400.0)


# The page


@pytest.mark.whole  # it takes more than a minute
def test_the_page_has_what_the_check_finds_for_hpc2n() -> None:
    """Within four percentage points and half an hour, since other processors round differently."""
    if not HPC2N.is_file():
        pytest.skip(f"the log is not at {HPC2N}")
    trace = swf.read(HPC2N)
    ones = np.ones(len(trace.id), dtype=np.int64)
    _, user = np.unique(trace.user, return_inverse=True)
    jobs = queue([240], Job(0, 1))._replace(
        submit=trace.submit_s - trace.submit_s[0], run=trace.run_s, limit=trace.estimate_s, nodes=ones,
        demand=trace.demand[:, :1].copy(), cpus=trace.demand[:, 0] / 1000, user=user, partition=0 * ones,
        qos=0.0 * ones, counted=np.empty((len(ones), 0), np.int64), bound=np.empty((len(ones), 0), bool),
    )  # fmt: skip
    past = past_of(jobs, trace.wait_s, "fcfs", backfill_of(Site()))
    late = np.random.default_rng(1).uniform(jobs.submit[int(0.6 * len(ones))], jobs.submit[-1], 300)
    fits = [jobs.cpus[at.waiting] <= 240 - jobs.cpus[at.running].sum() for at in (moment(past, time) for time in late)]
    assert "98 % of waiting jobs would fit" in " ".join(PAGE.read_text().split())
    assert np.concatenate(fits).mean() == pytest.approx(0.98, abs=0.005)
    found = check(past, 0.4, 0.6, CHECKED, load_params(REPOSITORY / "params.yaml").seed, 2)
    for name, it in found.items():
        (said,) = re.findall(rf"^\| HPC2N, {name} +\| (.*) \|$", PAGE.read_text(), re.MULTILINE)
        numbers = [float(cell.split()[0].replace(",", "")) for cell in said.split("|")]
        assert numbers[:2] == pytest.approx([100 * it.cover80, 100 * it.cover50], abs=4)
        assert numbers[2:4] == pytest.approx([it.error_s / HOUR_S, it.plan_error_s / HOUR_S], abs=0.5)
        assert numbers[4:] == [it.questions, it.moments]
