import pickle

import numpy as np
import pytest
from environments import IDS, legal, made, several
from gymnasium.vector import AutoresetMode

SEED = 11


def masked(infos: dict, rng: np.random.Generator, envs) -> np.ndarray:
    return np.array([legal(mask, rng, envs.single_action_space) for mask in infos["action_mask"]])


@pytest.mark.parametrize("name", IDS)
def test_a_single_environment_is_a_row_bit_for_bit(name: str) -> None:
    """Through several episodes, in the mode in which a reset is a separate step."""
    count, rng = 3, np.random.default_rng(0)
    envs, singles = several(name, count), [made(name) for _ in range(count)]
    (seen, infos), begun = envs.reset(seed=SEED), [one.reset(seed=SEED + k) for k, one in enumerate(singles)]
    over = np.zeros(count, dtype=bool)
    for _ in range(150):
        for k, (mine, _) in enumerate(begun):
            assert all((mine[key] == seen[key][k]).all() and mine[key].dtype == seen[key].dtype for key in mine)
        actions = masked(infos, rng, envs)
        seen, rewards, terminations, truncations, infos = envs.step(actions)
        begun = []
        for k, one in enumerate(singles):
            found = one.reset() if over[k] else None
            if found is None:
                mine, reward, terminated, truncated, info = one.step(actions[k])
                assert (reward, terminated, truncated) == (rewards[k], terminations[k], truncations[k])
                found = mine, info
            assert (found[1]["action_mask"] == infos["action_mask"][k]).all()
            assert (found[1]["elapsed"], found[1]["illegal"]) == (infos["elapsed"][k], infos["illegal"][k])
            if "metrics" in found[1]:
                assert infos["_metrics"][k]
                assert found[1]["metrics"] == {key: infos["metrics"][key][k] for key in found[1]["metrics"]}
            begun.append(found)
        over = terminations | truncations


def transitions(mode: AutoresetMode, steps: int) -> list[list]:
    """Transitions of each environment in any mode: (observation, action, reward, end)."""
    envs = several("deeprm/Pool-v0", 4, load=70, autoreset_mode=mode)
    seen, infos = envs.reset(seed=SEED)
    found: list[list] = [[] for _ in range(4)]
    over = np.zeros(4, dtype=bool)
    for _ in range(steps):
        # the first legal action: the same in both modes, even if other draws differ
        actions = infos["action_mask"].argmax(axis=1)
        before, skipped = seen, over
        seen, rewards, terminations, truncations, infos = envs.step(actions)
        over = terminations | truncations
        after = infos.get("final_obs", [None] * 4)
        for k in np.flatnonzero(~skipped if mode == AutoresetMode.NEXT_STEP else np.ones(4, dtype=bool)):
            last = after[k] if after[k] is not None else {key: seen[key][k] for key in seen}
            numbers = [before[key][k].tolist() + last[key].tolist() for key in sorted(seen)]
            found[k].append((numbers, int(actions[k]), float(rewards[k]), bool(over[k])))
    return found


def test_both_modes_of_autoreset_give_the_same_transitions() -> None:
    next_step, same_step = transitions(AutoresetMode.NEXT_STEP, 160), transitions(AutoresetMode.SAME_STEP, 160)
    for one, other in zip(next_step, same_step, strict=True):
        shared = min(len(one), len(other))
        assert sum(end for *_, end in one[:shared]) > 3
        assert one[:shared] == other[:shared]


def test_the_last_info_of_an_episode_is_kept_where_the_next_one_begins_at_once() -> None:
    envs = several("deeprm/Pool-v0", 2, load=10, autoreset_mode=AutoresetMode.SAME_STEP)
    _, infos = envs.reset(seed=SEED)
    while "final_info" not in infos:
        _, _, terminations, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
    k = int(np.flatnonzero(infos["_final_info"])[0])
    assert terminations[k]
    assert infos["final_info"]["metrics"]["jobs"][k] > 0
    assert infos["final_info"]["elapsed"][k] > 0
    assert infos["elapsed"][k] == 0


@pytest.mark.parametrize("name", IDS)
def test_random_actions_without_a_mask_never_fail(name: str) -> None:
    """100,000 steps over all ids, most of them in the pooled cluster."""
    count = 500 if name == "deeprm/Pool-v0" else 100
    envs, rng = several(name, count), np.random.default_rng(2)
    envs.reset(seed=SEED)
    illegal, steps = 0, 100 if name == "deeprm/Pool-v0" else 110
    for _ in range(steps):
        space = envs.single_action_space
        seen, rewards, _, _, infos = envs.step(rng.integers(getattr(space, "n", 30), size=envs.action_space.shape))
        assert np.isfinite(rewards).all()
        illegal += int(infos["illegal"].sum())
    assert all((each >= 0).all() and (each <= 1).all() for each in seen.values())
    assert (illegal > 0) == (name != "deeprm/Groups-v0")


def test_options_hold_for_all_environments() -> None:
    envs = several("deeprm/Pool-v0", 3)
    envs.reset(seed=1, options={"split": "test", "load": 130, "jobset": 2})
    episodes = envs.unwrapped.episodes
    played = episodes.simulator.played(episodes.rows)
    jobs = episodes.game.split("test")[130][2]
    assert np.array_equal(played.arrival, np.tile(jobs.arrival, 3))


def test_a_longer_jobset_makes_room_and_the_others_go_on() -> None:
    envs = several("deeprm/Pool-v0", 2)
    envs.reset(seed=1, options={"load": 10, "jobset": 0})
    episodes = envs.unwrapped.episodes
    room = episodes._room
    played = episodes.simulator.played(episodes.rows[[0]])
    episodes.begin(np.array([1]), {"load": 190, "jobset": 0})
    assert episodes._room > room
    assert np.array_equal(episodes.simulator.played(episodes.rows[[0]]).arrival, played.arrival)
    episodes.observe()
    for _ in range(200):
        episodes.step(np.array([0]), episodes.mask[[0]].argmax(axis=1))
        episodes.observe()
        if episodes.simulator.ended(episodes.rows[[0]])[0][0]:
            break
    assert episodes.metrics(np.array([0]))["unfinished"][0] == 0


def test_a_pickled_vector_of_environments_goes_on_as_it_did() -> None:
    envs = several("deeprm/Machines-v0", 3)
    _, infos = envs.reset(seed=1)
    for _ in range(5):
        _, _, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
    other = pickle.loads(pickle.dumps(envs))
    actions = infos["action_mask"].argmax(axis=1)
    mine, theirs = envs.step(actions), other.step(actions)
    assert all((mine[0][key] == theirs[0][key]).all() for key in mine[0])
    assert (mine[1] == theirs[1]).all()


def test_seeds_may_be_given_one_by_one() -> None:
    envs = several("deeprm/Pool-v0", 2)
    seen, _ = envs.reset(seed=[5, 5])
    assert all((value[0] == value[1]).all() for value in seen.values())
    with pytest.raises(ValueError, match="expected 2 seeds, got 3"):
        envs.reset(seed=[1, 2, 3])


def test_environments_that_never_reset_are_refused() -> None:
    with pytest.raises(ValueError, match="expected NEXT_STEP or SAME_STEP, got DISABLED"):
        several("deeprm/Pool-v0", 2, autoreset_mode=AutoresetMode.DISABLED)
