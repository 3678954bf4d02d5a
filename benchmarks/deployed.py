"""One decision of a deployed policy: read from its folder as in `schedule`, one observation in, one action out."""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import engine
from benchmarks.measure import ProgressCallback
from benchmarks.problem import DEEPRM, DEEPRM2, Problem
from benchmarks.record import Row, Target, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.core.types import Observation, Policy

DRAWN = "drawing the image and running the network on it in torch"


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure medians and 99th percentiles over the decisions of an episode, one at a time."""
    problem = Problem(jobsets=1)
    for name, config, decisions, targets in (
        ("deeprm", DEEPRM, sizes.decisions, (half_of(ratio=3.4), half_of(ratio=3.8))),
        ("deeprm2", DEEPRM2, sizes.decisions_cnn, (Target(), Target())),
    ):
        network = engine.network(problem, config)
        with TemporaryDirectory() as folder:
            policy = engine.deployed(network, problem, config, Path(folder))
        views = engine.met(policy, decisions)
        plain = engine.deployed_plainly(network)
        mine, theirs = [], []
        for number in range(runs + 1):
            on_progress(f"{name}, " + ("warm up" if number == 0 else f"run {number} of {runs}"))
            mine.append(_percentiles(policy, views))
            theirs.append(_percentiles(plain, views))
        for k, (which, target) in enumerate(zip(("p50", "p99"), targets, strict=True)):
            ours, baseline = ([spent[k] for spent in measured[1:]] for measured in (mine, theirs))
            yield Row(figure(f"a decision of {name}, {which}", ours, "ms", baseline, target=target), DRAWN)


def _percentiles(policy: Policy, views: list[Observation]) -> tuple[float, float]:
    """Return the median and the 99th percentile [ms]."""
    spent = np.empty(len(views))
    draws = np.full(1, 0.5)
    for k, view in enumerate(views):
        begun = time.perf_counter_ns()
        policy(view, draws)
        spent[k] = time.perf_counter_ns() - begun
    median, last = np.percentile(spent, [50, 99]) / 1e6
    return float(median), float(last)
