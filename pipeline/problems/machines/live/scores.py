"""What heuristics think of each waiting job: the scores by which a service puts them in order."""

from collections.abc import Mapping

import numpy as np

from pipeline.core import FloatArray, Observation
from pipeline.problems.machines.heuristics.rules import AGE, f1, packer, saf, saf_aged, tetris_fair, unicep, wfp3
from pipeline.problems.machines.heuristics.teachers import EVEN_MIX
from pipeline.problems.machines.heuristics.tuning import MIX, TETRIS
from pipeline.simulation.choosing import Score, fcfs, sjf


def _no_order(view: Observation) -> FloatArray:
    return np.zeros(view.duration.shape)


# By name; of those that first choose a job and then its machine, what chooses the job.
SCORES: dict[str, Score] = {
    "fcfs": fcfs,
    "random": _no_order,
    "sjf": sjf,
    "tetris": tetris_fair(*EVEN_MIX),
    "packer": packer,
    "saf": saf,
    "saf_aged": saf_aged(AGE),
    "f1": f1,
    "wfp3": wfp3,
    "unicep": unicep,
    "least_allocated": fcfs,
    "most_allocated": fcfs,
    "balanced_allocation": fcfs,
    "sjf_most_allocated": sjf,
}


def score_of(name: str, tuned: Mapping[str, float]) -> Score:
    """Return the score of a heuristic, with its tuned numbers if it has them."""
    if name == TETRIS and all(knob in tuned for knob in MIX):
        return tetris_fair(*(tuned[knob] for knob in MIX))
    return SCORES[name]


def of_jobs(scores: FloatArray, view: Observation) -> FloatArray:
    """Return the best score of each job [M] on the machines that could hold it, of scores [1, M] or [1, M, K]."""
    if scores.ndim == 2:
        return np.asarray(scores[0], dtype=float)
    could = (view.demand[0, :, None] <= view.capacity[0]).all(axis=2)
    return np.asarray(np.where(could, scores[0], -np.inf).max(axis=1), dtype=float)
