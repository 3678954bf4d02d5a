"""What moves an agent to withhold a job, and which features its tree needs."""

import numpy as np
import pandas as pd

from pipeline.core import FloatArray
from pipeline.problems.pool.explaining.differences import Times, edges
from pipeline.problems.pool.explaining.recording import Decisions
from pipeline.problems.pool.explaining.tables import EFFECTS, IMPORTANCE
from pipeline.problems.pool.explaining.tree import FEATURES, OF_JOB, Scene, TreeCard, decide

BINS = 8  # at most
SHUFFLES = 3


def effects(times: Times) -> pd.DataFrame:
    """Return EFFECTS: the share of jobs withheld in bins of each feature, all others as they come."""
    rows = []
    for place, name in enumerate(FEATURES):
        values = times.rows[:, place]
        for low, high in edges(values, BINS):
            inside = (values >= low) & (values <= high)
            share = float(times.withheld[inside].mean())
            rows.append((name, low, high, float(values[inside].mean()), int(inside.sum()), share))
    return pd.DataFrame(rows, columns=list(EFFECTS.columns)).astype({"n": "int64"})


def agreement(card: TreeCard, decisions: Decisions, seen: Scene | None = None) -> float:
    """Return the share of decisions in which a tree does as the agent, or starts a job as short.

    Args:
        card: the tree.
        decisions: of the agent.
        seen: what the tree sees in its place; None: what there is.
    """
    does = decide(card.tree(), card.threshold, decisions.scene if seen is None else seen)
    started = (does < decisions.slots) == (decisions.agent < decisions.slots)
    return float((started & (decisions.duration(does) == decisions.duration(decisions.agent))).mean())


def importance(card: TreeCard, decisions: Decisions, rng: np.random.Generator) -> pd.DataFrame:
    """Return IMPORTANCE, the most important first: agreement lost when a feature is shuffled, mean of some shuffles.

    Features of jobs are shuffled among the jobs that could start, others among decisions.
    """
    whole = agreement(card, decisions)
    rows = []
    for place, name in enumerate(FEATURES):
        asked = any(node.feature == name for node in card.nodes)
        shuffles = [_shuffled(decisions.scene, place, rng) for _ in range(SHUFFLES if asked else 0)]
        lost = [whole - agreement(card, decisions, shuffled) for shuffled in shuffles]
        rows.append((name, whole, float(np.mean(lost)) if lost else 0.0))
    return pd.DataFrame(rows, columns=list(IMPORTANCE.columns)).sort_values("lost", ascending=False, kind="stable")


def _shuffled(scene: Scene, place: int, rng: np.random.Generator) -> Scene:
    """Return scenes in which one feature is that of others."""
    job, rest = scene.job.copy(), scene.rest.copy()
    if place < len(OF_JOB):
        values: FloatArray = job[scene.may_start, place]
        job[scene.may_start, place] = rng.permutation(values)
    else:
        rest[:, place - len(OF_JOB)] = rng.permutation(rest[:, place - len(OF_JOB)])
    return scene._replace(job=job, rest=rest)
