"""Keep the weights that did best on validation jobsets, the starting ones among them."""

from collections.abc import Callable, Iterable, Iterator

from torch import nn

from pipeline.learning.memory import Best, Memory
from pipeline.learning.update import Update


def best_on_validation(
    updates: Iterable[Update],
    network: nn.Module,
    validate: Callable[[], float],
    every: int,
    last: int,
    memory: Memory | None = None,
) -> Iterator[Update]:
    """Pass updates on, with `validation` whenever the network was validated; leave the best weights in it."""
    memory = memory or Memory()
    best = Best(network)
    memory.keep(best_on_validation=best)
    if not memory.resumed:
        start = validate()
        best.offer(start)
        yield Update(0, {"validation": start})
    for update in updates:
        if update.step % every and update.step != last:
            yield update
            continue
        now = validate()
        best.offer(now)
        yield Update(update.step, {**update.metrics, "validation": now})
    best.restore()
