"""Evolution of scores: what candidates cost, and that it falls."""

import numpy as np
import pytest
from builders import jobset, tiny_piece, tiny_task

from pipeline.core.config import EvolutionRecipe, PoolEvolution, Recipe
from pipeline.core.config.pool.learning import Scores, StreamPieces
from pipeline.core.types import CompiledRule
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.agents.networks.scores import Scores as Network
from pipeline.problems.pool.agents.networks.scores import rule_of
from pipeline.problems.pool.agents.training.evolution import (
    BASE,
    evolution,
    groups,
    half_known,
    to_base,
    together,
    validate_scores,
)
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.simulator.score_rule import FEATURES

SHORT = PoolEvolution(name="evolution", recipe="", loads=(120,), updates=12, jobsets=6, validate_every=1)
ONE = Cluster((10,), 20, 4, 4, False, stall=40)


def scores(**weights: float) -> CompiledRule:
    return rule_of(np.array([weights.get(name, 0.0) for name in FEATURES]), 0)


@pytest.fixture
def task(params_recipe: Recipe) -> Task:
    recipe = EvolutionRecipe(algorithm="evolution", population=8, spread=0.5)
    return tiny_task(params_recipe)._replace(recipe=recipe)


@pytest.fixture
def params_recipe(params: object) -> Recipe:
    return params.recipes["ours"]  # type: ignore[attr-defined,no-any-return]


def test_costs_are_shares_of_the_base_rule_by_hand() -> None:
    jobs = [jobset((0, 1, 10), (0, 3, 10))]
    # Shortest first: slowdowns 1 and 4/3. Longest first: 1 and 4.
    costs = to_base([BASE, scores(always=1.0, length=-1.0), scores(length=1.0)], jobs, ONE, 50)
    assert costs.tolist() == pytest.approx([1.0, 1.0, 2.5 / (7 / 6)])


def test_of_a_stream_the_measured_jobs_alone_count_and_a_starved_one_costs_what_it_waited() -> None:
    jobs = [jobset((0, 4, 10), (3, 1, 10), *((step, 1, 10) for step in range(4, 40)))]
    cluster = ONE._replace(measured=(0, 1))
    never_long = scores(always=1.0, length=-6.0)  # starts nothing of four steps and more: 4 / 15 * 6 > 1
    costs = to_base([BASE, never_long], jobs, cluster, 30)
    assert costs[0] == 1.0
    assert costs[1] == pytest.approx(30 / 4)  # in the step limit it has not started; BASE starts it at once


def test_a_stream_without_a_measured_job_makes_all_candidates_equal() -> None:
    cluster = ONE._replace(measured=(20, 25))
    assert to_base([BASE, scores(length=1.0)], [jobset((0, 1, 10), (1, 3, 10))], cluster, 30).tolist() == [1.0, 1.0]


def test_streams_have_a_weight_beside_short_runs() -> None:
    parts = [("short", np.array([1.0, 2.0])), ("short", np.array([3.0, 2.0])), ("streams", np.array([10.0, 0.0]))]
    streams = StreamPieces(loads=(60,), slots=(5,), jobsets=1, steps=60, measured=(4, 40), weight=0.5)
    assert together(parts, streams).tolist() == pytest.approx([9 / 2.5, 4 / 2.5])
    assert together(parts[:2], None).tolist() == [2.0, 2.0]


def test_an_update_divides_streams_of_its_own_among_the_numbers_of_slots(task: Task) -> None:
    asked: list[tuple[str, int, int, int]] = []

    def stream(split: str, load: int, number: int, steps: int) -> JobSet:
        asked.append((split, load, number, steps))
        return tiny_piece(split, load, number, steps)

    streams = StreamPieces(loads=(60, 80), slots=(5, 3), jobsets=4, steps=50, measured=(4, 40))
    task, config = task._replace(stream=stream), SHORT.model_copy(update={"updates": 2, "streams": streams})
    updates = list(evolution(build(Scores(name="scores", hidden=0), task.cluster, 1), task, config))
    assert [set(update.metrics) for update in updates] == [{"cost", "best_cost", "short", "streams"}] * 2
    numbers = [(load, k) for some in ((4, 6), (5, 7)) for load in (60, 80) for k in some]  # of the first update
    assert asked[:8] == [("fresh", load, number, 50) for load, number in numbers]
    assert asked[8:] == [("fresh", load, number + 4, 50) for load, number in numbers]
    found = groups(task._replace(loads=[]), {}, streams, "fresh", range(3))
    assert [each.cluster.slots for each in found] == [5, 5, 3, 3]
    assert {(each.cluster.arrivals_end, each.cluster.measured, each.step_limit) for each in found} == {
        (None, (4, 40), 50)
    }


def test_policies_know_the_load_of_every_other_jobset() -> None:
    jobsets = half_known(70, [jobset((0, 1, 1))] * 3)
    assert [jobs.load for jobs in jobsets] == [70.0, None, 70.0]


def test_what_the_network_costs_on_validation_jobsets_falls(task: Task) -> None:
    network = build(Scores(name="scores", hidden=0), task.cluster, 1)
    assert isinstance(network, Network)
    network.weights.mul_(-1.0)  # a bad start: longest first
    cost = validate_scores(network, task)
    before = cost()
    updates = list(evolution(network, task, SHORT))
    assert cost() < 0.8 * before
    assert len(updates) == SHORT.updates
    assert {"cost", "best_cost", "short"} == set(updates[0].metrics)
