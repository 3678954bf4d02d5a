"""How good `sets` are on validation jobsets: slowdowns worked by hand, and their mean over loads and streams."""

import numpy as np
import pytest
import torch
from builders import jobset
from set_learning import gradient, set_task, sets

from pipeline.config import StreamWindows
from pipeline.errors import UserError
from pipeline.problems.pool.learning import PIECES, slowdown, validate_sets
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.training.task import Task

ALWAYS = (0.0, float("inf"))
ALONE = jobset((0, 3, 3))
ONE_WAITS = jobset((0, 4, 3), (1, 1, 3))  # from step 1 to 4, then runs a step: slowdowns 1 and 4; no choice is left


@pytest.fixture
def task() -> Task:
    of = Cluster((3,), 12, 2, 4, False)
    return set_task(gradient())._replace(cluster=of, loads=[50, 90], streams=None)


def cost(task: Task, jobsets: list[JobSet], span: tuple[float, float] = ALWAYS, network: Sets | None = None) -> float:
    return slowdown(network or sets(), jobsets, task, task.cluster, 100, span)


def test_slowdown_is_a_mean_over_jobs_and_then_over_jobsets(task: Task) -> None:
    assert cost(task, [ONE_WAITS]) == pytest.approx((1 + 4) / 2)
    assert cost(task, [ONE_WAITS, ALONE]) == pytest.approx((2.5 + 1) / 2)


def test_only_jobs_that_arrive_in_the_span_count(task: Task) -> None:
    assert cost(task, [ONE_WAITS], (0, 1)) == 1.0
    assert cost(task, [ONE_WAITS], (1, 2)) == 4.0
    assert cost(task, [ONE_WAITS, ALONE], (1, 2)) == 4.0  # a jobset without such a job does not count


def test_a_span_without_jobs_is_refused(task: Task) -> None:
    with pytest.raises(UserError, match=r"^no validation job arrives in steps 2 to 9: take longer streams$"):
        cost(task, [ONE_WAITS, ALONE], (2, 9))


def test_a_job_that_is_cut_off_counts_as_if_it_had_finished_there(task: Task) -> None:
    found = slowdown(sets(), [ONE_WAITS], task, task.cluster, 3, ALWAYS)
    assert found == pytest.approx((1 + (3 - 1) / 1) / 2)  # the long one by its lower bound: (3 - 0) / 4 is below 1


def by_duration(sign: float) -> Sets:
    """A network that looks at the logarithm of the duration and nothing else; void is its last choice."""
    network = sets()
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.direct.weight[0, 0] = sign
        network.void.bias -= 100.0
    return network


def test_play_is_greedy(task: Task) -> None:
    both = jobset((0, 6, 3), (0, 1, 3))
    assert cost(task, [both], network=by_duration(-1.0)) == pytest.approx((7 / 6 + 1) / 2)
    assert cost(task, [both], network=by_duration(1.0)) == pytest.approx((1 + 7) / 2)


def test_loads_are_put_together_by_a_geometric_mean(task: Task) -> None:
    four = jobset((0, 4, 3), (1, 1, 3), (1, 2, 0))  # (1 + 4 + 1) / 3: what wants nothing starts at once
    of = task._replace(validation={50: [ALONE], 90: [ONE_WAITS], 110: [four]})
    assert validate_sets(by_duration(-1.0), of)() == pytest.approx(np.sqrt(1 * 2.5))
    assert validate_sets(by_duration(-1.0), of._replace(loads=[110]))() == pytest.approx(2.0)


def test_streams_weigh_as_much_as_short_runs(task: Task) -> None:
    """A piece has ten steps, of which 3 to 8 count; its job of step 3 waits until 11, and runs one step."""
    asked = []

    def stream(split: str, load: int, number: int, steps: int) -> JobSet:
        asked.append((split, load, number, steps))
        return jobset((0, 11, 3), (3, 1, 3)) if load == 60 else jobset((0, 2, 1), (4, 2, 1))

    streams = StreamWindows(loads=(60, 70), slots=(1, 2), windows=1, latest=6, steps=4, beyond=50)
    of = task._replace(validation={50: [ALONE], 90: [ONE_WAITS]}, stream=stream, streams=streams)
    # short runs: 1 and 2.5; streams: 9 and 1
    assert validate_sets(sets(), of)() == pytest.approx((2.5 * 9) ** 0.25)
    assert asked == [("validation", load, number, 10) for load in (60, 70) for number in range(PIECES)]


def test_the_network_is_judged_as_it_is_then(task: Task) -> None:
    both = jobset((0, 6, 3), (0, 1, 3))
    network = by_duration(-1.0)
    validate = validate_sets(network, task._replace(validation={50: [both], 90: [both]}))
    before = validate()
    with torch.no_grad():
        network.direct.weight *= -1.0
    assert (before, validate()) == (pytest.approx(13 / 12), pytest.approx(4.0))
