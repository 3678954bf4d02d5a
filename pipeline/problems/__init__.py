"""One package per problem, behind one typed seam: what stages, commands and the report may ask of any of them.

A problem's `problem.py` is nothing but assembly: each of its parts is imported when it is first asked for, so that a
stage imports no more than it runs, and DVC knows what that is. Jobs, policies, tasks and networks of a problem are type
variables here. Whoever holds a problem that is only known when params.yaml is read holds `AnyProblem`: what a part gave
him, he may hand to another part of the same problem, and can do nothing else with it.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from pipeline.config import Params
from pipeline.problems.parts import (
    STORED,
    Algorithms,
    Answering,
    Best,
    Comparison,
    Drawn,
    Evidence,
    Examine,
    ExplainRequest,
    Hindsight,
    Jobs,
    JobSets,
    Learning,
    Network,
    Part,
    Picture,
    Planning,
    Policy,
    ScheduleRequest,
    Score,
    Scoring,
    Served,
    ShowRequest,
    SiteRows,
    Table,
    Task,
    Tested,
    Trial,
    Use,
    Validated,
    both,
    no_hindsight,
    no_planning,
    nothing_more,
)
from pipeline.progress import ProgressCallback
from pipeline.schemas import ResultTables

if TYPE_CHECKING:
    from torch import nn  # noqa: F401  # in the words of AnyProblem

    from pipeline.execution.executor import Executor
    from pipeline.logs.trace import Trace

__all__ = [
    "PROBLEMS",
    "PROTOCOLS",
    "STORED",
    "Algorithms",
    "Answering",
    "AnyProblem",
    "Best",
    "Comparison",
    "Drawn",
    "Evidence",
    "Examine",
    "ExplainRequest",
    "Hindsight",
    "JobSets",
    "Jobs",
    "Learning",
    "Network",
    "Part",
    "Picture",
    "Planning",
    "Policy",
    "Problem",
    "ScheduleRequest",
    "Score",
    "Scoring",
    "Served",
    "ShowRequest",
    "SiteRows",
    "Table",
    "Task",
    "Tested",
    "Trial",
    "Use",
    "Validated",
    "both",
    "check",
    "no_hindsight",
    "no_planning",
    "nothing_more",
    "problem",
    "problem_of",
    "protocol",
    "scenarios_by_problem",
    "site_rows",
    "trial",
]

# The one place where a new problem is entered: params.yaml's word, and the module that assembles it.
PROBLEMS: Mapping[str, str] = {
    "pool": "pipeline.problems.pool.problem",
    "machines": "pipeline.problems.machines.problem",
    "groups": "pipeline.problems.groups.problem",
}

# Protocols of others that policies can be played under: the word of `benchmark`, and the module that does it.
PROTOCOLS: Mapping[str, str] = {"rlscheduler": "pipeline.problems.machines.benchmark"}


# A site's log: what makes rows of params.yaml of it, and what replays it.
SITES = "pipeline.problems.machines.site"
TRIAL = "pipeline.problems.machines.trial"


class Problem(Protocol[Jobs, Policy, Task, Network]):
    """What one problem supplies; a part is imported when it is first asked for."""

    @property
    def check(self) -> Callable[[Params], None]:
        """Return what refuses rows of params.yaml that the problem's code cannot go with."""

    @property
    def tables(self) -> ResultTables:
        """Return the tables of what policies did."""

    @property
    def draw(self) -> Callable[[Params, str, ProgressCallback], Drawn[Jobs]]:
        """Return what draws all jobsets of a scenario, or cuts them from its log."""

    @property
    def scoring(self) -> Callable[[Params, str, str | None], Scoring[Jobs, Policy]]:
        """Return how policies are scored, given a scenario, and the agent if they are its own."""

    @property
    def planning(self) -> Planning[Policy]:
        """Return what makes a policy of a row of `plans`, which looks ahead."""

    @property
    def learning(self) -> Learning[Policy, Task, Network]:
        """Return how its agents learn."""

    @property
    def pretraining(self) -> Algorithms:
        """Return the ways to pre-train, by their params.yaml word."""

    @property
    def finetuning(self) -> Algorithms:
        """Return the ways to fine-tune; apart from the others, for few of them imitate a heuristic."""

    @property
    def hindsight(self) -> Hindsight:
        """Return what full knowledge could have made of a scenario's test jobsets."""

    @property
    def comparison(self) -> Comparison:
        """Return what is compared beside slowdown."""

    @property
    def use(self) -> Use:
        """Return what people do with its policies."""

    @property
    def served(self) -> Callable[[Path], Served]:
        """Return what makes a stored policy answer rows of numbers."""


AnyProblem = Problem[object, object, object, "nn.Module"]


def problem(word: str) -> AnyProblem:
    """Return the problem of a word of params.yaml."""
    found: AnyProblem = import_module(PROBLEMS[word]).PROBLEM
    return found


def problem_of(params: Params, scenario: str) -> AnyProblem:
    """Return the problem that a scenario is of.

    Raises:
        UserError: there is no such scenario.
    """
    return problem(params.scenario(scenario).problem)


def check(params: Params) -> None:
    """Check all that only the problems' own code can tell of params.yaml.

    Raises:
        UserError: one line for the first thing that it does not go with.
    """
    from pipeline.logs.registry import check_formats

    check_formats(params)
    for word in PROBLEMS:
        problem(word).check(params)


def protocol(word: str) -> Callable[[Path, int, bool, Sequence[str], Path], pd.DataFrame]:
    """Return what plays policies under a protocol of others: (log, jobs at most, backfill, policies, out) -> means."""
    run: Callable[[Path, int, bool, Sequence[str], Path], pd.DataFrame] = import_module(PROTOCOLS[word]).run
    return run


def site_rows(
    name: str, log: Path, format: str, trace: "Trace", machines: Sequence[str], params: Params, sure: bool = False
) -> SiteRows:
    """Return the rows of params.yaml that a site's log needs; `machines` are those that a user names, if any."""
    run: Callable[..., SiteRows] = import_module(SITES).site_rows
    return run(name, log, format, trace, machines, params, sure)


def trial(params: Params, site: str, workers: "Executor") -> Trial:
    """Return what every policy made of a site's log."""
    run: Callable[[Params, str, Executor], Trial] = import_module(TRIAL).trial
    return run(params, site, workers)


def scenarios_by_problem(params: Params) -> dict[str, list[str]]:
    """Return the scenarios of each problem, by its word; of some there may be none."""
    found: dict[str, list[str]] = {word: [] for word in PROBLEMS}
    for name, row in params.scenarios.items():
        found[row.problem].append(name)
    return found
