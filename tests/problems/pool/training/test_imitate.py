"""Cloning of the best heuristic of each jobset: who teaches, and how sure of itself the pupil is."""

import numpy as np
import pytest
from builders import jobset
from set_learning import WINDOWS, content, gradient, set_task, sets

from pipeline.config import Imitate, LinearRuleSearch
from pipeline.core import CompiledRule, keys
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.problems.pool.evaluation.metrics import outcome
from pipeline.problems.pool.evaluation.play import score
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.heuristics.teachers import COMPILED
from pipeline.problems.pool.learning import slowdown
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.simulator.compiled.rules import players
from pipeline.problems.pool.training.imitate import imitate, teachers, watch
from pipeline.problems.pool.training.rolling import NEVER
from pipeline.problems.pool.training.task import Task
from pipeline.simulation.results import jobset_means
from pipeline.simulation.rollout import play

CONFIG = Imitate(
    name="imitate",
    teachers=("sjf", "packer"),
    loads=(120,),
    jobsets=20,
    streams=WINDOWS,
    epochs=15,
    patience=15,
    batch=32,
    learning_rate=0.02,
    entropy=0.0,
)
LONG_FIRST, SHORT_FIRST = 0, 1  # slots


def rules(*names: str) -> list[CompiledRule]:
    return [COMPILED[name] for name in names]


@pytest.fixture
def task() -> Task:
    return set_task(gradient())


def test_the_teacher_of_a_jobset_is_the_one_that_is_best_on_it(task: Task) -> None:
    """SJF is better where a short job would wait for a long one, packer where short ones keep a wide one waiting.

    First: 1 and 7/6 by SJF; the long one first makes 1 and 7. Second, of twelve jobs: a wide job of two steps and a
    narrow one a step. SJF lets the wide one wait for ten steps: slowdown 6, and 1 of the others; packer starts it, and
    the narrow ones have slowdowns 3, 2 and 1.
    """
    task = task._replace(cluster=Cluster((3,), 8, 10, 4, False))
    first = jobset((0, 6, 3), (0, 1, 2))
    second = jobset((0, 2, 3), *((step, 1, 1) for step in range(10)))
    played = watch(sets(), [first, second], task, rules("sjf", "packer"))
    begun = {
        int(episode): int(action) for episode, action in zip(played.episode[::-1], played.action[::-1], strict=True)
    }
    assert begun == {0: SHORT_FIRST, 1: LONG_FIRST}
    for teacher, expected in (("sjf", {0: SHORT_FIRST, 1: 1}), ("packer", {0: LONG_FIRST, 1: LONG_FIRST})):
        alone = watch(sets(), [first, second], task, rules(teacher))
        found = {int(e): int(a) for e, a in zip(alone.episode[::-1], alone.action[::-1], strict=True)}
        assert found == expected


def costs(task: Task, teacher: str) -> np.ndarray:
    """The mean slowdown of each validation jobset, by a heuristic that is asked move by move."""
    jobs = batch(task.validation[120])
    simulator, number = Batched(jobs, task.cluster, task.step_limit), np.arange(jobs.episodes)
    play(simulator, HEURISTICS[teacher], keys(task.seed, number, np.zeros_like(number)))
    return jobset_means(jobs, outcome(jobs, simulator.schedule(), task.step_limit).slowdown)


def test_what_is_watched_costs_the_least_of_all_teachers(task: Task) -> None:
    names = ("sjf", "packer", "hold", "easy_fcfs")
    played = watch(sets(), task.validation[120], task, rules(*names))
    jobs = batch(task.validation[120])
    again = Batched(jobs, task.cluster, task.step_limit, skip_forced=True)
    for turn in range(played.turn.max() + 1):
        now = np.flatnonzero(played.turn == turn)
        again.step(played.episode[now], played.action[now])
    assert again.ended(np.arange(len(again.now)))[0].all()
    found = jobset_means(jobs, outcome(jobs, again.schedule(), task.step_limit).slowdown)
    each = np.stack([costs(task, teacher) for teacher in names])
    assert found == pytest.approx(each.min(axis=0))
    assert len(np.unique(each.argmin(axis=0))) > 1


def learned(task: Task, **changes: object) -> tuple[list[Update], float]:
    network = sets(hidden=16)
    updates = list(imitate(network, task, CONFIG.model_copy(update=changes)))
    return updates, slowdown(network, task.validation[120], task, task.cluster, 100, (0, 100))


def test_a_network_learns_to_do_as_sjf_does(task: Task) -> None:
    updates, found = learned(task, teachers=("sjf",))
    assert updates[-1].metrics["best_accuracy"] > 0.9
    sjf = score({"": HEURISTICS["sjf"]}, task.validation, task.cluster, 100, 0, True)[""].mean
    assert found == pytest.approx(sjf, rel=0.05)


def test_the_entropy_term_keeps_entropy_up_and_the_greedy_policy_as_it_is(task: Task) -> None:
    plain, unsure = (learned(task, teachers=("sjf",), entropy=weight)[0] for weight in (0.0, 0.5))
    assert unsure[-1].metrics["entropy"] > 1.5 * plain[-1].metrics["entropy"]
    assert unsure[-1].metrics["best_accuracy"] > 0.85


def test_streams_are_watched_with_every_number_of_slots(task: Task) -> None:
    asked = []

    def stream(split: str, load: int, number: int, steps: int) -> JobSet:
        asked.append((split, load, number, steps))
        return task.stream(split, load, number, steps)

    short = next(imitate(sets(), task, CONFIG.model_copy(update={"streams": None})))
    both = next(imitate(sets(), task._replace(stream=stream), CONFIG))
    assert asked == [("train", 80, 0, 10), ("train", 100, 1, 10)]
    assert both.metrics["entropy"] != short.metrics["entropy"]


def test_the_weights_of_the_best_epoch_are_kept(task: Task) -> None:
    config = CONFIG.model_copy(update={"epochs": 12, "patience": 2, "learning_rate": 0.2, "streams": None})
    network, found = sets(), []
    for update in imitate(network, task, config):
        found.append((update.metrics["accuracy"], content(network)))
    best = int(np.argmax([accuracy for accuracy, _ in found]))
    assert best < len(found) - 1
    assert update.metrics["best_accuracy"] == found[best][0]
    assert content(network) == found[best][1]


def test_one_that_lost_patience_is_not_taught_again_after_a_kill(task: Task) -> None:
    config = CONFIG.model_copy(update={"epochs": 40, "patience": 1, "learning_rate": 0.5, "streams": None})
    memory, network = Memory(), sets()
    memory.keep(network=network)
    updates = list(imitate(network, task, config, memory))
    assert len(updates) < 40
    state = {place: value.copy() for place, value in memory.state().items()}
    again, memory = sets(seed=99), Memory(state, len(updates))
    memory.keep(network=again)
    assert list(imitate(again, task, config, memory)) == []
    assert content(again) == content(network)


def test_jobsets_without_a_choice_are_refused(task: Task) -> None:
    alone = jobset((0, 1, 1, 1))
    with pytest.raises(UserError, match=r"^the jobsets leave no decision to learn from: train on higher loads$"):
        watch(sets(), [alone], task, rules("sjf"))


def test_the_linear_rule_is_searched_for_on_what_it_teaches(task: Task) -> None:
    jobsets = task.validation[120]
    search = {"teachers": ("sjf", "linear"), "linear": LinearRuleSearch(population=24, rounds=4, elite=6)}
    sjf, found = teachers(jobsets, task, CONFIG.model_copy(update=search))
    _, untuned = teachers(jobsets, task, CONFIG.model_copy(update=search | {"linear": None}))
    assert sjf == CompiledRule("sjf")
    assert (found.rule, untuned.rule) == ("linear", "linear")
    ratio = {who: (costs_of(task, who) / costs_of(task, sjf)).mean() for who in (found, untuned)}
    assert ratio[found] < ratio[untuned]  # the search begins with these weights
    assert found == teachers(jobsets, task, CONFIG.model_copy(update=search))[1]


def costs_of(task: Task, rule: CompiledRule) -> np.ndarray:
    """The mean slowdown of each validation jobset, by the compiled rule."""
    jobs = batch(task.validation[120])
    simulator, number = Batched(jobs, task.cluster, task.step_limit, skip_forced=True), np.arange(jobs.episodes)
    simulator.play(simulator.rows, players([rule] * jobs.episodes, keys(task.seed, number, 0 * number)), NEVER)
    return jobset_means(jobs, outcome(jobs, simulator.schedule(), task.step_limit).slowdown)
