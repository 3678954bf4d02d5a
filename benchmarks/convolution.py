"""Forward and backward of the CNN, against eager float32 convolutions of whole drawn images."""

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks import engine
from benchmarks.measure import Tell, in_turns, seconds
from benchmarks.problem import DEEPRM2
from benchmarks.record import Row, Target, figure
from benchmarks.sizes import Sizes
from pipeline.policies.networks import Network

EAGER = "eager float32 NCHW on images drawn beforehand, the same batch"


def run(runs: int, sizes: Sizes, tell: Tell) -> Iterator[Row]:
    """Measure a batch of distinct states, and the decisions of an iteration with all their duplicates."""
    tell("play")
    network = engine.network(sizes.rollout, DEEPRM2)
    played = engine.played(network, sizes.rollout)
    count = engine.count(played)
    distinct = engine.take(played, _distinct(played, network, sizes.states))
    middle = np.arange(count)[max(0, count // 2 - sizes.batch // 2) :][: sizes.batch]
    some = engine.take(played, middle)
    for name, all_ours, same, ratio in (
        ("cnn, a distinct state", distinct, distinct, 1.5),
        ("cnn, a decision of an iteration", played, some, 3.0),
    ):
        mine, theirs = in_turns(
            runs,
            tell,
            lambda: _milliseconds(engine.learning(network, all_ours), engine.count(all_ours)),  # noqa: B023
            lambda: _milliseconds(_eager(network, same), engine.count(same)),  # noqa: B023
        )
        yield Row(figure(name, mine, "ms", theirs, target=Target(ratio=ratio)), EAGER)


def _milliseconds(work: engine.Work, decisions: int) -> float:
    return 1e3 * seconds(work) / decisions


def _eager(network: Network, views: engine.Views) -> engine.Work:
    image = torch.from_numpy(engine.images(views, network.layout))

    def work() -> None:
        network.zero_grad()
        engine.on_image(network, image).sum().backward()  # type: ignore[no-untyped-call]

    return work


def _distinct(views: engine.Views, network: Network, most: int) -> np.ndarray:
    """Return the first places of at most so many states of which no two have the same image."""
    first: dict[bytes, int] = {}
    for place in range(engine.count(views)):
        image = engine.images(engine.take(views, np.array([place])), network.layout)
        first.setdefault(np.packbits(image > 0).tobytes() + image[0, 0, -1:].tobytes(), place)
    places = np.array(list(first.values()))
    return places[:: max(1, len(places) // most)][:most]
