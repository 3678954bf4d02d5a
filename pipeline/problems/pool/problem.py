"""What one pooled cluster gives the seam; nothing but assembly, each part imported when it is asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import Params
from pipeline.core import Policy
from pipeline.problems import (
    Algorithms,
    Comparison,
    Drawn,
    Hindsight,
    Learning,
    Planning,
    Problem,
    Scoring,
    Served,
    Use,
)
from pipeline.problems.pool.nouns import JobSet
from pipeline.problems.pool.tables import TABLES
from pipeline.progress import ProgressCallback
from pipeline.schemas import ResultTables

if TYPE_CHECKING:
    from pipeline.problems.pool.networks.networks import PoolNetwork
    from pipeline.problems.pool.training.task import Task


class PoolProblem:
    """The parts; what each is for stands at `Problem`."""

    @property
    def check(self) -> Callable[[Params], None]:
        """Return what refuses rows of params.yaml that do not go with this code."""
        from pipeline.problems.pool.checks import check

        return check

    @property
    def tables(self) -> ResultTables:
        """Return the tables of what policies did."""
        return TABLES

    @property
    def draw(self) -> Callable[[Params, str, ProgressCallback], Drawn[JobSet]]:
        """Return what draws all jobsets of a scenario, or cuts them from its log."""
        from pipeline.problems.pool.drawing import draw

        return draw

    @property
    def scoring(self) -> "Callable[[Params, str, str | None], Scoring[JobSet, Policy]]":
        """Return how policies are scored."""
        from pipeline.problems.pool.scoring import scoring

        return scoring

    @property
    def planning(self) -> Planning[Policy]:
        """Return what makes a policy that looks ahead."""
        from pipeline.problems.pool.lookahead.planning import planning

        return planning

    @property
    def learning(self) -> "Learning[Policy, Task, PoolNetwork]":
        """Return how its agents learn."""
        from pipeline.problems.pool.learning import LEARNING

        return LEARNING

    @property
    def pretraining(self) -> Algorithms:
        """Return the ways to pre-train."""
        from pipeline.problems.pool.training.pretraining import PRETRAINING

        return PRETRAINING

    @property
    def finetuning(self) -> Algorithms:
        """Return the ways to fine-tune."""
        from pipeline.problems.pool.training.finetuning import FINETUNING

        return FINETUNING

    @property
    def hindsight(self) -> Hindsight:
        """Return what full knowledge could have made of its jobsets."""
        from pipeline.problems.pool.evaluation.hindsight import solve

        return solve

    @property
    def comparison(self) -> Comparison:
        """Return what is compared beside slowdown."""
        from pipeline.problems.pool.comparison import COMPARISON

        return COMPARISON

    @property
    def use(self) -> Use:
        """Return what people do with its policies."""
        from pipeline.problems.pool.using import USE

        return USE

    @property
    def served(self) -> Callable[[Path], Served]:
        """Return what makes a stored policy answer rows of numbers."""
        from pipeline.problems.pool.serving import served

        return served


PROBLEM: "Problem[JobSet, Policy, Task, PoolNetwork]" = PoolProblem()
