"""Keep the weights that did best on validation jobsets, the starting ones among them."""

from collections.abc import Callable, Iterable, Iterator

from pipeline.policies.networks import Network
from pipeline.training.decisions import Update


def best_on_validation(
    updates: Iterable[Update], network: Network, judge: Callable[[], float], every: int, last: int
) -> Iterator[Update]:
    """Pass updates on, with `validation` whenever the network was judged; leave the best weights in it.

    Args:
        updates: change the network.
        network: the one that is judged.
        judge: how good it is now; less is better.
        every: updates between two judgements.
        last: number of the last update, which is always judged.
    """
    best, kept = judge(), _copied(network)
    yield Update(0, {"validation": best})
    for update in updates:
        if update.step % every and update.step != last:
            yield update
            continue
        now = judge()
        if now < best:
            best, kept = now, _copied(network)
        yield Update(update.step, {**update.metrics, "validation": now})
    network.load_state_dict(kept)


def _copied(network: Network) -> dict[str, object]:
    return {name: value.clone() for name, value in network.state_dict().items()}
