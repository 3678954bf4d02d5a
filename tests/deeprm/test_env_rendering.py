import numpy as np
import pytest
from environments import IDS, legal, made

from pipeline.errors import UserError


@pytest.mark.parametrize("name", IDS)
def test_the_picture_and_the_text_show_running_and_waiting_jobs(name: str) -> None:
    rng, pictures, texts = np.random.default_rng(1), [], []
    for mode, found in (("rgb_array", pictures), ("ansi", texts)):
        env = made(name, render_mode=mode)
        _, info = env.reset(seed=1, options={"load": env.episodes.game.loads[-1]})
        found.append(env.render())
        for _ in range(12):
            *_, info = env.step(legal(info["action_mask"], rng, env.action_space))
        found.append(env.render())
    assert pictures[1].dtype == np.uint8
    assert pictures[1].shape == (260, 480, 3)
    assert (pictures[0] != pictures[1]).any()
    assert (pictures[1][:200] < 255).any()
    assert texts[1].startswith("time ")
    assert " job " in texts[1]


def test_an_environment_without_a_render_mode_says_so() -> None:
    env = made("deeprm/Pool-v0")
    env.reset(seed=1)
    with pytest.raises(UserError, match='render: expected render_mode="ansi" or "rgb_array"'):
        env.render()
