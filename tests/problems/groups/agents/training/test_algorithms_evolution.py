"""Evolution of a written value function: what candidates cost, by hand, and that it finds better ones."""

import numpy as np
import pytest
from group_builders import CLUSTER, Job, drawn_jobs, jobset, tiny_task, written

from pipeline.core.config import Evolution, EvolutionRecipe
from pipeline.core.types import FloatArray
from pipeline.problems.groups.agents.networks.q_network import Worth, first_weights
from pipeline.problems.groups.agents.training import algorithms as evolving
from pipeline.problems.groups.agents.training.algorithms import costs
from pipeline.problems.groups.agents.training.task import Task
from pipeline.problems.groups.env.nouns import Jobs

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


def test_it_moves_the_network_to_where_all_loads_cost_little_as_parts_of_their_own_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = GREEDY + np.linspace(-1, 1, len(GREEDY))
    apart = np.array([1.0, 1e6])  # a load that costs a million times as much counts no more than the other

    def known(network: Worth, task: Task, candidates: FloatArray, jobsets: list[Jobs]) -> FloatArray:
        off = np.stack([(candidates[:, :6] - target[:6]) ** 2, (candidates[:, 6:] - target[6:]) ** 2]).sum(axis=2)
        return np.broadcast_to((apart[:, None] * off).T[None], (2, len(candidates), 2))

    monkeypatch.setattr(evolving, "costs", known)
    task, network = tiny_task(RECIPE)._replace(loads=[100, 200]), written()
    config = Evolution(name="evolution", recipe="", loads=(100,), updates=120, jobsets=2, validate_every=8)
    assert [update.step for update in evolving.evolution(network, task, config)] == list(range(1, 121))
    assert np.abs(network.weight.detach().numpy() - target).max() < 0.1
