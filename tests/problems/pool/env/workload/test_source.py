"""No jobset is in two splits, and the same seed gives the same ones."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.core.config import AtOnce, Counts, Params, PoolLog, Streaming, Synthetic
from pipeline.core.types import SPLIT_NUMBERS, SPLITS
from pipeline.problems.pool.env.nouns import JobSet
from pipeline.problems.pool.env.workload.source import DrawnSource, LogSource, source

NO_LOG = Path("no/log")
LOADS = (50, 130)


def changed(params: Params, seed: int = 1, **settings: object) -> Params:
    """The online scenario, with few jobsets at two loads."""
    own = {"loads": LOADS, "jobsets": Counts(train=5, validation=3, test=4), **settings}
    online = params.scenarios["online"].model_copy(update=own)
    return params.model_copy(update={"seed": seed, "scenarios": {"online": online}})


def recipe(params: Params, seed: int = 1, **settings: object) -> DrawnSource:
    origin = source(changed(params, seed, **settings), "online", NO_LOG)
    assert isinstance(origin, DrawnSource)
    return origin


def content(jobs: JobSet) -> bytes:
    return b"|".join(np.asarray(field, dtype=np.int64).tobytes() for field in jobs if field is not None)


def drawn_plain(origin: DrawnSource, split: str) -> list[list[list[int]]]:
    return [[column.tolist() for column in jobs[:3]] for jobsets in origin.split(split).values() for jobs in jobsets]


def drawn(origin: DrawnSource | LogSource, split: str) -> list[bytes]:
    return [content(jobs) for jobsets in origin.split(split).values() for jobs in jobsets]


def test_every_split_has_its_jobsets_of_every_load(params: Params) -> None:
    for split, count in (("train", 5), ("validation", 3), ("test", 4)):
        found = recipe(params).split(split)
        assert {load: len(jobsets) for load, jobsets in found.items()} == {50: count, 130: count}


def test_no_jobset_is_drawn_twice_in_any_split_or_fresh(params: Params) -> None:
    origin = recipe(params)
    found = [jobs for split in SPLITS for jobs in drawn(origin, split)]
    found += [content(origin.fresh(load, number)) for load in LOADS for number in range(12)]
    assert len(found) == 2 * (5 + 3 + 4) + 24
    assert len(set(found)) == len(found)


def test_splits_and_fresh_jobsets_have_streams_of_their_own() -> None:
    assert set(SPLIT_NUMBERS) == {*SPLITS, "fresh"}
    assert len(set(SPLIT_NUMBERS.values())) == 4


def test_policies_know_the_load_of_a_jobset_where_the_scenario_says_so(params: Params) -> None:
    known, unknown = recipe(params), recipe(params, tell_load=False)
    assert [jobs.load for jobs in known.split("test")[130]] == [130.0] * 4
    assert (known.fresh(50, 0).load, known.piece("fresh", 50, 0, 20).load) == (50.0, 50.0)
    assert unknown.fresh(50, 0).load is None
    for split in SPLITS:  # the jobs are the same
        assert [jobs[:3] for jobs in drawn_plain(unknown, split)] == [jobs[:3] for jobs in drawn_plain(known, split)]
    at_once = recipe(params, slots=30, arrivals=AtOnce(name="at_once", jobs=30))
    assert at_once.fresh(50, 0).load is None  # only a label there


def test_the_same_seed_draws_the_same_jobsets(params: Params) -> None:
    for split in SPLITS:
        assert drawn(recipe(params), split) == drawn(recipe(params), split)
    assert content(recipe(params).fresh(50, 3)) == content(recipe(params).fresh(50, 3))


def test_another_seed_draws_others(params: Params) -> None:
    for split in SPLITS:
        assert not set(drawn(recipe(params, seed=1), split)) & set(drawn(recipe(params, seed=2), split))


def test_a_jobset_does_not_depend_on_how_many_are_drawn(params: Params) -> None:
    few, more = (recipe(params, jobsets=Counts(train=n, validation=1, test=1)).split("train") for n in (2, 6))
    for load in LOADS:
        assert [content(jobs) for jobs in few[load]] == [content(jobs) for jobs in more[load][:2]]


def test_a_jobset_does_not_depend_on_the_other_loads(params: Params) -> None:
    alone = recipe(params, loads=(130,)).split("test")
    assert [content(jobs) for jobs in alone[130]] == [content(jobs) for jobs in recipe(params).split("test")[130]]


def test_a_recipe_trains_on_the_loads_that_are_asked_for(params: Params) -> None:
    assert recipe(params).loads([110, 130]) == [110, 130]


def log(folder: Path, jobs: int, processors: int = 4) -> Path:
    """A log of jobs one hour apart; the k-th runs k % 5 + 1 hours on one of four processors."""
    lines = ["; MaxProcs: 4"]
    for k in range(jobs):
        hours = k % 5 + 1
        lines.append(f"{k + 1} {3600 * k} 0 {3600 * hours} {processors} -1 100 {processors} -1 -1 1 1 1 -1 1 -1 -1 -1")
    path = folder / "small.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def windows(params: Params, path: Path, seed: int = 1, **settings: object) -> LogSource:
    swf = PoolLog(name="swf", path=str(path), window=5, capacity=4)
    own = changed(params, seed, **settings).model_copy(update={"workload": swf})
    origin = source(own, "online", path)
    assert isinstance(origin, LogSource)
    return origin


def test_a_log_is_cut_into_windows_of_each_period(params: Params, tmp_path: Path) -> None:
    # Of 100 jobs, 60 to train on, 15 to validate, 25 to test: 12, 3 and 5 windows of 5 fit, 5, 3 and 4 are asked for.
    origin = windows(params, log(tmp_path, 100, processors=1))
    for split, count in (("train", 5), ("validation", 3), ("test", 4)):
        (jobsets,) = origin.split(split).values()
        assert len(jobsets) == count
        assert all(jobs.arrival.tolist() == [0, 1, 2, 3, 4] for jobs in jobsets)


def test_the_load_of_a_log_is_its_own_whatever_is_asked_for(params: Params, tmp_path: Path) -> None:
    # 100 jobs of 3 hours on average, one of 4 processors each, one an hour: 3 / 4.
    origin = windows(params, log(tmp_path, 100, processors=1))
    assert origin.loads([110, 130]) == (75,)
    assert list(origin.split("train")) == [75]


def test_fresh_windows_come_from_the_training_period_alone(params: Params, tmp_path: Path) -> None:
    # Only the jobs of the training period want one processor.
    path = log(tmp_path, 100, processors=2)
    lines = path.read_text().splitlines()
    lines[1:61] = [line.replace(" 2 -1 100 2 ", " 1 -1 100 1 ") for line in lines[1:61]]
    path.write_text("\n".join(lines) + "\n")
    origin = windows(params, path)
    fresh = [origin.fresh(76, number) for number in range(200)]
    assert all(set(jobs.demand[:, 0].tolist()) == {1} for jobs in fresh)
    assert {int(jobs.duration[0]) for jobs in fresh} == {1, 2, 3, 4, 5}
    assert all(set(jobs.demand[:, 0].tolist()) == {2} for jobs in origin.split("test")[origin.load])


def test_fresh_windows_are_those_of_their_number_and_seed(params: Params, tmp_path: Path) -> None:
    path = log(tmp_path, 100)
    one, same, other = (windows(params, path, seed) for seed in (1, 1, 2))
    several = [[content(origin.fresh(76, number)) for number in range(20)] for origin in (one, same, other)]
    assert several[0] == several[1] != several[2]


def test_windows_of_a_log_may_wait_all_at_once(params: Params, tmp_path: Path) -> None:
    origin = windows(params, log(tmp_path, 100), arrivals=AtOnce(name="at_once", jobs=3))
    for jobs in (*origin.split("train")[origin.load], origin.fresh(1, 0)):
        assert jobs.arrival.tolist() == [0, 0, 0]


def test_only_a_log_has_something_to_tell(params: Params, tmp_path: Path) -> None:
    assert recipe(params).notes == ()
    assert windows(params, log(tmp_path, 100)).notes[0] == "100 rows, 100 jobs over 4.1 days"


def test_a_recipe_needs_no_log(params: Params) -> None:
    assert not NO_LOG.exists()
    assert recipe(params).split("train")


OWN = Synthetic(name="synthetic", short=(4, 4), long=(7, 7), short_share=0.5)


def test_a_scenario_with_a_workload_of_its_own_draws_from_that(params: Params) -> None:
    jobsets = recipe(params, workload=OWN).split("train")
    duration = np.concatenate([jobs.duration for group in jobsets.values() for jobs in group])
    assert set(duration.tolist()) == {4, 7}


def test_a_workload_like_that_of_all_others_draws_the_same_jobsets(params: Params) -> None:
    assert drawn(recipe(params, workload=params.workload), "test") == drawn(recipe(params), "test")


def test_a_scenarios_own_recipe_is_drawn_where_all_others_are_cut_from_a_log(params: Params) -> None:
    swf = PoolLog(name="swf", path="no.swf")
    mine = changed(params, workload=OWN).model_copy(update={"workload": swf})
    origin = source(mine, "online", NO_LOG)
    assert isinstance(origin, DrawnSource)
    assert origin.scenario.resources == {"cpu": 10, "memory": 10}  # not the 20 units of the log
    assert drawn(origin, "validation") == drawn(recipe(params, workload=OWN), "validation")


def test_a_piece_of_a_stream_comes_as_its_scenarios_jobs_do(params: Params) -> None:
    # Of 2,000 steps at 90 %, some 976 jobs: one a step at most often, or five.
    most = {}
    for name, size in (("poisson", None), ("bursts", 5.0)):
        origin = recipe(params, arrivals=Streaming(name=name, steps=50, size=size))
        most[name] = np.unique(origin.piece("fresh", 90, 0, 2000).arrival, return_counts=True)[1].mean()
    assert most["poisson"] < 1.5
    assert most["bursts"] > 4


def asks(jobs: JobSet) -> str:
    """Return which of `code` and `wide` a jobset of many jobs was drawn from: the first has no small job."""
    return "code" if jobs.demand.max(axis=1).min() >= 5 else "wide"


def test_fresh_jobsets_and_pieces_have_each_demand_of_a_mix_equally_often(params: Params) -> None:
    mixed = source(params, "online", NO_LOG, mix=("code", "wide"))
    for drawn_ones in (
        [mixed.fresh(130, number) for number in range(400)],
        [mixed.piece("fresh", 130, number, 50) for number in range(400)],
    ):
        found = [asks(jobs) for jobs in drawn_ones]
        assert 160 < found.count("wide") < 240
        assert found[:10] != found[10:20]


def test_a_mix_changes_no_written_jobset_and_no_piece_of_another_split(params: Params) -> None:
    plain, mixed = (source(params, "online", NO_LOG, mix=mix) for mix in ((), ("wide",)))
    for split in SPLITS:
        assert drawn(mixed, split) == drawn(plain, split)
        assert content(mixed.piece(split, 130, 3, 50)) == content(plain.piece(split, 130, 3, 50))
    assert {asks(mixed.fresh(130, number)) for number in range(9)} == {"wide"}


def test_a_mix_of_one_demand_is_the_scenario_with_that_demand(params: Params) -> None:
    wide = changed(params, 1, demand="wide")
    mixed, plain = source(params, "online", NO_LOG, mix=("wide",)), source(wide, "online", NO_LOG)
    assert content(mixed.fresh(130, 5)) == content(plain.fresh(130, 5))
    assert content(mixed.piece("fresh", 130, 5, 50)) == content(plain.piece("fresh", 130, 5, 50))


def test_jobs_of_every_demand_of_a_mix_make_the_load(params: Params) -> None:
    mixed = source(params, "online", NO_LOG, mix=("code", "wide"))
    work = {"code": [0.0, 0], "wide": [0.0, 0]}
    for number in range(300):
        jobs = mixed.piece("fresh", 100, number, 200)
        total = work[asks(jobs)]
        total[0] += float((jobs.duration[:, None] * jobs.demand).mean(axis=1).sum() / 10 / 200)
        total[1] += 1
    for load, count in work.values():
        assert load / count == pytest.approx(1.0, abs=0.04)


def test_small_jobs_of_a_mix_arrive_by_poisson_where_bernoulli_could_not_make_the_load(params: Params) -> None:
    bernoulli = changed(params, 1, arrivals=Streaming(name="bernoulli", steps=400))
    mixed = source(bernoulli, "online", NO_LOG, mix=("code", "wide"))
    most = {"code": 0, "wide": 0}
    for number in range(12):
        jobs = mixed.fresh(130, number)
        most[asks(jobs)] = max(most[asks(jobs)], int(np.bincount(jobs.arrival).max()))
    assert most["code"] == 1 < most["wide"]


def test_the_default_scenario_of_unknown_load_has_the_jobs_of_online(params: Params) -> None:
    known, unknown = params.pool_scenario("online"), params.pool_scenario("unknown_load")
    assert unknown.model_copy(update={"tell_load": True}) == known
    one, other = (source(params, name, NO_LOG).fresh(70, 3) for name in ("online", "unknown_load"))
    assert content(other._replace(load=70.0)) == content(one)
    assert (one.load, other.load) == (70.0, None)
