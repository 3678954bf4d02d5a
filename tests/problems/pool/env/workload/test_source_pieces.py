"""Pieces of streams that do not end: of a recipe and of a log, for each split from its own draws or period."""

from pathlib import Path

import numpy as np
import pytest
from machine_rows import trace

from pipeline.core.config import Params, PoolLog
from pipeline.core.types import SPLIT_NUMBERS
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.workload.source import DrawnSource, LogSource, source
from pipeline.problems.pool.env.workload.windows import Discretised

STEPS = 200
PERIODS = {"train": (0, 60), "fresh": (0, 60), "validation": (60, 75), "test": (75, 100)}


def content(jobs: JobSet) -> bytes:
    return b"|".join(np.asarray(field, dtype=np.int64).tobytes() for field in jobs if field is not None)


@pytest.fixture
def recipe(params: Params) -> DrawnSource:
    origin = source(params, "online", Path("no/log"))
    assert isinstance(origin, DrawnSource)
    return origin


def test_a_piece_of_a_recipe_has_its_steps_and_its_load(recipe: DrawnSource) -> None:
    capacity = np.array([10, 10])
    work = np.zeros(2)
    for number in range(40):
        jobs = recipe.piece("train", 90, number, STEPS)
        assert (np.diff(jobs.arrival) >= 0).all()
        assert 0 <= jobs.arrival.min() <= jobs.arrival.max() < STEPS
        work += (jobs.duration[:, None] * jobs.demand).sum(axis=0)
    assert (work / (40 * STEPS * capacity)).mean() == pytest.approx(0.9, abs=0.05)


def test_no_piece_and_no_jobset_of_a_recipe_are_the_same(recipe: DrawnSource) -> None:
    scenario = recipe.scenario
    assert scenario.arrivals.name == "poisson"
    steps = 50  # as long as its jobsets: only the draws tell them apart
    found = [content(recipe.piece(split, 110, number, steps)) for split in SPLIT_NUMBERS for number in range(5)]
    found += [content(recipe.fresh(110, number)) for number in range(5)]
    found += [content(jobs) for split in ("train", "validation", "test") for jobs in recipe.split(split)[110][:5]]
    assert len(found) == len(set(found)) == 5 * 4 + 5 + 15
    assert content(recipe.piece("train", 110, 3, steps)) == content(recipe.piece("train", 110, 3, steps))


def log(arrival: np.ndarray) -> Discretised:
    """A hundred jobs; each is known by its duration."""
    count = len(arrival)
    return Discretised(
        id=np.arange(count),
        arrival=arrival,
        duration=np.arange(1, count + 1),
        demand=np.ones((count, 1), dtype=np.int16),
        step_s=60,
        longest=count,
        capped=0,
        oversized={},
        total={},
        unit={},
        capacity={"cpu": 4},
        load={"cpu": (0.5, 0.5)},
    )


def windows(params: Params, arrival: np.ndarray, seed: int = 1) -> LogSource:
    swf = PoolLog(name="swf", path="", train_share=0.6, validation_share=0.15)
    untold = trace([0], [1], [1])
    return LogSource(seed, seed, params.pool_scenario("online"), swf, untold, log(arrival))


@pytest.mark.parametrize("split", list(PERIODS))
def test_a_piece_of_a_log_is_all_that_arrives_in_its_steps(params: Params, split: str) -> None:
    arrival = np.sort(np.random.default_rng(2).integers(0, 400, 100))
    first, after = PERIODS[split]
    starts = set()
    for number in range(60):
        jobs = windows(params, arrival).piece(split, 100, number, 20)
        start = int(jobs.duration[0]) - 1
        starts.add(start)
        end = start + len(jobs.arrival)
        assert first <= start < end <= after
        assert jobs.duration.tolist() == list(range(start + 1, end + 1))
        assert jobs.arrival.tolist() == (arrival[start:end] - arrival[start]).tolist()
        assert jobs.arrival.max() < 20
        assert end == after or arrival[end] - arrival[start] >= 20  # nobody is left out
        assert arrival[after - 1] - arrival[start] >= 20  # there is room for all its steps
    room = [k for k in range(first, after) if arrival[k] <= arrival[after - 1] - 20]
    assert starts <= set(room)
    assert len(starts) > len(room) / 3


def test_a_period_shorter_than_a_piece_gives_what_it_has(params: Params) -> None:
    jobs = windows(params, np.arange(100)).piece("validation", 100, 0, 1000)
    assert jobs.duration.tolist() == list(range(61, 76))


def test_pieces_of_a_log_go_by_split_number_and_seed(params: Params) -> None:
    arrival = np.arange(100)
    one, other = windows(params, arrival), windows(params, arrival, seed=2)
    found = [content(one.piece("train", 100, number, 10)) for number in range(8)]
    assert found == [content(one.piece("train", 100, number, 10)) for number in range(8)]
    assert found != [content(one.piece("fresh", 100, number, 10)) for number in range(8)]
    assert found != [content(other.piece("train", 100, number, 10)) for number in range(8)]


def test_pieces_of_a_log_and_its_fresh_windows_have_draws_of_their_own(
    params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[tuple[int, ...]] = []
    draw = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: seeds.append(tuple(seed)) or draw(seed))
    origin = windows(params, np.arange(400))
    origin.fresh(100, 0)
    for split in SPLIT_NUMBERS:
        origin.piece(split, 100, 0, 10)
    assert len(set(seeds)) == len(seeds) == 1 + len(SPLIT_NUMBERS)
