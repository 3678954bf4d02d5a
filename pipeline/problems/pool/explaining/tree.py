"""A small decision tree as a policy: what it looks at, in words of people, and how it decides.

The tree gives every job that may start now its chance to be started. The job of the highest chance is; of equal ones
the shortest, then the lowest slot. None is where that chance is not above a threshold and void is legal.
"""

from typing import NamedTuple

import numpy as np
from pydantic import Field, ValidationError, model_validator

from pipeline import storage
from pipeline.config import Frozen
from pipeline.core import BoolArray, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.errors import UserError
from pipeline.explaining.explain import explain_folder

LEAF = -1  # in place of a feature

# What it looks at of a job, and of all else, in the order of columns.
OF_JOB = {
    "duration": "duration (steps)",
    "times_shortest": "duration / shortest waiting",
    "demand": "largest share it demands",
    "waited": "steps it has waited",
    "shorter_waiting": "shorter jobs waiting",
    "keeps_out": "shorter jobs that fit, but not beside it",
    "leaves": "least free share it leaves",
}
OF_REST = {
    "waiting": "jobs waiting in slots",
    "backlog": "jobs in the backlog",
    "free": "least free share",
    "until_free": "steps until units are freed",
    "since_arrival": "steps since the last arrival",
    "load": "load so far",
}
FEATURES = OF_JOB | OF_REST


class TreeFeatures(NamedTuple):
    """What the tree sees of D decisions."""

    job: FloatArray  # [D, M, OF_JOB]
    rest: FloatArray  # [D, OF_REST]
    may_start: BoolArray  # [D, M]  would it start at once, and is that legal?
    may_wait: BoolArray  # [D]  is void legal?

    def rows(self) -> FloatArray:
        """Return the features [N, FEATURES] of every job that may start, decision by decision."""
        decision, slot = np.nonzero(self.may_start)
        return np.concatenate([self.job[decision, slot], self.rest[decision]], axis=1)


class Tree(NamedTuple):
    """N nodes; a row goes left where its feature is at most `at`. Node 0 is the root."""

    feature: IntArray  # [N]  place in FEATURES; LEAF
    at: FloatArray  # [N]
    left: IntArray  # [N]
    right: IntArray  # [N]
    chance: FloatArray  # [N]

    def chances(self, rows: FloatArray) -> FloatArray:
        """Return the chance of each row [N, FEATURES] to be started."""
        node = np.zeros(len(rows), dtype=np.int64)
        undecided = np.flatnonzero(self.feature[node] != LEAF)
        while len(undecided):
            here = node[undecided]
            low = rows[undecided, self.feature[here]] <= self.at[here]
            node[undecided] = np.where(low, self.left[here], self.right[here])
            undecided = undecided[self.feature[node[undecided]] != LEAF]
        return np.asarray(self.chance[node])


class Node(Frozen):
    """One node of a stored tree; a leaf has no feature."""

    chance: float = Field(ge=0, le=1)
    feature: str | None = None
    at: float = Field(default=0.0, allow_inf_nan=False)
    left: int = 0
    right: int = 0


class TreeCard(Frozen):
    """A tree as it is stored, and the chance above which it starts a job."""

    agent: str
    scenario: str
    threshold: float = Field(ge=0, le=1)
    nodes: tuple[Node, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _leads_down(self) -> "TreeCard":
        for place, node in enumerate(self.nodes):
            if node.feature is not None and node.feature not in FEATURES:
                raise ValueError(f"node {place}: unknown feature '{node.feature}'")
            if node.feature is not None and not all(place < k < len(self.nodes) for k in (node.left, node.right)):
                raise ValueError(f"node {place}: expected children below it, found {node.left} and {node.right}")
        return self

    @property
    def leaves(self) -> int:
        """Return how many leaves there are."""
        return sum(node.feature is None for node in self.nodes)

    def tree(self) -> Tree:
        """Return the tree as arrays."""
        names = list(FEATURES)
        return Tree(
            np.array([LEAF if node.feature is None else names.index(node.feature) for node in self.nodes]),
            np.array([node.at for node in self.nodes]),
            np.array([node.left for node in self.nodes]),
            np.array([node.right for node in self.nodes]),
            np.array([node.chance for node in self.nodes]),
        )


def tree_features(view: Observation) -> TreeFeatures:
    """Return what the tree sees of observations of one machine."""
    rest = _of_rest(view)
    jobs, others = np.stack(_of_jobs(view), axis=2), np.stack(rest, axis=1)
    return TreeFeatures(jobs, others, view.legal[:, :, 0] & view.fits_now[:, :, 0], legal_actions(view)[:, -1])


def decide(tree: Tree, threshold: float, features: TreeFeatures) -> IntArray:
    """Return the action [D] of the tree in each decision, void last."""
    chance = np.full(features.may_start.shape, -np.inf)
    chance[features.may_start] = tree.chances(features.rows())
    best = chance.max(axis=1, keepdims=True)
    shortness = np.where(features.may_start & (chance == best), -features.job[:, :, 0], -np.inf)
    void = np.isneginf(best[:, 0]) | ((best[:, 0] <= threshold) & features.may_wait)
    return np.asarray(np.where(void, features.may_start.shape[1], shortness.argmax(axis=1)))


def tree_policy(card: TreeCard) -> Policy:
    """Return the policy of a stored tree; it keeps to the legal actions."""
    tree = card.tree()

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        return decide(tree, card.threshold, tree_features(view))

    return policy


def _of_jobs(view: Observation) -> list[FloatArray]:
    """Return OF_JOB, each [B, M]; of empty slots anything."""
    duration, share = view.duration.astype(float), view.demand / _capacity(view)[:, None]
    waits = duration > 0
    free = (view.free[:, 0, 0] / _capacity(view))[:, None]
    shorter = waits[:, None, :] & (
        duration[:, None, :] < duration[:, :, None]
    )  # [B, M, M]  the last than the one before
    beside = (view.demand[:, :, None] + view.demand[:, None] <= view.free[:, 0, 0][:, None, None]).all(axis=3)
    shortest = np.where(waits, duration, np.inf).min(axis=1, keepdims=True)
    return [
        duration,
        duration / np.where(np.isinf(shortest), 1.0, shortest),
        share.max(axis=2),
        view.waited.astype(float),
        shorter.sum(axis=2).astype(float),
        (shorter & view.fits_now[:, None, :, 0] & ~beside).sum(axis=2).astype(float),
        (free - share).min(axis=2),
    ]


def _of_rest(view: Observation) -> list[FloatArray]:
    """Return OF_REST, each [B]."""
    free, capacity = view.free[:, 0], _capacity(view)
    more = np.any(free > free[:, :1], axis=2)
    return [
        (view.duration > 0).sum(axis=1).astype(float),
        view.backlog.astype(float),
        (free[:, 0] / capacity).min(axis=1),
        np.where(more.any(axis=1), more.argmax(axis=1), free.shape[1]).astype(float),
        view.since_arrival.astype(float),
        (view.arrived[:, 2:] / (capacity * (view.now[:, None] + 1.0))).mean(axis=1),
    ]


def _capacity(view: Observation) -> FloatArray:
    return view.capacity[:, 0].astype(float)


TREE = "_tree"  # ends the name of an agent's tree


def tree_by_name(name: str) -> Policy:
    """Return the tree `<agent>_tree` as a policy; it keeps to the legal actions.

    Raises:
        UserError: it has not been made, or is no tree.
    """
    agent = name.removesuffix(TREE)
    path, first = explain_folder(agent) / "tree.json", f"run 'python -m pipeline explain --policy models/{agent}' first"
    if not path.is_file():
        raise UserError(f"policy '{name}': {path} is missing: {first}")
    try:
        return tree_policy(TreeCard.model_validate(storage.read_json(path)))
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(str(part) for part in found["loc"])
        raise UserError(f"{path}: not a tree ({where + ': ' if where else ''}{found['msg']}): {first}") from error
