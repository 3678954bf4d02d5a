"""What many machines gives the seam; nothing but assembly, each part imported when it is asked for."""

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
    no_hindsight,
)
from pipeline.problems.machines.nouns import Jobs
from pipeline.problems.machines.tables import TABLES
from pipeline.progress import ProgressCallback
from pipeline.schemas import ResultTables

if TYPE_CHECKING:
    from pipeline.problems.machines.evaluation.play import PlaysItself
    from pipeline.problems.machines.networks.actor_critic import ActorCritic
    from pipeline.problems.machines.training.task import Task


class MachinesProblem:
    """The parts; what each is for stands at `Problem`."""

    @property
    def check(self) -> Callable[[Params], None]:
        """Return what refuses rows of params.yaml that do not go with this code."""
        from pipeline.problems.machines.heuristics.names import check_names

        return check_names

    @property
    def tables(self) -> ResultTables:
        """Return the tables of what policies did."""
        return TABLES

    @property
    def draw(self) -> Callable[[Params, str, ProgressCallback], Drawn[Jobs]]:
        """Return what draws all jobsets of a scenario, or cuts them from its log."""
        from pipeline.problems.machines.drawing import draw

        return draw

    @property
    def scoring(self) -> "Callable[[Params, str, str | None], Scoring[Jobs, Policy | PlaysItself]]":
        """Return how policies are scored."""
        from pipeline.problems.machines.scoring import scoring

        return scoring

    @property
    def planning(self) -> "Planning[Policy | PlaysItself]":
        """Return what makes a policy that looks ahead."""
        from pipeline.problems.machines.lookahead.planning import planning

        return planning

    @property
    def learning(self) -> "Learning[Policy, Task, ActorCritic]":
        """Return how its agents learn."""
        from pipeline.problems.machines.learning import LEARNING

        return LEARNING

    @property
    def pretraining(self) -> Algorithms:
        """Return the ways to pre-train."""
        from pipeline.problems.machines.training.algorithms import ALGORITHMS

        return ALGORITHMS

    @property
    def finetuning(self) -> Algorithms:
        """Return the ways to fine-tune."""
        from pipeline.problems.machines.training.algorithms import ALGORITHMS

        return ALGORITHMS

    @property
    def hindsight(self) -> Hindsight:
        """Return what full knowledge could have made of its jobsets."""
        return no_hindsight

    @property
    def comparison(self) -> Comparison:
        """Return what is compared beside slowdown."""
        from pipeline.problems.machines.comparison import COMPARISON

        return COMPARISON

    @property
    def use(self) -> Use:
        """Return what people do with its policies."""
        from pipeline.problems.machines.using import USE

        return USE

    @property
    def served(self) -> Callable[[Path], Served]:
        """Return what makes a stored policy answer rows of numbers."""
        from pipeline.problems.machines.serving import served

        return served


PROBLEM: "Problem[Jobs, Policy | PlaysItself, Task, ActorCritic]" = MachinesProblem()
