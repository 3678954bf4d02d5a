"""Cloning: a network that is shown a teacher's decisions takes them too."""

import numpy as np
import pytest
import torch
from builders import many, observation, tiny_task
from torch import Tensor

from pipeline.core.config import Clone, Mlp, Params
from pipeline.core.types import Observation
from pipeline.errors import UserError
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.network import Network, allowed, greedy, log_probabilities
from pipeline.problems.pool.agents.networks.networks import build
from pipeline.problems.pool.agents.training.clone import clone, score
from pipeline.problems.pool.agents.training.decisions import Decisions, by_rule, record
from pipeline.problems.pool.agents.training.task import Task
from pipeline.problems.pool.env.nouns import CompactObservation, batch, compact
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.teachers import COMPILED

LESSONS = Clone(
    name="clone",
    teacher="sjf",
    loads=(120,),
    jobsets=40,
    epochs=8,
    patience=8,
    batch=32,
    learning_rate=0.01,
    entropy=0.0,
)


@pytest.fixture(scope="module")
def task(params: Params) -> Task:
    return tiny_task(params.recipes["ours"])


def untrained(task: Task, seed: int = 1) -> Network:
    return build(Mlp(name="mlp", hidden=20, clock=False), task.cluster, seed)


def exam(task: Task, teacher: str) -> Decisions:
    """A teacher's decisions on validation jobsets."""
    jobsets = task.validation[120]
    simulator = Batched(batch(jobsets), task.cluster, task.step_limit, skip_forced=task.recipe.masked)
    key = np.arange(len(jobsets), dtype=np.uint64)
    return record(simulator, by_rule(COMPILED[teacher], key), key)


def spread(network: Network, observed: CompactObservation) -> float:
    """Mean entropy of the network's choices."""
    chances = log_probabilities(torch.from_numpy(network.frozen()(observed)), allowed(observed, masked=True))
    return float(-(chances.exp() * chances).sum(dim=1).mean())


def taught(task: Task, **changes: object) -> tuple[Network, list[Update]]:
    network = untrained(task)
    return network, list(clone(network, task, LESSONS.model_copy(update=changes)))


def test_a_clone_of_sjf_decides_as_sjf_does_on_jobsets_it_never_saw(task: Task) -> None:
    network, updates = taught(task)
    own = exam(task, "sjf")
    assert score(untrained(task), own, masked=True) < 0.75
    assert score(network, own, masked=True) > 0.9
    assert updates[-1].metrics["loss"] < updates[0].metrics["loss"] / 2


def test_a_clone_follows_its_teacher_and_not_another(task: Task) -> None:
    network, _ = taught(task, teacher="packer")
    assert score(network, exam(task, "packer"), masked=True) > score(network, exam(task, "sjf"), masked=True) + 0.1


@pytest.mark.parametrize("epochs", [3, 8])
def test_the_best_epochs_weights_are_left_in_the_network(task: Task, epochs: int) -> None:
    network, updates = taught(task, epochs=epochs, learning_rate=0.05)
    accuracies = [update.metrics["accuracy"] for update in updates]
    assert updates[-1].metrics["best_accuracy"] == max(accuracies)
    assert score(network, exam(task, "sjf"), masked=True) == max(accuracies)


def test_lessons_end_when_accuracy_has_not_risen_for_a_while(task: Task) -> None:
    _, updates = taught(task, epochs=30, patience=2)
    accuracies = [update.metrics["accuracy"] for update in updates]
    assert len(updates) < 30
    assert int(np.argmax(accuracies)) == len(accuracies) - 3
    assert [update.step for update in updates] == list(range(1, len(updates) + 1))


def test_the_entropy_term_keeps_a_clone_unsure(task: Task) -> None:
    view = exam(task, "sjf").observed
    (sure, _), (unsure, updates) = (taught(task, entropy=entropy, epochs=20, patience=20) for entropy in (0.0, 0.3))
    assert spread(unsure, view) > 1.5 * spread(sure, view)
    assert updates[-1].metrics["best_accuracy"] > 0.9


def test_without_a_mask_the_moves_that_leave_no_choice_are_learned_too(params: Params) -> None:
    task = tiny_task(params.recipes["paper"])
    void = task.cluster.slots
    own = exam(task, "sjf")
    assert len(own.action) > len(exam(tiny_task(params.recipes["ours"]), "sjf").action)
    _, updates = taught(task)
    assert updates[-1].metrics["best_accuracy"] > max(0.85, float((own.action == void).mean()))


def test_an_unknown_teacher_is_refused_by_name(task: Task) -> None:
    with pytest.raises(
        UserError,
        match=r"unknown teacher 'nobody'; there are: easy, easy_fcfs, fcfs, hold, hold_long, hold_until, linear",
    ):
        next(clone(untrained(task), task, LESSONS.model_copy(update={"teacher": "nobody"})))


class Fixed(Network):
    """Prefers the second slot, then void, then the first."""

    chunk = 10

    def forward(self, observed: CompactObservation) -> Tensor:
        return torch.tensor([[0.0, 2.0, 1.0]]).expand(len(observed.cells), -1)


def decisions(view: Observation, *actions: int) -> Decisions:
    """One decision of each episode."""
    zero = np.zeros(len(actions), dtype=np.int64)
    return Decisions(compact(view), np.array(actions), np.arange(len(actions)), zero, zero, np.zeros((len(actions), 0)))


def test_accuracy_is_the_share_of_the_teachers_decisions() -> None:
    view = many(observation(duration=[1, 1], free=[[5, 5]]), 4)
    own = decisions(view, 1, 0, 1, 2)
    assert score(Fixed(), own, masked=True) == 0.5


def test_accuracy_counts_legal_choices_alone_under_a_mask() -> None:
    view = many(observation(duration=[1, 1], fits_now=[True, False], free=[[5, 5]]), 2)
    own = decisions(view, 2, 1)
    assert greedy(Fixed(), masked=True)(view, np.zeros(2)).tolist() == [2, 2]
    assert score(Fixed(), own, masked=True) == 0.5
    assert score(Fixed(), own, masked=False) == 0.5
    assert score(Fixed(), own._replace(action=np.array([2, 2])), masked=True) == 1.0
    assert score(Fixed(), own._replace(action=np.array([2, 2])), masked=False) == 0.0
