"""Evolution of a written value function: what candidates cost, by hand, and that it finds better ones."""

import numpy as np
import pytest
from group_builders import CLUSTER, Job, drawn_jobs, jobset, tiny_task, written

from pipeline.config import Evolution, EvolutionRecipe
from pipeline.problems.groups.networks.worth import first_weights
from pipeline.problems.groups.training import evolution as evolving
from pipeline.problems.groups.training.evolution import costs

RECIPE = EvolutionRecipe(algorithm="evolution", population=8, spread=0.5)
GREEDY = first_weights(2).numpy()
NOTHING = 0 * GREEDY  # every level is worth the same: the programme gives nothing, and what is left goes by demand


def test_candidates_cost_the_mean_and_the_root_mean_square_of_waiting_each_in_every_jobset() -> None:
    # Both start at once in the first jobset. In the second, the job of 4 units waits until the other ends at 8.
    apart = jobset(Job(0, 5, 2, group=0), Job(0, 5, 2, group=1))
    behind = jobset(Job(0, 8, 2, group=0), Job(0, 5, 4, group=0))
    found = costs(written(), tiny_task(RECIPE), np.stack([GREEDY, GREEDY]), [apart, behind])
    np.testing.assert_allclose(found, [[[0, 4]] * 2, [[0, 32**0.5]] * 2])


def test_candidates_do_not_play_each_others_episodes() -> None:
    jobsets = [drawn_jobs(100, k) for k in range(3)]
    both = costs(written(), tiny_task(RECIPE), np.stack([GREEDY, NOTHING]), jobsets)
    alone = [costs(written(), tiny_task(RECIPE), one[None], jobsets)[:, 0] for one in (GREEDY, NOTHING)]
    np.testing.assert_array_equal(both, np.stack(alone, axis=1))
    assert (both[:, 0] != both[:, 1]).any()


def test_jobs_that_never_start_cost_at_least_until_their_episode_was_cut() -> None:
    late = CLUSTER._replace(time_limit=10.0)
    task = tiny_task(RECIPE)._replace(cluster=late)
    found = costs(written(), task, GREEDY[None], [jobset(Job(0, 50, 4, group=0), Job(0, 5, 4, group=1))])
    np.testing.assert_allclose(found[:, 0, 0], [5, 50**0.5])


def test_from_weights_that_serve_nobody_it_finds_some_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolving, "first_weights", lambda queues: -first_weights(queues))
    task, network = tiny_task(RECIPE), written()
    config = Evolution(name="evolution", recipe="", loads=(100,), updates=8, jobsets=4, validate_every=8)
    assert [update.step for update in evolving.evolution(network, task, config)] == list(range(1, 9))
    other = [drawn_jobs(100, 9000 + k) for k in range(20)]
    found = costs(network, task, np.stack([-GREEDY, network.weight.detach().numpy()]), other)
    assert found[0, 1].mean() < 0.7 * found[0, 0].mean()
