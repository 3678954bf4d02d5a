"""What all compiled simulators have in common: forks, rows that are overwritten, rewards that add up."""

import numpy as np
import pytest
from environments import IDS, legal, made


def walked(game, simulator, rows: np.ndarray, seed: int, steps: int) -> list:
    """Rewards and times of a few decisions in some episodes."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(steps):
        _, masks = game.look(simulator, rows)
        actions = np.array([legal(mask, rng, game.action_space) for mask in masks])
        simulator.step(rows, game.decode(actions))
        found.append((simulator.gained[rows].tolist(), simulator.now[rows].tolist()))
    return found


@pytest.mark.parametrize("name", IDS)
def test_a_fork_and_an_overwritten_row_go_on_as_their_episode_does(name: str) -> None:
    game = made(name).episodes.game
    load = game.loads[-1]
    jobsets = [game.source.fresh(load, number) for number in range(3)]
    simulator = game.simulator(jobsets)
    walked(game, simulator, np.arange(3), seed=1, steps=8)
    forked = simulator.fork(np.array([2, 0, 2]))
    room = 1 + max(len(jobs.arrival) for jobs in jobsets)
    roomy = game.simulator([jobsets[0]] * 2, room)
    roomy.overwrite(np.array([0, 2]), simulator, np.array([1, 2]))
    mine = walked(game, simulator, np.array([2]), seed=2, steps=8)
    assert walked(game, forked, np.array([0]), seed=2, steps=8) == mine
    assert walked(game, forked, np.array([2]), seed=2, steps=8) == mine
    assert walked(game, roomy, np.array([2]), seed=2, steps=8) == mine
    other = walked(game, simulator, np.array([1]), seed=3, steps=8)
    assert walked(game, roomy, np.array([0]), seed=3, steps=8) == other
    for one, row in ((forked, 0), (roomy, 2)):
        expected, found = simulator.played(np.array([2])), one.played(np.array([row]))
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(expected, found, strict=True))
