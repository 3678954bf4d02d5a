"""Reward of one step [t, t + 1), by objective (DeepRM section 3.4).

A job is charged in every step with arrival <= t < finish, so with gamma = 1 the return of `slowdown` is minus the sum
of the jobs' slowdowns, that of `completion_time` minus the sum of their completion times, and that of `makespan` minus
the makespan. `dynamics` has its own compiled copy, because numba does not notice changes in another file.
"""

from collections.abc import Callable

# (sum of 1 / duration over the jobs in the system, their number, shares of capacity in use summed over resources)
Reward = Callable[[float, int, float], float]


def slowdown(inverse_durations: float, jobs: int, shares: float) -> float:
    """Charge 1 / duration for each job in the system (waiting, reserved or running).

    >>> slowdown(0.75, 2, 1.5)
    -0.75
    """
    return -inverse_durations


def completion_time(inverse_durations: float, jobs: int, shares: float) -> float:
    """Charge 1 for each job in the system."""
    return -float(jobs)


def makespan(inverse_durations: float, jobs: int, shares: float) -> float:
    """Charge 1 while any job is unfinished, even if it is yet to arrive."""
    return -1.0


def utilisation(inverse_durations: float, jobs: int, shares: float) -> float:
    """Reward the shares in use."""
    return shares


REWARDS: dict[str, Reward] = {
    "slowdown": slowdown,
    "completion_time": completion_time,
    "makespan": makespan,
    "utilisation": utilisation,
}
OBJECTIVES = tuple(REWARDS)  # compiled code uses the index of an objective
