import numpy as np
from environments import several
from gymnasium.vector import AutoresetMode
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

from deeprm.sb3 import VecEnv


def test_masks_reach_sb3_contrib_and_episodes_are_those_of_the_vectorized_environment() -> None:
    envs, same = VecEnv("deeprm/Pool-v0", 3, load=10), several("deeprm/Pool-v0", 3, load=10, autoreset_mode="SameStep")
    envs.seed(5)
    mine, (theirs, infos) = envs.reset(), same.reset(seed=5)
    assert is_masking_supported(envs)
    ended = 0
    for _ in range(60):
        masks = get_action_masks(envs)
        assert np.array_equal(masks, infos["action_mask"].astype(bool))
        actions = masks.argmax(axis=1)
        mine, rewards, over, told = envs.step(actions)
        theirs, expected, terminations, _, infos = same.step(actions)
        assert all(np.array_equal(mine[key], theirs[key]) for key in mine)
        assert np.array_equal(rewards, expected.astype(np.float32))
        assert np.array_equal(over, terminations)
        for k in np.flatnonzero(over):
            assert np.array_equal(told[k]["terminal_observation"]["jobs"], infos["final_obs"][k]["jobs"])
            metrics = infos["final_info"]["metrics"]
            assert np.isclose(told[k]["episode"]["r"], -(metrics["jobs"] * metrics["mean_slowdown"])[k], rtol=1e-6)
            assert not told[k]["TimeLimit.truncated"]
            ended += 1
    assert ended > 3
    assert same.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
