"""Reward of one step [t, t + 1), by objective (DeepRM section 3.4).

A job is charged in every step with arrival <= t < finish, so with gamma = 1 the return of `slowdown` is minus the sum
of the jobs' slowdowns, that of `completion_time` minus the sum of their completion times, and that of `makespan` minus
the makespan.
"""

from numba import njit

from pipeline.core import OBJECTIVES

CODES = {name: code for code, name in enumerate(OBJECTIVES)}


@njit(cache=True)
def reward(objective: int, inverse_durations: float, jobs: int, shares: float) -> float:
    """Return the reward of a step.

    Args:
        objective: place of the objective in OBJECTIVES.
        inverse_durations: sum of 1 / duration over the jobs in the system (waiting, reserved or running).
        jobs: how many jobs are in the system.
        shares: shares of capacity in use during the step, summed over resources.

    >>> reward(CODES["slowdown"], 0.75, 2, 1.5)
    -0.75
    >>> reward(CODES["makespan"], 0.0, 0, 0.0)  # jobs yet to arrive are unfinished too
    -1.0
    """
    if objective == 0:
        return -inverse_durations
    if objective == 1:
        return -float(jobs)
    if objective == 2:
        return -1.0
    return shares
