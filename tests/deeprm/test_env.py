import copy
import json
import pickle
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from environments import IDS, legal, made, settings, shortest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_sb3

import deeprm
from pipeline.core.types import CompiledRule, keys
from pipeline.errors import UserError
from pipeline.problems.machines.env.simulator.rules import players as machines_players
from pipeline.problems.pool.env.simulator.rules import players as pool_players

GOLDEN = Path(__file__).with_name("golden.json")
SLOTS = {
    "deeprm/Pool-v0": 10,
    "deeprm/Stream-v1": 60,
    "deeprm/Offline-v0": 30,
    "deeprm/Machines-v0": 10,
    "deeprm/RLScheduler-v0": 128,
}


def walked(env: gymnasium.Env, seed: int, steps: int) -> list:
    """Rewards and sums of observations on a random walk of legal actions, through several episodes."""
    rng, found = np.random.default_rng(seed), []
    _, info = env.reset(seed=seed)
    for _ in range(steps):
        seen, reward, terminated, truncated, info = env.step(legal(info["action_mask"], rng, env.action_space))
        found.append((reward, info["elapsed"], sum(float(each.sum()) for each in seen.values())))
        if terminated or truncated:
            _, info = env.reset()
    return found


def to_the_end(env: gymnasium.Env, choose, **begin) -> tuple[float, dict]:
    seen, info = env.reset(**begin)
    total, over = 0.0, False
    while not over:
        seen, reward, terminated, truncated, info = env.step(choose(seen, info["action_mask"]))
        total, over = total + reward, terminated or truncated
    return total, info | {"truncated": truncated, "terminated": terminated}


@pytest.mark.parametrize("name", IDS)
def test_gymnasium_and_sb3_find_nothing_wrong(name: str) -> None:
    env = made(name, render_mode="rgb_array")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(env)
        check_for_sb3(env)
    assert [str(one.message) for one in said] == []


@pytest.mark.parametrize("name", IDS)
def test_a_seed_repeats_episodes_and_the_next_ones_differ(name: str) -> None:
    env = made(name)
    first, again = walked(env, 5, 40), walked(env, 5, 40)
    assert first == again
    assert walked(env, 6, 40) != first
    durations = []
    for seed in (5, None):
        env.reset(seed=seed)
        durations.append(env.episodes.simulator.played(env.episodes.rows).duration)
    assert not np.array_equal(*durations)


@pytest.mark.parametrize("name", [name for name in IDS if name != "deeprm/Stream-v1"])  # it ends while jobs wait
def test_the_return_is_minus_the_total_of_what_is_minimised(name: str) -> None:
    env, rng = made(name), np.random.default_rng(1)
    total, info = to_the_end(env, lambda _, mask: legal(mask, rng, env.action_space), seed=2)
    metrics = info["metrics"]
    measure = "mean_wait" if name == "deeprm/Groups-v0" else "mean_slowdown"
    if name == "deeprm/RLScheduler-v0":  # it lacks the lower bound of 1 on slowdown
        played = env.episodes.simulator.played(env.episodes.rows)
        expected = ((played.finish - played.arrival) / np.maximum(played.duration, 10)).sum()
    else:
        expected = metrics["jobs"] * metrics[measure]
    assert metrics["unfinished"] == 0
    assert not info["truncated"]
    assert total == pytest.approx(-expected, rel=1e-9)


@pytest.mark.parametrize("name", SLOTS)
def test_sjf_by_what_is_seen_is_the_compiled_sjf(name: str) -> None:
    env = made(name)
    game = env.episodes.game
    load = game.loads[0 if name == "deeprm/Stream-v1" else -1]  # at other loads SJF leaves a job that never starts
    options = {"split": "validation", "jobset": 0, "load": load}
    total, info = to_the_end(env, lambda seen, mask: shortest(seen, mask, SLOTS[name]), options=options)
    jobs = game.split("validation")[load][0]
    simulator = game.simulator([jobs])
    make = pool_players if name in ("deeprm/Pool-v0", "deeprm/Stream-v1", "deeprm/Offline-v0") else machines_players
    one = np.zeros(1, dtype=np.int64)
    simulator.play(np.array([0]), make([CompiledRule("sjf")], keys(1, one, one)), 10**9)
    played = simulator.played(np.array([0]))
    assert total == pytest.approx(simulator.gained[0], rel=1e-12)
    first, after = game.measured or (0, np.inf)
    counts = (played.arrival >= first) & (played.arrival < after)
    assert info["metrics"]["mean_wait"] == (played.start - played.arrival)[counts].mean()


def test_equal_shares_of_groups_are_the_rule_equal() -> None:
    from pipeline.problems.groups.env.evaluation.play import score
    from pipeline.problems.groups.heuristics.tuning import rules_with, untuned

    env = made("deeprm/Groups-v0")
    game = env.episodes.game
    level = int(np.flatnonzero(game.configurations.units[:, 0] == game.cluster.capacity[0] // game.row.groups)[0])
    action = np.full(game.row.groups, level * game.configurations.orders)
    _, info = to_the_end(env, lambda *_: action, options={"split": "validation", "jobset": 1, "load": 80})
    rules = rules_with(untuned(game.row.groups), game.cluster, game.configurations)
    jobs = {80: [game.split("validation")[80][1]]}
    results = score({"equal": rules["equal"]}, jobs, game.cluster, seed=1)["equal"]
    assert info["metrics"]["mean_wait"] == pytest.approx(results.jobsets["mean_wait"][0], rel=1e-12)


@pytest.mark.parametrize("name", IDS)
def test_the_walk_is_the_stored_one(name: str) -> None:
    """If this must change, the version of the ids must rise; golden() writes the file again."""
    stored = json.loads(GOLDEN.read_text())[name]
    assert np.allclose(walked(made(name), 7, 25), stored, rtol=1e-9, atol=1e-12)


def golden() -> None:
    GOLDEN.write_text(json.dumps({name: walked(made(name), 7, 25) for name in IDS}))


@pytest.mark.parametrize("name", ["deeprm/Pool-v0", "deeprm/Machines-v0", "deeprm/Groups-v0"])
def test_a_copy_and_a_pickle_go_on_as_the_environment_does(name: str) -> None:
    env = made(name)
    walked(env, 3, 30)
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    action = env.action_space.sample()
    steps = [one.step(action) for one in (env, *others)]
    resets = [one.reset() for one in (env, *others)]
    for found in (steps, resets):
        assert all(
            (found[0][0][key] == other[0][key]).all() and found[0][1:-1] == other[1:-1]
            for other in found[1:]
            for key in found[0][0]
        )


def test_an_illegal_action_becomes_void_and_is_counted() -> None:
    env, other = made("deeprm/Pool-v0"), made("deeprm/Pool-v0")
    for one in (env, other):
        one.reset(seed=1)
    empty = int(np.flatnonzero(~env.action_masks())[0])
    void = env.action_space.n - 1
    (seen, reward, *_, info), (same, equal, *_) = env.step(empty), other.step(void)
    assert info["illegal"] == 1
    assert reward == equal
    assert all((seen[key] == same[key]).all() for key in seen)


def test_an_illegal_action_can_raise_and_says_what_is_legal() -> None:
    env = made("deeprm/Pool-v0", illegal="raise")
    env.reset(seed=1)
    empty = int(np.flatnonzero(~env.action_masks())[0])
    with pytest.raises(ValueError, match=rf"action {empty} is illegal; the mask allows \["):
        env.step(empty)


@pytest.mark.parametrize("action", [-1, 11, 1000])
def test_an_action_outside_of_the_space_raises(action: int) -> None:
    env = made("deeprm/Pool-v0")
    env.reset(seed=1)
    with pytest.raises(ValueError, match="outside of Discrete"):
        env.step(action)


def test_an_episode_is_truncated_by_simulated_time() -> None:
    env = made("deeprm/Pool-v0", scenario={"step_limit": 30}, load=190)
    void = env.action_space.n - 1
    total, info = to_the_end(env, lambda *_: void, seed=1)
    assert (info["terminated"], info["truncated"]) == (False, True)
    assert info["metrics"]["end"] == 30
    assert info["metrics"]["unfinished"] > 0
    assert total < 0


def test_a_discount_can_count_time_for_forced_moves_are_elapsed() -> None:
    env = made("deeprm/Pool-v0", load=10)
    plain = made("deeprm/Pool-v0", load=10, skip_forced=False)
    elapsed = []
    for one in (env, plain):
        one.reset(seed=4)
        over, sums = False, []
        while not over:
            *_, terminated, truncated, info = one.step(int(np.flatnonzero(one.action_masks())[0]))
            sums.append(info["elapsed"])
            over = terminated or truncated
        elapsed.append(sums)
    assert max(elapsed[0]) > 1
    assert max(elapsed[1]) == 1
    assert env.episodes.simulator.now[env.episodes.rows] == plain.episodes.simulator.now[plain.episodes.rows]


def test_test_jobsets_are_played_on_request_only() -> None:
    env = made("deeprm/Pool-v0")
    test = env.episodes.game.split("test")[90][3]
    env.reset(options={"split": "test", "load": 90, "jobset": 3})
    played = env.episodes.simulator.played(env.episodes.rows)
    assert (played.arrival == test.arrival).all()
    env.reset()
    assert not np.array_equal(env.episodes.simulator.played(env.episodes.rows).arrival, test.arrival)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load": 42}, "load: expected one of 10, 30"),
        ({"objective": "profit"}, "objective: expected one of slowdown"),
        ({"illegal": "ignore"}, "illegal: expected void or raise, got 'ignore'"),
        ({"scenario": "nowhere"}, "no scenario 'nowhere'"),
        ({"scenario": {"slots": 0}}, "scenarios.online.slots"),
        ({"render_mode": "svg"}, "render_mode: expected ansi or rgb_array"),
        ({"jobs": "/nowhere/log.swf"}, "/nowhere/log.swf"),
    ],
)
def test_a_wrong_argument_is_told(changes: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        made("deeprm/Pool-v0", **changes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": 3}, "expected keys load, jobset, split, got 'level'"),
        ({"split": "exam"}, "split: expected one of train, validation, test"),
        ({"split": "test", "load": 90, "jobset": 200}, "expected 0 to 199 of split test, got 200"),
        ({"load": 11}, "load: expected one of"),
    ],
)
def test_a_wrong_option_is_told_and_the_episode_goes_on(options: dict, said: str) -> None:
    env = made("deeprm/Pool-v0")
    before, _ = env.reset(seed=1)
    with pytest.raises(UserError, match=said):
        env.reset(options=options)
    assert all((env._seen()[key] == before[key]).all() for key in before)


def test_forced_moves_of_machines_are_always_skipped() -> None:
    with pytest.raises(UserError, match="skip_forced: scenario 'machines' is of problem machines"):
        made("deeprm/Machines-v0", skip_forced=False)


def test_a_log_takes_the_place_of_the_recipe() -> None:
    env = made("deeprm/Pool-v0", jobs=settings("deeprm/RLScheduler-v0")["jobs"])
    _, info = env.reset(seed=1)
    assert len(env.episodes.game.loads) == 1
    assert info["action_mask"].any()
    assert int(np.diff(env.episodes.simulator.played(env.episodes.rows).first)[0]) == 100


def test_the_scenarios_are_those_of_the_default_run() -> None:
    from builders import params

    from deeprm.env import settings as of

    ours, _ = of("online")
    default = params()
    assert (ours.scenarios, ours.workload, ours.demands) == (default.scenarios, default.workload, default.demands)


def test_make_and_gymnasium_make_are_one() -> None:
    assert deeprm.make is gymnasium.make
    assert {spec for spec in gymnasium.registry if spec.startswith("deeprm/")} == set(IDS)


def test_the_image_is_deeprms_cell_by_cell() -> None:
    """Compare with the image that the project's own network draws with other code."""
    from pipeline.problems.pool.agents.networks.encodings import Layout, draw
    from pipeline.problems.pool.env.nouns import compact

    env = made("deeprm/Pool-v0", obs="image", load=190)
    check_env(env, skip_render_check=True)
    seen, info = env.reset(seed=3)
    for _ in range(40):
        seen, _, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
        assert (terminated, truncated) == (False, False)
    view = env.episodes.simulator.observe(env.episodes.rows)
    layout = Layout.of(env.episodes.game.cluster, clock=True)
    drawn = np.asarray(draw(compact(view), layout)).reshape(1, layout.rows, layout.columns)
    ours = seen["image"][0] / 255
    assert np.array_equal(ours[:, :-1], drawn[0, :, :-1])
    assert ours[:, -1] == pytest.approx(drawn[0, :, -1], abs=1 / 255)
    assert 0 < ours[:, :-1].mean() < 1


def test_only_pooled_clusters_have_images() -> None:
    with pytest.raises(UserError, match="obs: scenario 'machines' is of problem machines"):
        made("deeprm/Machines-v0", obs="image")


def test_a_stream_is_left_once_its_measured_jobs_have_started_and_tells_of_these() -> None:
    env = made("deeprm/Stream-v1", load=50)
    _, info = env.reset(seed=2, options={"split": "validation", "load": 50, "jobset": 0})
    over = False
    while not over:
        action = int(np.flatnonzero(info["action_mask"])[0])
        _, _, terminated, over, info = env.step(action)
        assert not terminated
    jobs = env.episodes.game.split("validation")[50][0]
    metrics = info["metrics"]
    assert metrics["jobs"] == (jobs.arrival < 60).sum() < len(jobs.arrival)
    assert metrics["unfinished"] == 0
    assert metrics["end"] < 200
