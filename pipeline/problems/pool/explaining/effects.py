"""What moves an agent to withhold a job, and which features its tree needs."""

import numpy as np
import pandas as pd

from pipeline.core import FloatArray
from pipeline.problems.pool.explaining.differences import Times, edges
from pipeline.problems.pool.explaining.recording import AgentDecisions
from pipeline.problems.pool.explaining.tables import EFFECTS, IMPORTANCE
from pipeline.problems.pool.explaining.tree import FEATURES, OF_JOB, TreeCard, TreeFeatures, decide

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


def agreement(card: TreeCard, decisions: AgentDecisions, features: TreeFeatures | None = None) -> float:
    """Return the share of decisions in which a tree does as the agent, or starts a job as short."""
    does = decide(card.tree(), card.threshold, decisions.features if features is None else features)
    started = (does < decisions.slots) == (decisions.agent < decisions.slots)
    return float((started & (decisions.duration(does) == decisions.duration(decisions.agent))).mean())


def importance(card: TreeCard, decisions: AgentDecisions, rng: np.random.Generator) -> pd.DataFrame:
    """Return IMPORTANCE, the most important first: agreement lost when a feature is shuffled, mean of some shuffles.

    Features of jobs are shuffled among the jobs that could start, others among decisions.
    """
    whole = agreement(card, decisions)
    rows = []
    for place, name in enumerate(FEATURES):
        asked = any(node.feature == name for node in card.nodes)
        shuffles = [_shuffled(decisions.features, place, rng) for _ in range(SHUFFLES if asked else 0)]
        lost = [whole - agreement(card, decisions, shuffled) for shuffled in shuffles]
        rows.append((name, whole, float(np.mean(lost)) if lost else 0.0))
    return pd.DataFrame(rows, columns=list(IMPORTANCE.columns)).sort_values("lost", ascending=False, kind="stable")


def _shuffled(features: TreeFeatures, place: int, rng: np.random.Generator) -> TreeFeatures:
    """Return features in which one feature is that of others."""
    job, rest = features.job.copy(), features.rest.copy()
    if place < len(OF_JOB):
        values: FloatArray = job[features.may_start, place]
        job[features.may_start, place] = rng.permutation(values)
    else:
        rest[:, place - len(OF_JOB)] = rng.permutation(rest[:, place - len(OF_JOB)])
    return features._replace(job=job, rest=rest)
