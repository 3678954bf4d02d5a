"""Sizes of the measurements: those of the published figures, and minimal ones to test the benchmark itself."""

from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.problem import Problem


class Axis(NamedTuple):
    """Problems that differ in one quantity only, in rising order."""

    name: str
    sizes: tuple[int, ...]
    problems: tuple[Problem, ...]


def axis(name: str, base: dict[str, int], sizes: tuple[int, ...]) -> Axis:
    """Return the problems of an axis; `name` is a field of Problem."""
    return Axis(name, sizes, tuple(Problem(**(base | {name: size})) for size in sizes))  # type: ignore[arg-type]


class Search(NamedTuple):
    """Numbers of schedules that the local search and its baselines try."""

    jobsets: int
    jobs: int  # of each
    evaluations: int  # of each
    once: int  # orders that the compiled decoder evaluates one at a time
    plain: int  # orders listed in numpy


# When slots or resources grow, 200 jobs wait at once and the episode is cut at step 50. So all slots are full in every
# decision, and every size has the same number of decisions.
CROWD = {"waiting": 200, "steps": 50, "jobsets": 20, "episodes": 20}


@dataclass(frozen=True)
class Sizes:
    """Sizes of all measurements."""

    iteration: Problem
    large: Problem  # about twice the jobsets that run together
    larger: Problem  # four times that
    episodes: int  # run under SJF
    plain: int  # of these, run by the plain simulator
    states: int  # distinct states in a batch of the CNN
    batch: int  # decisions of an iteration in a batch of the CNN
    rollout: Problem  # source of the states
    decisions: int  # of a deployed deeprm
    decisions_cnn: int  # of a deployed deeprm2
    streams: Problem
    start_of_streams: Problem  # for the baseline
    axes: tuple[Axis, ...]
    crowd: tuple[int, int, int, int]  # many machines: episodes, jobs of each, machines, slots
    cluster: tuple[int, int, int, int]
    plain_jobs: int  # of these, run by the reference simulator
    pairs: dict[str, tuple[int, ...]]
    shares: tuple[int, int, int]  # of a cluster: groups, levels, units
    two_shares: tuple[int, int, int]  # the same, for the exact knapsack on two resources
    questions: int  # of shares, to measure gaps
    sharing: tuple[int, int]  # episodes, groups of each
    search: Search
    planned: tuple[int, int]  # look-ahead: short runs, and decisions where 64 jobs wait
    tasks: tuple[int, int, float]  # tasks without work; jobsets of hindsight, and its limit


FULL = Sizes(
    iteration=Problem(),
    large=Problem(jobsets=400),
    larger=Problem(jobsets=1600),
    episodes=2000,
    plain=40,
    states=512,
    batch=1024,
    rollout=Problem(jobsets=4, episodes=20),
    decisions=4000,
    decisions_cnn=1000,
    streams=Problem(jobsets=100, steps=20_500, load=90),  # about 10,000 jobs each
    start_of_streams=Problem(jobsets=100, steps=300, load=90),
    axes=(
        axis("jobsets", {}, (25, 50, 100, 200)),
        axis("episodes", {}, (5, 10, 20, 40)),
        axis("slots", CROWD, (10, 20, 40, 80, 128)),
        axis("steps", {"jobsets": 4, "episodes": 5}, (50, 160, 500, 1600, 5000)),
        axis("resources", CROWD, (2, 3, 4, 6, 8)),
    ),
    crowd=(2000, 200, 5, 10),
    cluster=(1, 100_000, 1000, 10),
    plain_jobs=100,
    pairs={"machines": (5, 10, 20, 40, 80), "slots": (10, 20, 40, 80)},
    shares=(80, 30, 1000),
    two_shares=(12, 10, 60),
    questions=200,
    sharing=(256, 4),
    search=Search(jobsets=4, jobs=50, evaluations=50_000, once=2000, plain=100),
    planned=(100, 200),
    tasks=(100, 8, 0.2),
)

TINY = Problem(jobsets=2, episodes=3)
QUICK = Sizes(
    iteration=TINY,
    large=TINY,
    larger=Problem(jobsets=8, episodes=3),
    episodes=20,
    plain=2,
    states=8,
    batch=16,
    rollout=TINY,
    decisions=50,
    decisions_cnn=20,
    streams=Problem(jobsets=4, steps=200, load=90),
    start_of_streams=Problem(jobsets=4, steps=50, load=90),
    axes=(axis("jobsets", {"episodes": 2}, (1, 2)),),
    crowd=(10, 20, 2, 3),
    cluster=(1, 200, 20, 5),
    plain_jobs=10,
    pairs={"machines": (2, 4)},
    shares=(4, 3, 20),
    two_shares=(3, 3, 10),
    questions=3,
    sharing=(2, 2),
    search=Search(jobsets=2, jobs=5, evaluations=20, once=3, plain=2),
    planned=(2, 3),
    tasks=(3, 2, 0.01),
)
