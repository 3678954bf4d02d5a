"""What every learning algorithm of the event-driven problem must keep to."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from machine_learning import RECIPES, tiny_task, untrained
from observed_training import Run, content, observed

from pipeline.core.config import MachinesEvolution, NoPretrain
from pipeline.core.config.machines.learning import A3c, Dagger, Ppo
from pipeline.core.storage.models import Checkpoint, read_checkpoint, write_checkpoint
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.machines.agents.networks.actor_critic import ActorCritic
from pipeline.problems.machines.agents.training.algorithms import ALGORITHMS
from pipeline.problems.machines.agents.training.task import Task

BUDGET = {"recipe": "", "loads": (100,), "updates": 4, "jobsets": 2, "validate_every": 1}
CONFIGS: dict[str, NoPretrain | Ppo | A3c | Dagger | MachinesEvolution] = {
    "none": NoPretrain(name="none"),
    "ppo": Ppo(name="ppo", episodes=3, **BUDGET),
    "a3c": A3c(name="a3c", workers=1, **BUDGET),
    "dagger": Dagger(name="dagger", teacher="sjf", **BUDGET),
    "evolution": MachinesEvolution(name="evolution", base="sjf", tail=0.1, **BUDGET),
}
PAIRS = [
    (name, kind)
    for name in CONFIGS
    for kind in ("deepsets", "vector", "linear")
    if name != "evolution" or kind == "linear"
]


def task_of(name: str) -> Task:
    return tiny_task(RECIPES.get(name, RECIPES["ppo"]))


def learn(name: str, network: ActorCritic, memory: Memory | None = None) -> Iterator[Update]:
    return ALGORITHMS[name](network, task_of(name), CONFIGS[name], memory)


@cache
def run(name: str, kind: str) -> Run:
    return observed(untrained(kind), partial(learn, name))


def test_every_algorithm_of_the_table_is_tested_here() -> None:
    assert set(CONFIGS) == set(ALGORITHMS)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
class TestEveryAlgorithm:
    def test_counts_its_updates_from_one_to_its_budget(self, name: str, kind: str) -> None:
        steps = [update.step for update in run(name, kind).updates]
        assert steps == ([] if name == "none" else [1, 2, 3, 4])

    def test_tells_finite_numbers_by_the_same_names(self, name: str, kind: str) -> None:
        reported = [update.metrics for update in run(name, kind).updates]
        assert all(
            isinstance(value, float) and np.isfinite(value) for metrics in reported for value in metrics.values()
        )
        assert len({tuple(metrics) for metrics in reported}) == min(len(reported), 1)

    def test_changes_the_network_in_place(self, name: str, kind: str) -> None:
        start, updates, network, _ = run(name, kind)
        assert (content(network) != start) == bool(updates)
        assert all(torch.isfinite(value).all() for value in network.state_dict().values())

    def test_gives_the_same_bytes_again(self, name: str, kind: str) -> None:
        other = untrained(kind)
        assert list(learn(name, other)) == run(name, kind).updates
        assert content(other) == content(run(name, kind).network)

    def test_leaves_the_randomness_of_others_alone(self, name: str, kind: str) -> None:
        found = run(name, kind).drawn_after
        torch.manual_seed(4)
        assert found == torch.rand(2).tolist()

    def test_goes_on_from_every_update_to_the_same_bytes(self, name: str, kind: str, tmp_path: Path) -> None:
        whole, memory, files, expected = untrained(kind), Memory(), [], []
        memory.keep(network=whole)
        for update in learn(name, whole, memory):
            expected.append(update)
            files.append(tmp_path / f"{update.step}.safetensors")
            write_checkpoint(files[-1], Checkpoint(memory.state(), update.step))
        for k, file in enumerate(files):
            found = read_checkpoint(file)
            assert found is not None
            other, again = untrained(kind, seed=99), Memory(found.tensors, found.notes)
            again.keep(network=other)
            assert list(learn(name, other, again)) == expected[k + 1 :]
            assert content(other) == content(whole)


@pytest.mark.parametrize("name", ["ppo", "a3c", "dagger", "evolution"])
def test_a_recipe_of_another_algorithm_is_refused(name: str) -> None:
    wrong = tiny_task(RECIPES["a3c" if name == "ppo" else "ppo"])
    with pytest.raises(TypeError, match="Recipe, got a"):
        next(ALGORITHMS[name](untrained("linear"), wrong, CONFIGS[name], None))


def test_evolution_takes_a_linear_network_only() -> None:
    with pytest.raises(TypeError, match="expected a linear network, got DeepSets"):
        next(ALGORITHMS["evolution"](untrained(), task_of("evolution"), CONFIGS["evolution"], None))
