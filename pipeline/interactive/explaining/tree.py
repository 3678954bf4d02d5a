"""A small decision tree as a policy, and its features.

The tree gives every job that may start a chance. The job with the highest chance starts; of equal ones the shortest,
then the one in the lowest slot. None starts if that chance is not above a threshold and void is legal. The job goes to
the first, the fullest or the emptiest of the machines that can take it.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError, model_validator

from pipeline.core import storage
from pipeline.core.config import Frozen
from pipeline.core.types import BoolArray, FloatArray, IntArray, Observation, Policy, legal_actions
from pipeline.errors import UserError

LEAF = -1  # in place of a feature
TREE = "_tree"  # suffix of the name of an agent's tree
Machine = Literal["first", "fullest", "emptiest"]
MACHINES: tuple[Machine, ...] = ("first", "fullest", "emptiest")

# Features of a job, and of the state, in the order of columns; {unit} is the problem's unit of time.
OF_JOB = {
    "duration": "duration ({unit})",
    "times_shortest": "duration / shortest waiting (ratio)",
    "demand": "largest share it demands (fraction)",
    "waited": "its wait ({unit})",
    "shorter_waiting": "shorter ones waiting (jobs)",
    "keeps_out": "shorter ones that fit, but not together with it (jobs)",
    "leaves": "least free share it leaves (fraction)",
    "nodes": "machines it runs on (number)",
    "fits_in": "time until it fits ({unit})",
}
OF_REST = {
    "waiting": "waiting in slots (jobs)",
    "backlog": "in the backlog (jobs)",
    "free": "least free share (fraction)",
    "until_free": "time until units are freed ({unit})",
    "since_arrival": "time since the last arrival ({unit})",
    "load": "load so far (fraction)",
}
FEATURES = OF_JOB | OF_REST
PLACE = {name: place for place, name in enumerate(FEATURES)}


def words(unit: str) -> dict[str, str]:
    """Return descriptions of the features, by name."""
    return {name: text.format(unit=unit) for name, text in FEATURES.items()}


class TreeFeatures(NamedTuple):
    """Features of D decisions."""

    job: FloatArray  # [D, M, OF_JOB]
    rest: FloatArray  # [D, OF_REST]
    may_start: BoolArray  # [D, M]  is it legal on any machine, to start or to wait there until it fits?
    fits: BoolArray  # [D, M]  would it start at once?
    may_wait: BoolArray  # [D]  is void legal?

    def rows(self, which: BoolArray) -> FloatArray:
        """Return the features [N, FEATURES] of some jobs [D, M], decision by decision."""
        decision, slot = np.nonzero(which)
        return np.concatenate([self.job[decision, slot], self.rest[decision]], axis=1)


class Node(Frozen):
    """One node of a tree; a row goes left if its feature is at most `at`. A leaf has no feature."""

    chance: float = Field(ge=0, le=1)
    feature: str | None = None
    at: float = Field(default=0.0, allow_inf_nan=False)
    left: int = 0
    right: int = 0


class TreeCard(Frozen):
    """A stored tree; node 0 is the root."""

    agent: str
    scenario: str
    threshold: float = Field(ge=0, le=1)  # chance above which a job starts
    nodes: tuple[Node, ...] = Field(min_length=1)
    machine: Machine = "first"  # of those that can take the job

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
        """Return the number of leaves."""
        return sum(node.feature is None for node in self.nodes)

    def chances(self, rows: FloatArray) -> FloatArray:
        """Return the chance of each row [N, FEATURES] to be started."""
        feature = np.array([LEAF if node.feature is None else PLACE[node.feature] for node in self.nodes])
        at, left, right = (np.array([getattr(node, name) for node in self.nodes]) for name in ("at", "left", "right"))
        node = np.zeros(len(rows), dtype=np.int64)
        while len(undecided := np.flatnonzero(feature[node] != LEAF)):
            here = node[undecided]
            low = rows[undecided, feature[here]] <= at[here]
            node[undecided] = np.where(low, left[here], right[here])
        return np.asarray(np.array([node.chance for node in self.nodes])[node])


def decide(card: TreeCard, features: TreeFeatures) -> IntArray:
    """Return the slot [D] whose job the tree starts in each decision; M = none."""
    chance = np.full(features.may_start.shape, -np.inf)
    chance[features.may_start] = card.chances(features.rows(features.may_start))
    best = chance.max(axis=1, keepdims=True)
    shortness = np.where(features.may_start & (chance == best), -features.job[:, :, 0], -np.inf)
    void = np.isneginf(best[:, 0]) | ((best[:, 0] <= card.threshold) & features.may_wait)
    return np.asarray(np.where(void, features.may_start.shape[1], shortness.argmax(axis=1)))


def tree_policy(card: TreeCard) -> Policy:
    """Return the policy of a stored tree; it keeps to the legal actions."""

    def policy(view: Observation, draws: FloatArray) -> IntArray:
        slot, machines = decide(card, tree_features(view)), view.legal.shape[2]
        some = np.minimum(slot, view.legal.shape[1] - 1)
        able, full = view.legal[np.arange(len(slot)), some], fullness(view)  # [B, K]
        on: Mapping[Machine, IntArray] = {
            "first": able.argmax(axis=1),
            "fullest": np.where(able, full, -np.inf).argmax(axis=1),
            "emptiest": np.where(able, full, np.inf).argmin(axis=1),
        }
        return np.asarray(np.where(slot > some, slot * machines, slot * machines + on[card.machine]))

    return policy


def fullness(view: Observation) -> FloatArray:
    """Return the share of each machine [B, K] that is in use, mean over resources."""
    return np.asarray(1.0 - (view.free[:, :, 0] / np.maximum(view.capacity, 1)).mean(axis=2))


def tree_features(view: Observation) -> TreeFeatures:
    """Return the tree's features of observations; amounts are summed over machines."""
    capacity = np.maximum(view.capacity.sum(axis=1), 1).astype(float)
    free = view.free.sum(axis=1)  # [B, T, R]
    more = np.any(free > free[:, :1], axis=2)
    rest = [
        (view.duration > 0).sum(axis=1).astype(float),
        view.backlog.astype(float),
        (free[:, 0] / capacity).min(axis=1),
        np.where(more.any(axis=1), more.argmax(axis=1), free.shape[1]).astype(float),
        view.since_arrival.astype(float),
        (view.arrived[:, 2:] / (capacity * (view.now[:, None] + 1.0))).mean(axis=1),
    ]
    count, slots = view.duration.shape
    used = 1 + int(np.nonzero(view.duration)[1].max(initial=0))  # pairs of empty slots would take most time
    job = np.zeros((count, slots, len(OF_JOB)))
    names = ("duration", "demand", "nodes", "waited", "fits_now", "fits_in")
    first_slots = view._replace(**{name: getattr(view, name)[:, :used] for name in names})
    job[:, :used] = np.stack(_of_jobs(first_slots, capacity), axis=2)
    return TreeFeatures(
        job,
        np.stack(rest, axis=1),
        np.asarray(view.legal.any(axis=2)),
        np.asarray((view.legal & view.fits_now).any(axis=2)),
        legal_actions(view)[:, -1],
    )


def _of_jobs(view: Observation, capacity: FloatArray) -> list[FloatArray]:
    """Return OF_JOB, each [B, M]; values of empty slots are arbitrary."""
    duration, free = view.duration.astype(float), view.free[:, :, 0].sum(axis=1)
    held = view.nodes[..., None] * view.demand
    share, waits, fits = held / capacity[:, None], duration > 0, np.asarray(view.fits_now.any(axis=2))
    shorter = waits[:, None, :] & (duration[:, None, :] < duration[:, :, None])  # [B, M, M]  last axis < other
    together = np.ones(shorter.shape, dtype=bool)
    for r in range(held.shape[2]):
        together &= held[:, :, None, r] + held[:, None, :, r] <= free[:, None, None, r]
    shortest = np.where(waits, duration, np.inf).min(axis=1, keepdims=True)
    return [
        duration,
        duration / np.where(np.isinf(shortest), 1.0, shortest),
        share.max(axis=2),
        view.waited.astype(float),
        shorter.sum(axis=2).astype(float),
        (shorter & fits[:, None] & ~together).sum(axis=2).astype(float),
        ((free / capacity)[:, None] - share).min(axis=2),
        view.nodes.astype(float),
        np.where(np.isfinite(view.fits_in), view.fits_in, 0.0),
    ]


def tree_by_name(name: str) -> Policy:
    """Return the tree `<agent>_tree` as a policy; it keeps to the legal actions."""
    agent = name.removesuffix(TREE)
    path = storage.REPORTS / "explain" / agent / "tree.json"
    first = f"run 'python -m pipeline explain --policy models/{agent}' first"
    if not path.is_file():
        raise UserError(f"policy '{name}': {path} is missing: {first}")
    try:
        return tree_policy(TreeCard.model_validate(storage.read_json(path)))
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(str(part) for part in found["loc"])
        raise UserError(f"{path}: not a tree ({where + ': ' if where else ''}{found['msg']}): {first}") from error
