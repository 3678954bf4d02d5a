"""Forward and backward pass of the CNN, compared with eager float32 convolutions of whole drawn images."""

from collections.abc import Iterator
from copy import deepcopy
from hashlib import blake2b

import numpy as np
import torch

from benchmarks import engine
from benchmarks.measure import ProgressCallback, in_turns, seconds
from benchmarks.problem import DEEPRM2
from benchmarks.record import Row, figure, half_of
from benchmarks.sizes import Sizes
from pipeline.core.types import IntArray
from pipeline.problems.pool.agents.networks.network import Network
from pipeline.problems.pool.env.nouns import CompactObservation

EAGER = "eager float32, channels last, on images drawn in advance, the same batch"


def run(runs: int, sizes: Sizes, on_progress: ProgressCallback) -> Iterator[Row]:
    """Measure a batch of distinct states, and the decisions of an iteration with all their duplicates."""
    on_progress("rollout")
    network = engine.network(sizes.rollout, DEEPRM2)
    played = engine.played(network, sizes.rollout)
    count = len(played.cells)
    distinct = played.take(_distinct(played, network, sizes.states))
    middle = np.arange(count)[max(0, count // 2 - sizes.batch // 2) :][: sizes.batch]
    some = played.take(middle)
    for name, all_ours, same, ratio in (
        ("cnn, a distinct state", distinct, distinct, 9.9),
        ("cnn, a decision of an iteration", played, some, 36.0),
    ):
        mine, theirs = in_turns(
            runs,
            on_progress,
            lambda: _milliseconds(engine.learning(network, all_ours), len(all_ours.cells)),  # noqa: B023
            lambda: _milliseconds(_eager(network, same), len(same.cells)),  # noqa: B023
        )
        yield Row(figure(name, mine, "ms", theirs, target=half_of(ratio)), EAGER)


def _milliseconds(work: engine.Work, decisions: int) -> float:
    return 1e3 * seconds(work) / decisions


def _eager(network: Network, observed: CompactObservation) -> engine.Work:
    image = engine.images(observed, network.layout)
    last = deepcopy(network)  # channels last: the faster of the two layouts
    last.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def work() -> None:
        last.zero_grad()
        engine.on_image(last, image).sum().backward()  # type: ignore[no-untyped-call]

    return work


def _distinct(observed: CompactObservation, network: Network, most: int) -> IntArray:
    """Return the indices of up to `most` states with distinct images."""
    first: dict[bytes, int] = {}
    for place in range(len(observed.cells)):
        image = engine.images(observed.take(slice(place, place + 1)), network.layout)
        first.setdefault(blake2b(image.numpy().tobytes()).digest(), place)
    places = np.array(list(first.values()))
    return places[:: max(1, len(places) // most)][:most]
