"""Plans in hindsight: the best of several draws, a search in pieces, never worse than what they begin with."""

import numpy as np
import pyarrow as pa
import pytest
from builders import random_jobset

from pipeline.core.types import IntArray
from pipeline.errors import UserError
from pipeline.interactive.pool import scheduling as planning
from pipeline.interactive.pool.scheduling import best_drawn, must_be_searchable, schedule, searched
from pipeline.interactive.scheduling.user_jobs import UserJobs
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.heuristics.scores import HEURISTICS

CLUSTER = Cluster((5, 4), 8, 4, 4, False)


def table(jobsets: int, jobs: int, first: int = 0) -> UserJobs[JobSet]:
    """Some crowds, their rows mixed."""
    rng = np.random.default_rng(2)
    several = [random_jobset(rng, CLUSTER, jobs, jobs) for _ in range(jobsets)]
    mixed = rng.permutation(jobsets * jobs)
    arrival, duration, demand = (np.concatenate([jobset[k] for jobset in several])[mixed] for k in range(3))
    number = np.repeat(np.arange(jobsets), jobs)[mixed]
    ids = pa.table({"jobset": pa.array([f"set {k}" for k in number]).dictionary_encode()})
    return UserJobs(ids, number, JobSet(first + arrival, duration, demand))


def hushed(percent: float, note: str) -> None:
    pass


def first_come(jobs: UserJobs[JobSet]) -> IntArray:
    return schedule(jobs, CLUSTER, HEURISTICS["fcfs"], True, 3, hushed)


def drawn(
    jobs: UserJobs[JobSet],
    samples: int,
    seed: int = 3,
    on_progress: planning.ProgressCallback = hushed,
    at_once: int = 10**6,
) -> IntArray:
    """The best of first come first served and some random schedules."""
    return best_drawn(jobs, CLUSTER, HEURISTICS["random"], True, first_come(jobs), samples, seed, on_progress, at_once)


def means(jobs: UserJobs[JobSet], start: IntArray) -> np.ndarray:
    """The mean slowdown of each jobset."""
    slowdown = (start + jobs.jobs.duration - jobs.jobs.arrival) / jobs.jobs.duration
    return np.bincount(jobs.number, slowdown) / np.bincount(jobs.number)


def assert_sound(jobs: UserJobs[JobSet], start: IntArray) -> None:
    assert (start >= jobs.jobs.arrival).all()
    for number in range(jobs.number.max() + 1):
        mine = np.flatnonzero(jobs.number == number)
        for step in np.unique(start[mine]):  # the cluster is fullest where some job begins
            running = mine[(start[mine] <= step) & (step < start[mine] + jobs.jobs.duration[mine])]
            assert (jobs.jobs.demand[running].sum(axis=0) <= CLUSTER.capacity).all()


def test_each_jobset_has_the_best_of_its_draws() -> None:
    jobs = table(6, 12)
    none, some, more = (drawn(jobs, samples) for samples in (0, 3, 12))
    assert none.tolist() == first_come(jobs).tolist()
    assert (means(jobs, some) <= means(jobs, none)).all()
    assert (means(jobs, more) <= means(jobs, some)).all()  # the first three draws are the same
    assert (means(jobs, more) < means(jobs, none)).sum() > 1
    assert_sound(jobs, more)


def test_draws_that_do_not_fit_side_by_side_are_made_after_one_another() -> None:
    jobs, told = table(6, 12), []
    best = drawn(
        jobs, 5, on_progress=lambda percent, note: told.append(percent), at_once=150
    )  # of 72 jobs, two at a time
    assert (means(jobs, best) <= means(jobs, first_come(jobs))).all()
    assert told == sorted(told)
    assert {40.0, 80.0, 100.0} <= set(told)
    assert told[-1] == 100
    assert_sound(jobs, best)


def test_the_seed_settles_the_draws() -> None:
    jobs = table(4, 30)
    one, again, other = (drawn(jobs, 3, seed).tobytes() for seed in (3, 3, 4))
    assert one == again != other


@pytest.mark.parametrize("at_once", [10**6, 1], ids=["side by side", "one after the other"])
def test_every_draw_is_another(at_once: int) -> None:
    jobs = table(6, 12)
    late = np.full(72, 10**6)  # worse than any draw
    one, more = (
        best_drawn(jobs, CLUSTER, HEURISTICS["random"], True, late, samples, 3, hushed, at_once) for samples in (1, 8)
    )
    assert (means(jobs, more) <= means(jobs, one)).all()
    assert (means(jobs, more) < means(jobs, one)).sum() > 3  # the first of eight is the best of them in one of eight


@pytest.mark.parametrize("evaluations", [1, 2, 50, 999])
def test_a_search_is_never_worse_whatever_its_length(evaluations: int) -> None:
    jobs = table(5, 20)
    start = drawn(jobs, 4)
    found = searched(jobs, CLUSTER, start, evaluations, 3, hushed)
    assert (means(jobs, found) <= means(jobs, start)).all()
    assert_sound(jobs, found)


def test_a_search_in_pieces_tells_of_each_and_finds_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = table(3, 20)
    start = first_come(jobs)
    whole = searched(jobs, CLUSTER, start, 6_000, 3, hushed)
    told: list[tuple[float, str]] = []
    monkeypatch.setattr(planning, "PIECE", 1)
    monkeypatch.setattr(planning, "FEWEST", 1_000)
    monkeypatch.setattr(planning, "TOGETHER", 40)  # two jobsets, then one
    pieces = searched(jobs, CLUSTER, start, 6_000, 3, lambda percent, note: told.append((percent, note)))
    assert [percent for percent, _ in told] == pytest.approx([100 * k / 18 for k in (*range(0, 14, 2), *range(13, 19))])
    assert told[-1][1] == f"mean slowdown {means(jobs, pieces).mean():.4g}"
    assert means(jobs, whole).mean() < 0.9 * means(jobs, start).mean()
    assert means(jobs, pieces).mean() == pytest.approx(means(jobs, whole).mean(), rel=0.01)
    assert_sound(jobs, pieces)


def test_a_search_does_not_mind_when_the_table_begins() -> None:
    one, late = table(2, 15), table(2, 15, first=10**12)
    found = searched(one, CLUSTER, first_come(one), 500, 3, hushed)
    assert (searched(late, CLUSTER, first_come(late), 500, 3, hushed) - 10**12).tolist() == found.tolist()


def test_a_search_gives_the_same_bytes_twice_and_others_with_another_seed() -> None:
    jobs = table(3, 30)
    start = first_come(jobs)
    one, again, other = (searched(jobs, CLUSTER, start, 200, seed, hushed).tobytes() for seed in (3, 3, 4))
    assert one == again != other


def test_a_search_of_too_many_jobs_times_schedules_is_refused() -> None:
    jobs = table(10, 10)
    must_be_searchable(jobs, CLUSTER.horizon, 10**7, "jobs.csv")
    with pytest.raises(UserError, match=r"^jobs.csv: --search: .* 1,000,000,000 .* found 100 jobs times 10,000,001$"):
        must_be_searchable(jobs, CLUSTER.horizon, 10**7 + 1, "jobs.csv")


def test_a_jobset_of_too_many_steps_is_refused_by_its_name() -> None:
    jobs = table(3, 10)
    row = np.flatnonzero((jobs.number == 1) & (jobs.jobs.arrival == jobs.jobs.arrival[jobs.number == 1].max()))[0]
    rest = jobs.jobs.arrival[jobs.number == 1].min() - jobs.jobs.duration[jobs.number == 1].sum()
    jobs.jobs.arrival[row] = planning.MOST_STEPS + rest
    must_be_searchable(jobs, CLUSTER.horizon, 1, "jobs.csv")
    jobs.jobs.arrival[row] += 1
    with pytest.raises(UserError, match=r"at most 200,000 steps .*, found 200,001 in jobset 'set 1'$"):
        must_be_searchable(jobs, CLUSTER.horizon, 1, "jobs.csv")
