"""What every learning algorithm of the controller must keep to."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from group_builders import RECIPE, REPLAY, tiny_task, untrained, written
from observed_training import Run, content, observed

from pipeline.core.config import Dqn, DqnRecipe, Evolution, EvolutionRecipe, NoPretrain, Replay
from pipeline.core.storage.models import Checkpoint, read_checkpoint, write_checkpoint
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.groups.agents.networks.q_network import ValueNetwork
from pipeline.problems.groups.agents.training.algorithms import ALGORITHMS
from pipeline.problems.groups.agents.training.task import Task

# Everything at once that has a state: a target behind by some steps, a rate that falls, draws that explore.
WHOLE = DqnRecipe.model_validate(
    RECIPE.model_dump()
    | {"learning_rate": 0.01, "falling": True, "clip": 1.0, "double": True, "huber": True, "conservative": 0.1}
)
ONLINE = Dqn(name="dqn", recipe="", loads=(100,), updates=3, jobsets=2, every=3, epsilon=0.1, validate_every=1)
SEARCH = Evolution(name="evolution", recipe="", loads=(100,), updates=3, jobsets=2, validate_every=1)
CONFIGS: dict[str, NoPretrain | Replay | Dqn | Evolution] = {
    "none": NoPretrain(name="none"), "replay": REPLAY, "dqn": ONLINE, "evolution": SEARCH,
}  # fmt: skip
PAIRS = [
    (name, kind) for name in CONFIGS for kind in ("shared", "per_group") if (name, kind) != ("evolution", "per_group")
]
RECIPES = {"evolution": EvolutionRecipe(algorithm="evolution", population=4, spread=0.5)}


def task_of(name: str, seed: int = 3) -> Task:
    return tiny_task(RECIPES.get(name, WHOLE), seed)


def learn(name: str, network: ValueNetwork, memory: Memory | None = None, task: Task | None = None) -> Iterator[Update]:
    return ALGORITHMS[name](network, task or task_of(name), CONFIGS[name], memory)


def begun(name: str, kind: str = "shared", seed: int = 2) -> ValueNetwork:
    """A network as an algorithm finds it: pre-training knows what rewards are counted in, once it is over."""
    if name == "evolution":
        return written()
    network = untrained(kind, seed)
    if name == "dqn":
        network.scale.fill_(10)
    return network


@cache
def run(name: str, kind: str) -> Run:
    return observed(begun(name, kind), partial(learn, name))


def goes_on_from_every_update(name: str, kind: str, task: Task, folder: Path) -> None:
    whole, memory, files, expected = begun(name, kind), Memory(), [], []
    memory.keep(network=whole)
    for update in learn(name, whole, memory, task):
        expected.append(update)
        files.append(folder / f"{update.step}.safetensors")
        write_checkpoint(files[-1], Checkpoint(memory.state(), update.step))
    assert len(files) == (0 if name == "none" else 3)
    for k, file in enumerate(files):
        found = read_checkpoint(file)
        assert found is not None
        other, again = begun(name, kind, seed=99), Memory(found.tensors, found.notes)
        again.keep(network=other)
        assert list(learn(name, other, again, task)) == expected[k + 1 :]
        assert content(other) == content(whole)


def test_every_algorithm_of_the_table_is_tested_here() -> None:
    assert set(CONFIGS) == set(ALGORITHMS)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
class TestEveryAlgorithm:
    def test_counts_its_updates_from_one_to_its_budget(self, name: str, kind: str) -> None:
        steps = [update.step for update in run(name, kind).updates]
        assert steps == ([] if name == "none" else [1, 2, 3])

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
        other = begun(name, kind)
        assert list(learn(name, other)) == run(name, kind).updates
        assert content(other) == content(run(name, kind).network)

    def test_gives_other_bytes_by_another_seed(self, name: str, kind: str) -> None:
        other = begun(name, kind)
        reported = list(learn(name, other, task=task_of(name, seed=4)))
        assert (reported != run(name, kind).updates) == (name != "none")
        assert (content(other) != content(run(name, kind).network)) == (name != "none")

    def test_leaves_the_randomness_of_others_alone(self, name: str, kind: str) -> None:
        found = run(name, kind).drawn_after
        torch.manual_seed(4)
        assert found == torch.rand(2).tolist()

    def test_goes_on_from_every_update_to_the_same_bytes(self, name: str, kind: str, tmp_path: Path) -> None:
        goes_on_from_every_update(name, kind, task_of(name), tmp_path)


@pytest.mark.parametrize("name", ["replay", "dqn", "evolution"])
def test_shapes_are_the_same_whatever_threads_there_are(name: str, two_threads: None) -> None:
    # More threads add in another order, so that bytes may differ, and nothing else.
    other = begun(name)
    torch.set_num_threads(2)
    try:
        again = next(learn(name, other))
    finally:
        torch.set_num_threads(1)
    assert tuple(again.metrics) == tuple(run(name, "shared").updates[0].metrics)
    expected = run(name, "shared").network.state_dict()
    for (one, weight), (two, same) in zip(expected.items(), other.state_dict().items(), strict=True):
        assert (one, weight.shape, weight.dtype) == (two, same.shape, same.dtype)


@pytest.mark.parametrize("generator", [REPLAY, None])
@pytest.mark.parametrize("size", [9, 60])
def test_a_memory_that_goes_round_is_gone_on_with_too(size: int, generator: Replay | None, tmp_path: Path) -> None:
    recipe = WHOLE.model_copy(update={"memory": size})
    goes_on_from_every_update("dqn", "shared", tiny_task(recipe, generator=generator), tmp_path)


def test_rewards_are_counted_in_what_the_replays_show() -> None:
    network = untrained()
    list(learn("replay", network))
    scale = network.scale.tolist()
    assert scale[0] > 0
    before = network.state_dict()["scale"].clone()
    list(learn("dqn", network, task=tiny_task(WHOLE, seed=8)))  # other replays
    assert network.scale.tolist() == before.tolist() == scale


def test_without_a_generator_nothing_is_learned_before_something_was_tried() -> None:
    network, task = untrained(), tiny_task(WHOLE, generator=None)
    start, reported = content(network), []
    for update in learn("dqn", network, task=task):
        reported.append(tuple(update.metrics))
        if update.step == 1:
            now = content(network)
            assert {name for name in now if now[name] != start[name]} == {"scale"}
    assert reported == [("cost", "reward"), *[("cost", "reward", "loss", "q")] * 2]


SLOW = RECIPE.model_copy(update={"learning_rate": 1e-12})


def steps_of(every: int) -> int:
    """How often an update learns from a batch, at a rate that changes no decision."""
    config = ONLINE.model_copy(update={"updates": 1, "every": every})
    memory = Memory()
    list(ALGORITHMS["dqn"](begun("dqn"), tiny_task(SLOW), config, memory))
    return int(memory.state()["network_target/steps"][0])


def test_an_update_learns_every_so_many_decisions_of_a_jobset() -> None:
    decisions = steps_of(every=1)
    assert decisions >= 7
    assert [steps_of(every) for every in (2, 3, 1000)] == [decisions // 2, decisions // 3, 0]


def test_the_last_update_learns_at_a_part_of_the_rate() -> None:
    # The first of 2 updates learns at the whole rate, the second at half of it; where it does not fall, at all of it.
    moved = {}
    for falling in (True, False):
        recipe = RECIPE.model_copy(update={"learning_rate": 1e-6, "falling": falling})
        config = ONLINE.model_copy(update={"updates": 2, "every": 1, "epsilon": 0.0})
        network, at = begun("dqn"), []
        for _ in ALGORITHMS["dqn"](network, tiny_task(recipe), config, None):
            at.append(network.value.bias.detach().clone())
        moved[falling] = at
    assert torch.equal(moved[True][0], moved[False][0])
    fell, stayed = ((at[1] - at[0]).double() for at in (moved[True], moved[False]))
    assert torch.allclose(fell, stayed / 2, rtol=0.2, atol=1e-7)


def test_costs_that_are_told_are_of_a_job() -> None:
    # Against zero, a reward is a cost with a minus: of all intervals the same sum as of all jobs.
    task = tiny_task(WHOLE)
    for update in learn("dqn", begun("dqn"), task=task):
        intervals = -update.metrics["cost"] * 2 * 16 / update.metrics["reward"]  # 2 jobsets of 16 jobs
        assert intervals == pytest.approx(round(intervals), abs=1e-6)
        assert 2 <= round(intervals) <= 2 * 10


def test_every_update_of_replays_learns_from_batches_of_its_own() -> None:
    losses = [update.metrics["loss"] for update in learn("replay", untrained(), task=tiny_task(SLOW))]
    assert len(set(losses)) == 3


def online(seed: int = 3, epsilon: float = 0.0) -> list[Update]:
    """Updates that begin with an empty memory, and change no decision."""
    config, task = ONLINE.model_copy(update={"epsilon": epsilon}), tiny_task(SLOW, seed, generator=None)
    return list(ALGORITHMS["dqn"](begun("dqn"), task, config, None))


def test_batches_of_online_learning_are_drawn_by_the_seed() -> None:
    one, other = online(seed=3), online(seed=4)
    assert [update.metrics["cost"] for update in one] == [update.metrics["cost"] for update in other]
    assert all(a.metrics["loss"] != b.metrics["loss"] for a, b in zip(one, other, strict=True))


def test_what_is_set_is_now_and_then_something_else() -> None:
    greedy, random = online(epsilon=0.0), online(epsilon=1.0)
    assert all(a.metrics["cost"] != b.metrics["cost"] for a, b in zip(greedy, random, strict=True))


def test_every_update_draws_jobsets_of_its_own_the_loads_in_turn() -> None:
    task = tiny_task()._replace(loads=[60, 80], fresh=lambda load, number: (load, number))
    (first, key), (second, other) = task.draw(1, 3), task.draw(2, 3)
    assert first == [(60, 3), (80, 4), (60, 5)]
    assert second == [(60, 6), (80, 7), (60, 8)]
    assert len({*key.tolist(), *other.tolist()}) == 6
    assert task.draw(2, 3)[1].tolist() == other.tolist()
