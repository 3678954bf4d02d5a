import numpy as np
from environments import made
from gymnasium.wrappers import PassiveEnvChecker

from deeprm.wrappers import MaskInObservation


def test_the_mask_stands_in_the_observation_and_passes_gymnasiums_check() -> None:
    env = PassiveEnvChecker(MaskInObservation(made("deeprm/Pool-v0")))
    seen, info = env.reset(seed=1)
    assert np.array_equal(seen["action_mask"], info["action_mask"])
    assert seen["observations"].keys() == {"cluster", "jobs", "queue"}
    after, *_, info = env.step(int(seen["action_mask"].argmax()))
    assert np.array_equal(after["action_mask"], info["action_mask"])
    assert after in env.observation_space


def test_of_several_choices_the_mask_has_all_of_each() -> None:
    env = MaskInObservation(made("deeprm/Groups-v0"))
    seen, _ = env.reset(seed=1)
    assert seen["action_mask"].shape == (4 * 30,)
    assert seen["action_mask"].all()
