"""A learned score of jobs: its terms, the search for it, and its order by Slurm's factors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from queue_builders import Job, period, queue
from slurm_factors import Submission, site_factor

from pipeline.core.config import Vetoes
from pipeline.sites import learned
from pipeline.sites.learned import GENERATIONS, TAU_S, Outcome, features, learn, score_of
from pipeline.sites.orders import FAMILIES
from pipeline.sites.queue import Period
from pipeline.sites.replay import LINEAR, Backfill, Order, Queue, replay
from pipeline.sites.slurm_config import SlurmConfig
from pipeline.sites.slurm_settings import SlurmOrder, plan_settings

HOUR = 3600.0
ORDER = SlurmOrder(8 * HOUR, 0.9, 0.3, 0.2, past_s=500)


def busy(jobs: int = 1_200) -> Period:
    """A queue in which short and long jobs have the same limits, but their users' past differs."""
    rng = np.random.default_rng(2)
    submit, user = np.sort(rng.uniform(0, jobs * 700, jobs)), rng.integers(0, 6, jobs)
    run = np.where(user < 4, 60.0, 8_000.0) * rng.uniform(0.8, 1.2, jobs)
    some = [
        Job(at, seconds, 1, limit=10 * HOUR, user=int(who)) for at, seconds, who in zip(submit, run, user, strict=True)
    ]
    found = period(queue([4], *some), moved=[[0.0]] * 6)
    return found._replace(past=np.where(user < 4, 60.0, 8_000.0))


def test_a_score_is_a_sum_of_logarithms() -> None:
    one = period(queue([8], Job(6 * HOUR, 60, 2, limit=HOUR), Job(18.5 * HOUR, 60, 4, limit=10)))
    one = one._replace(past=np.array([700.0, np.nan]))
    assert features(one, 500.0) == pytest.approx(
        np.array([[np.log(3600), np.log(2), np.log(700)], [np.log(60), np.log(4), np.log(500)]]), abs=1e-12
    )
    order = score_of(ORDER, one)
    assert (order.rule, order.slope) == (LINEAR, 1 / (8 * HOUR))
    assert order.static[0] == pytest.approx(-(0.9 * np.log(3600) + 0.3 * np.log(2) + 0.2 * np.log(700)))


def test_the_factors_of_slurm_order_jobs_as_the_replay_does() -> None:
    rng = np.random.default_rng(1)
    jobs = [
        Job(at, 60, int(rng.integers(1, 9)), limit=60.0 * int(rng.integers(1, 3000))) for at in range(0, 86_000, 300)
    ]
    one = period(queue([8], *jobs))
    one = one._replace(past=rng.uniform(60, 90_000, len(jobs)))
    users = {f"u{k}": float(past) for k, past in enumerate(one.past)}
    settings = plan_settings(ORDER._replace(users=users), SlurmConfig({}), 86_400.0, scale=100_000.0)
    factors = [
        site_factor(settings, Submission(k, job.limit, int(cpus), (), f"u{k}"))
        for k, (job, cpus) in enumerate(zip(jobs, one.queue.cpus, strict=True))
    ]
    static = score_of(ORDER, one).static
    assert np.asarray(factors) / 100_000 - settings.top == pytest.approx(static, abs=1e-5)
    assert len(set(factors)) > 200


@pytest.mark.parametrize(("reservations", "searched"), [(500, 10), (1, 1)])
def test_the_search_has_few_reservations(monkeypatch: pytest.MonkeyPatch, reservations: int, searched: int) -> None:
    used = set()

    def remembered(queue: Queue, order: Order, backfill: Backfill, *moved: np.ndarray) -> np.ndarray:
        used.add(backfill)
        return replay(queue, order, backfill, *moved)

    monkeypatch.setattr(learned, "replay", remembered)
    monkeypatch.setattr(learned, "GENERATIONS", 1)
    with ThreadPoolExecutor(2) as workers:
        site = busy()._replace(backfill=Backfill(reservations, 400))
        learn(site, "fcfs", Vetoes(), 1, workers, lambda _: None)
    assert used == {Backfill(searched, 400)}


@pytest.mark.parametrize(("most", "replays"), [(60_000, 6), (3_600, 3), (0, 2)])
def test_a_long_queue_is_replayed_less_often(monkeypatch: pytest.MonkeyPatch, most: int, replays: int) -> None:
    calls = []

    def counted(*given: object) -> np.ndarray:
        calls.append(1)
        return replay(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(learned, "replay", counted)
    monkeypatch.setattr(learned, "GENERATIONS", 1)
    monkeypatch.setattr(learned, "MOST_JOBS", most)
    with ThreadPoolExecutor(1) as workers:
        learn(busy(1_200), "fcfs", Vetoes(), 1, workers, lambda _: None)
    assert len(calls) == replays * (1 + len(FAMILIES) + learned.POPULATION)


def test_what_tells_short_jobs_is_learned() -> None:
    """All limits are equal: only the users' past tells which jobs are short."""
    with ThreadPoolExecutor(2) as workers:
        steps: list[int] = []
        found = learn(busy(), "fcfs", Vetoes(longest=4.0, p99=4.0), 1, workers, steps.append)
        again = learn(busy(), "fcfs", Vetoes(longest=4.0, p99=4.0), 1, workers, steps.append)
    assert found is not None
    assert found == again
    assert sum(steps) == 2 * GENERATIONS
    assert found.tau_s == TAU_S
    assert found.past > 0.1


def test_leaving_the_beginning_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "NEAR", 1_000.0)
    with ThreadPoolExecutor(2) as workers:
        found = learn(busy(), "fcfs", Vetoes(longest=4.0, p99=4.0), 1, workers, lambda _: None)
    assert found is not None
    assert abs(found.past) < 0.05  # no order designed by hand uses the past


def test_a_short_log_teaches_nothing() -> None:
    steps: list[int] = []
    with ThreadPoolExecutor(1) as workers:
        assert learn(busy(900), "fcfs", Vetoes(), 1, workers, steps.append) is None
    assert sum(steps) == GENERATIONS


def test_growth_that_a_site_would_veto_costs_more_than_it_gains() -> None:
    base, most = Outcome(1000.0, 10.0, 5000.0, 9000.0), Vetoes(longest=0.1, p99=0.1)
    cost = [
        learned._cost(one, base, most)
        for one in (base, Outcome(500.0, 5.0, 5000.0, 9000.0), Outcome(500.0, 5.0, 5000.0, 18_000.0))
    ]
    assert cost[0] == 0
    assert cost[1] == pytest.approx(-np.log(2), abs=0.1)
    assert cost[2] - cost[1] == pytest.approx(2 * np.log(2 / 1.1), abs=0.01)
