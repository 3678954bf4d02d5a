"""Play several policies side by side: those with a compiled rule first, by themselves; the others in lock step."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from pipeline.core import FloatArray, IntArray
from pipeline.progress import ShareCallback
from pipeline.simulation.choosing import compiled_rule_of

# Episodes side by side: enough that a lock step costs next to nothing an episode; at 35 jobs in ten slots one takes
# 3 kB in the simulator and 1 kB in what policies see, so that all take 64 MB however many policies and jobsets there
# are. Of a long horizon, fewer (steps of all their horizons).
MOST_ABREAST = 16_384


Column = FloatArray | IntArray


class InPlay(NamedTuple):
    """Some episodes in play."""

    left: Iterator[int]  # plays them, and tells now and then how many go on
    started: Callable[[], float]  # share of their jobs so far: in lock step all are over at nearly the same time
    end: Callable[[], Iterable[Column]]  # what has become of them: columns of jobs or episodes


Anyone = TypeVar("Anyone")  # a policy of any kind
Begin = Callable[[Sequence[Anyone], IntArray], InPlay]


def play_all(
    policies: Sequence[Anyone], episodes: int, abreast: int, begin: Begin[Anyone], on_progress: ShareCallback
) -> list[tuple[Column, ...]]:
    """Let every policy play every episode; return the columns of what became of each policy's, in one piece.

    Args:
        policies: those with a compiled rule play first, by themselves.
        episodes: of each policy.
        abreast: how many may go side by side.
        begin: starts some pairs of policy and episode, told by their number, policy by policy; the policies that it is
            given have all a rule, or none has.
        on_progress: told how far it is.
    """
    order = sorted(range(len(policies)), key=lambda k: compiled_rule_of(policies[k]) is None)
    compiled = sum(compiled_rule_of(policy) is not None for policy in policies)
    ends: dict[int, tuple[Column, ...]] = {}
    for some in (order[:compiled], order[compiled:]):
        over, pairs, parts = len(ends) * episodes, len(some) * episodes, []
        for first in range(0, pairs, abreast):
            group = np.arange(first, min(first + abreast, pairs))
            going = begin([policies[k] for k in some], group)
            for _ in going.left:
                if (started := going.started()) < 1:  # the end is told once, also where episodes were cut
                    on_progress((over + len(group) * started) / (len(policies) * episodes))
            over += len(group)
            on_progress(over / (len(policies) * episodes))
            parts.append(going.end())
        if some:
            columns = [np.split(np.concatenate(column), len(some)) for column in zip(*parts, strict=True)]
            ends |= zip(some, zip(*columns, strict=True), strict=True)
    return [ends[k] for k in range(len(policies))]
