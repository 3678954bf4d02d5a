"""What every learning algorithm must keep to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from builders import tiny_task

from pipeline.core.config import Clone, EvolutionRecipe, Mlp, NoPretrain, Params, PoolEvolution, Reinforce
from pipeline.core.config.pool.learning import Scores, StreamPieces
from pipeline.core.storage.models import Checkpoint, read_checkpoint, write_checkpoint
from pipeline.learning.memory import Memory, best_on_validation
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.network import Scorer
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.agents.training.algorithms import ALGORITHMS
from pipeline.problems.pool.agents.training.task import Task

Config = NoPretrain | Clone | Reinforce | PoolEvolution
PIECES = StreamPieces(loads=(60, 80), slots=(5, 3), jobsets=2, steps=60, measured=(4, 40))

CONFIGS: dict[str, Config] = {
    "none": NoPretrain(name="none"),
    "clone": Clone(
        name="clone",
        teacher="sjf",
        loads=(120,),
        jobsets=6,
        epochs=2,
        patience=2,
        batch=32,
        learning_rate=0.01,
        entropy=0.1,
    ),
    "evolution": PoolEvolution(
        name="evolution", recipe="", loads=(120,), updates=2, jobsets=3, streams=PIECES, validate_every=1
    ),
    "reinforce": Reinforce(
        name="reinforce", recipe="", loads=(120,), updates=2, jobsets=3, episodes=3, validate_every=1
    ),
}


def test_every_algorithm_of_the_table_is_tested_here() -> None:
    assert set(CONFIGS) == set(ALGORITHMS)
    assert all(config.name == name for name, config in CONFIGS.items())


@pytest.fixture(params=["paper", "ours"], scope="module")
def task(request: pytest.FixtureRequest, params: Params) -> Task:
    """A task that tests must not change."""
    return tiny_task(params.recipes[request.param], seed=3)


def untrained(name: str, task: Task, seed: int = 2) -> Scorer[Any]:
    """A network of a kind that the algorithm teaches."""
    if name == "evolution":
        return build(Scores(name="scores", hidden=1), task.cluster, seed)
    return build(Mlp(name="mlp", hidden=8, clock=True), task.cluster, seed)


def learn(name: str, network: Scorer[Any], task: Task) -> Iterator[Update]:
    return ALGORITHMS[name](network, taught(name, task), CONFIGS[name])


def taught(name: str, task: Task) -> Task:
    """The task with a recipe for an algorithm."""
    recipe = EvolutionRecipe(algorithm="evolution", population=4, spread=0.5)
    return task._replace(recipe=recipe) if name == "evolution" else task


def content(network: Scorer[Any]) -> dict[str, bytes]:
    return {name: weight.numpy().tobytes() for name, weight in network.state_dict().items()}


class Training(NamedTuple):
    """A training run, with what there was before it and after it."""

    updates: list[Update]
    network: Scorer[Any]
    start: dict[str, bytes]  # of the network
    randomness: tuple[list[float], ...]  # numbers drawn by others afterwards
    jobsets: tuple[list[bytes], list[bytes]]  # before and after


def columns(task: Task) -> list[bytes]:
    """All columns of the stored jobsets."""
    jobsets = (*task.train[120], *task.validation[120])
    return [field.tobytes() for jobs in jobsets for field in jobs if field is not None]


def seeded() -> None:
    torch.manual_seed(4)
    np.random.seed(4)


def drawn() -> tuple[list[float], ...]:
    return torch.rand(2).tolist(), np.random.random(2).tolist()


@pytest.fixture(params=list(ALGORITHMS), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def trained(name: str, task: Task) -> Training:
    network, before = untrained(name, task), columns(task)
    start = content(network)
    seeded()
    updates = list(learn(name, network, task))
    return Training(updates, network, start, drawn(), (before, columns(task)))


class TestEveryAlgorithm:
    def test_counts_its_updates_from_one_and_keeps_to_its_budget(self, name: str, trained: Training) -> None:
        steps = [update.step for update in trained.updates]
        assert steps == list(range(1, len(steps) + 1))
        assert len(steps) <= CONFIGS[name].budget
        assert bool(steps) == (name != "none")

    def test_tells_finite_numbers_by_the_same_names(self, trained: Training) -> None:
        reported = [update.metrics for update in trained.updates]
        assert all(
            isinstance(value, float) and np.isfinite(value) for metrics in reported for value in metrics.values()
        )
        assert len({tuple(metrics) for metrics in reported}) == min(len(reported), 1)

    def test_does_nothing_before_it_is_asked(self, name: str, task: Task) -> None:
        network = untrained(name, task)
        start = content(network)
        learn(name, network, task)
        assert content(network) == start

    def test_changes_the_network_in_place_and_keeps_its_shape(self, name: str, task: Task, trained: Training) -> None:
        shapes = {key: value.shape for key, value in untrained(name, task).state_dict().items()}
        assert (content(trained.network) != trained.start) == bool(trained.updates)
        assert {key: value.shape for key, value in trained.network.state_dict().items()} == shapes
        assert all(torch.isfinite(value).all() for value in trained.network.state_dict().values())

    def test_gives_the_same_bytes_again(self, name: str, task: Task, trained: Training) -> None:
        other = untrained(name, task)
        assert list(learn(name, other, task)) == trained.updates
        assert content(other) == content(trained.network)

    def test_leaves_the_randomness_of_others_alone(self, trained: Training) -> None:
        seeded()
        assert trained.randomness == drawn()

    def test_leaves_the_jobsets_as_they_were(self, trained: Training) -> None:
        before, after = trained.jobsets
        assert before == after


LONGER: dict[str, Config] = {
    "none": CONFIGS["none"],
    "clone": CONFIGS["clone"].model_copy(update={"epochs": 4, "patience": 4, "learning_rate": 0.05}),
    "evolution": CONFIGS["evolution"].model_copy(update={"updates": 4}),
    "reinforce": CONFIGS["reinforce"].model_copy(update={"updates": 4}),
}


def course(name: str, network: Scorer[Any], task: Task, memory: Memory, judged: bool) -> Iterator[Update]:
    """A training run as a stage makes it; the costs on validation rise and fall."""
    memory.keep(network=network)
    updates = ALGORITHMS[name](network, taught(name, task), LONGER[name], memory)
    if not judged:
        return updates

    def validate() -> float:
        return float(np.sin(1e4 * sum(float(weight.detach().sum()) for weight in network.parameters())))

    return best_on_validation(updates, network, validate, every=2, last=LONGER[name].budget, memory=memory)


@pytest.mark.parametrize("judged", [False, True])
def test_a_training_goes_on_from_every_update_to_the_same_bytes(
    name: str, task: Task, judged: bool, tmp_path: Path
) -> None:
    whole = untrained(name, task)
    memory, files = Memory(), []
    expected = []
    for k, update in enumerate(course(name, whole, task, memory, judged)):
        expected.append(update)
        files.append(tmp_path / f"{k}.safetensors")
        write_checkpoint(files[-1], Checkpoint(memory.state(), update.step))
    assert len(files) == (0 if name == "none" else 4) + judged
    for k, file in enumerate(files):
        found = read_checkpoint(file)
        assert found is not None
        other = untrained(name, task, seed=99)  # to be overwritten
        rest = list(course(name, other, task, Memory(found.tensors, found.notes), judged))
        assert rest == expected[k + 1 :]
        assert content(other) == content(whole)


def test_a_clone_that_lost_patience_is_not_taught_again_after_a_kill(task: Task) -> None:
    config = LONGER["clone"].model_copy(update={"epochs": 40, "patience": 1, "learning_rate": 0.5})
    memory, network = Memory(), untrained("clone", task)
    memory.keep(network=network)
    updates = list(ALGORITHMS["clone"](network, task, config, memory))
    assert len(updates) < 40
    state, done = {place: value.copy() for place, value in memory.state().items()}, len(updates)
    again, memory = untrained("clone", task), Memory(state, done)
    memory.keep(network=again)
    assert list(ALGORITHMS["clone"](again, task, config, memory)) == []
    assert content(again) == content(network)
