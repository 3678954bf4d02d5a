"""Measure the later cost of jobs left at some step of a stream: `left_job` and `left_work` of params.yaml.

    python docs/results/deeprm3/future.py MODEL_FOLDER STEPS

The stored network runs copies of a stream with the same jobs and samples its actions. Least squares over all copies and
several steps explains a copy's extra cost in the next STEPS steps by its extra waiting jobs and its extra work left,
in units of the average cost of a step. Prints a line a load, with standard errors (the questions to one copy depend on
each other, so they count as one).
"""

import sys
from pathlib import Path

import numpy as np
from measure import problems

from pipeline import storage
from pipeline.config import PoolCard, load_params
from pipeline.core import FloatArray, keys
from pipeline.problems.pool.networks.loading import restore
from pipeline.problems.pool.networks.sets import Sets
from pipeline.problems.pool.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.training.mixture import left
from pipeline.problems.pool.training.rolling import Roller
from pipeline.problems.pool.workload.source import source
from pipeline.progress import say

LOADS = (70, 80, 90, 95)
FIRSTS, AFTER = (0, 400, 800, 1200), (100, 200, 300, 400, 500)  # steps of forks, and of questions after them
WINDOWS, COPIES = 6, 16  # windows from each first step
KINDS = (1.0, 0.0), (0.0, 1.0)  # jobs, work


def main(folder: Path, steps: int) -> None:
    """Measure every load."""
    params = load_params()
    problem = problems(params)["streams"]
    origin = source(problem.params, "online", storage.LOG)
    network = network_of(folder)
    for load in LOADS:
        parts = []
        for first in FIRSTS:
            ask, end = range(1000 + first, 1000 + first + WINDOWS), first + AFTER[-1] + steps
            jobsets = [origin.piece("train", load, number, end) for number in ask]
            parts.append(asked(network, Cluster.of(problem.scenario), jobsets, first, steps))
        observed, cost = (np.concatenate(column) for column in zip(*parts, strict=True))
        found = np.linalg.lstsq(observed, cost, rcond=None)[0]
        rest = cost - observed @ found
        error = np.sqrt(np.diag(np.linalg.inv(observed.T @ observed)) * rest.var() * len(AFTER))
        explained = 1.0 - rest.var() / cost.var()
        say(
            f"load {load}: a job {found[0]:.1f} (+- {error[0]:.1f}), a step of work {found[1]:.1f} "
            f"(+- {error[1]:.1f}), {explained:.1%} of the variance explained"
        )


def network_of(folder: Path) -> Sets:
    """Return the network of a model's folder."""
    model = storage.read_model(folder, PoolCard)
    network = restore(model.card, model.weights).network
    if not isinstance(network, Sets):
        raise SystemExit(f"{folder}: expected a network `sets`, found {model.card.network.name}")
    return network


def asked(
    network: Sets, cluster: Cluster, jobsets: list[JobSet], first: int, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Return each copy's extra work left and extra cost, relative to the other copies of its window."""
    place, end = np.arange(WINDOWS), first + AFTER[-1] + steps
    stream = Batched(batch(jobsets), cluster, end + 1, "slowdown", skip_forced=True)
    Roller(stream, network.compiled(), keys(1, place, np.zeros_like(place))).play(first)
    copies = stream.fork(np.repeat(place, COPIES))
    key = keys(1, np.repeat(place, COPIES), np.tile(1 + np.arange(COPIES), WINDOWS))
    roller = Roller(copies, network.compiled(), key)
    observed = []
    for after in AFTER:
        roller.play(first + after)
        start = copies.schedule().start
        observed.append(np.stack([left(copies.jobs, start, cluster, first + after, kind) for kind in KINDS], axis=1))
    roller.play(end)
    cost = []
    for after in AFTER:
        spent = -copies.rewards[:, first + after : first + after + steps].mean(axis=1)
        usual = spent.reshape(WINDOWS, COPIES).mean(axis=1).repeat(COPIES)
        cost.append(steps * relative_to_others(spent[:, None]) / usual[:, None])
    return relative_to_others(np.concatenate(observed)), np.concatenate(cost)[:, 0]


def relative_to_others(values: FloatArray) -> FloatArray:
    """Return values [questions x windows x copies, K] less the mean over the copies of the same window."""
    each = values.reshape(-1, COPIES, values.shape[1])
    return (each - each.mean(axis=1, keepdims=True)).reshape(values.shape)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
