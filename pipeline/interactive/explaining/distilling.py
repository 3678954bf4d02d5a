"""Distil a policy into a small tree.

Each row is a job that could start; its label is whether the agent started it. A job passed over for another has little
weight, because it is often the next to start. So a leaf's chance mainly separates started from withheld jobs, and only
then ranks jobs. The tree plays, the agent labels its states, and a tree is fitted to all data again (DAgger; Ross,
Gordon and Bagnell 2011). Deviation: in all later rounds, only the tree plays.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.core.types import BoolArray, FloatArray
from pipeline.interactive.explaining.decisions import Decisions
from pipeline.interactive.explaining.differences import agreement
from pipeline.interactive.explaining.tree import FEATURES, MACHINES, Node, TreeCard, words

PASSED_OVER = 0.1  # weight of a job that waits for another to start
LEAST_SHARE = 0.001  # of all rows, in a leaf
DIGITS = 6  # in the file, so that the measured tree equals the stored one
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


class Examples(NamedTuple):
    """N jobs that could start, and the agent's choices."""

    rows: FloatArray  # [N, FEATURES]
    started: BoolArray  # [N]
    weight: FloatArray  # [N]
    machines: FloatArray  # [E, MACHINES]  did the agent take this machine, where not all are equally full?


def examples(decisions: Decisions) -> Examples:
    """Return the training data of some decisions."""
    decision, slot = np.nonzero(decisions.features.may_start)
    did = decisions.agent[decision]
    started = slot == did
    passed_over = ~started & (did < decisions.slots)
    took = np.stack([getattr(decisions.placement, word) for word in MACHINES], axis=1)[decisions.placement.uneven]
    rows = decisions.features.rows(decisions.features.may_start)
    return Examples(rows, started, np.where(passed_over, PASSED_OVER, 1.0), took)


def grow(parts: Sequence[Examples], leaves: int, named: Mapping[str, str], seed: int) -> TreeCard:
    """Return a tree of up to `leaves` leaves, with a provisional threshold; `named`: its agent and scenario."""
    from sklearn.tree import DecisionTreeClassifier  # the import takes a second

    rows, started, weight, took = (np.concatenate(field) for field in zip(*parts, strict=True))
    least = max(1, int(LEAST_SHARE * len(rows)))
    grown = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=least, random_state=seed)
    # Two jobs without weight, one started and one not, so that both labels exist even if the agent withholds none.
    rows, started = np.concatenate([rows, rows[:1], rows[:1]]), np.concatenate([started, [False, True]])
    found = grown.fit(rows, started, sample_weight=np.concatenate([weight, [0.0, 0.0]])).tree_
    names, chance = list(FEATURES), found.value[:, 0, 1] / found.value[:, 0].sum(axis=1)
    nodes = [
        Node(chance=_short(chance[k]))
        if found.feature[k] < 0
        else Node(
            chance=_short(chance[k]),
            feature=names[found.feature[k]],
            at=_short(found.threshold[k]),
            left=int(found.children_left[k]),
            right=int(found.children_right[k]),
        )
        for k in range(found.node_count)
    ]
    machine = MACHINES[took.mean(axis=0).argmax() if len(took) else 0]
    return TreeCard(**named, threshold=0.5, nodes=tuple(nodes), machine=machine)


def distil(
    first: Decisions,
    label: Callable[[TreeCard], Decisions],
    costs: Callable[[Sequence[TreeCard]], Sequence[float]],
    sizes: Sequence[int],
    rounds: int,
    named: Mapping[str, str],
    seed: int,
    most: int = 1_000_000,
) -> TreeCard:
    """Return the best tree of all rounds.

    Args:
        first: decisions of the agent's own play.
        label: returns the agent's decisions while a tree plays.
        costs: returns the costs of trees on validation jobsets.
        sizes: numbers of leaves to try, each with every threshold.
        rounds: number of rounds in which the tree plays.
        named: the tree's agent and scenario.
        seed: breaks ties between splits.
        most: number of trees of a round that play: those that reproduce most of the agent's own decisions.
    """
    parts, best, least = [examples(first)], None, np.inf
    for number in range(rounds + 1):
        grown = [grow(parts, leaves, named, seed) for leaves in sizes]
        tried = [tree.model_copy(update={"threshold": threshold}) for tree in grown for threshold in THRESHOLDS]
        if len(tried) > most:
            tried = sorted(tried, key=lambda tree: -agreement(tree, first))[:most]
        cost = list(costs(tried))
        place = int(np.argmin(cost))
        if best is None or cost[place] < least:
            best, least = tried[place], cost[place]
        if number < rounds:
            parts.append(examples(label(tried[place])))
    if best is None:
        raise ValueError(f"expected at least 0 rounds, got {rounds}")
    return best


def rules(card: TreeCard, unit: str, several: bool) -> str:
    """Return a tree as text; `unit` is the unit of time, `several` is true if there are several machines."""
    opening = (
        f"Of the jobs that may start now, the one with the highest chance does; of equal ones the shortest. None does "
        f"where that chance is not above {100 * card.threshold:g} %, save on an idle cluster. {card.leaves} leaves, in "
        f"the order in which they are asked."
    ) + (f" It goes to the {card.machine} of the machines that can take it." if several else "")
    return "\n".join([f"# Rules of {card.agent}_tree", "", opening, "", *_lines(card, words(unit), 0, 0), ""])


def _lines(card: TreeCard, labels: Mapping[str, str], place: int, depth: int) -> list[str]:
    node, indent = card.nodes[place], "  " * depth
    if node.feature is None:
        verdict = "start" if node.chance > card.threshold else "withhold"
        return [f"{indent}- **{verdict}** ({100 * node.chance:.0f} %)"]
    what = labels[node.feature]
    low, high = (_lines(card, labels, k, depth + 1) for k in (node.left, node.right))
    return [f"{indent}- {what} ≤ {node.at:g}", *low, f"{indent}- {what} > {node.at:g}", *high]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
