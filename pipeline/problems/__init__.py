"""One package per problem, and the table of parts that stages, commands and the report use.

A part is imported when it is first used, so that a stage imports only what it runs, and DVC knows its dependencies.
A stage gets its `Problem` when params.yaml is read. To the stage, the results of one part (jobs, policies, tasks,
networks) are plain `object`s: it can only pass them to another part of the same problem.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pipeline.core.config import Params
from pipeline.core.schemas import ResultTables
from pipeline.errors import UserError
from pipeline.problems.parts import (
    Algorithms,
    Comparison,
    Drawn,
    Hindsight,
    Learning,
    Planning,
    Scoring,
    Served,
)
from pipeline.progress import ProgressCallback

if TYPE_CHECKING:
    from torch import nn

    from pipeline.interactive.explaining.explain import Explaining
    from pipeline.interactive.live.deciding import Live
    from pipeline.interactive.scheduling.schedule import Scheduling
    from pipeline.interactive.scheduling.user_jobs import JobsInColumns
    from pipeline.interactive.showing.show import Showing

# The only place to register a new problem: its name in params.yaml, and the definition of each part.
PROBLEMS: Mapping[str, Mapping[str, str]] = {
    "pool": {
        "check": "pipeline.problems.pool.heuristics.scores.check",
        "tables": "pipeline.problems.pool.env.tables.TABLES",
        "draw": "pipeline.problems.pool.env.workload.source.draw",
        "scoring": "pipeline.problems.pool.heuristics.scores.scoring",
        "planning": "pipeline.problems.pool.lookahead.naming.planning",
        "learning": "pipeline.problems.pool.agents.learning.LEARNING",
        "algorithms": "pipeline.problems.pool.agents.training.algorithms.ALGORITHMS",
        "hindsight": "pipeline.problems.pool.env.evaluation.hindsight.solve",
        "comparison": "pipeline.problems.pool.comparison.COMPARISON",
        "schedule": "pipeline.interactive.pool.scheduling.SCHEDULING",
        "show": "pipeline.interactive.pool.showing.SHOWING",
        "explain": "pipeline.interactive.pool.explaining.EXPLAINING",
        "live": "pipeline.interactive.pool.live.deciding.LIVE",
        "served": "pipeline.interactive.pool.serving.served",
        "export": "pipeline.interactive.pool.exporting.onnx",
    },
    "machines": {
        "check": "pipeline.problems.machines.heuristics.rules.check_names",
        "tables": "pipeline.problems.machines.env.tables.TABLES",
        "draw": "pipeline.problems.machines.env.workload.source.draw",
        "scoring": "pipeline.problems.machines.heuristics.scoring.scoring",
        "planning": "pipeline.problems.machines.lookahead.plans.planning",
        "learning": "pipeline.problems.machines.agents.learning.LEARNING",
        "algorithms": "pipeline.problems.machines.agents.training.algorithms.ALGORITHMS",
        "hindsight": "pipeline.problems.parts.no_hindsight",
        "comparison": "pipeline.problems.machines.comparison.COMPARISON",
        "schedule": "pipeline.interactive.machines.scheduling.SCHEDULING",
        "show": "pipeline.interactive.machines.showing.SHOWING",
        "explain": "pipeline.interactive.machines.explaining.EXPLAINING",
        "live": "pipeline.interactive.machines.live.deciding.LIVE",
        "served": "pipeline.interactive.machines.serving.served",
        "export": "pipeline.interactive.machines.exporting.onnx",
    },
    "groups": {
        "check": "pipeline.problems.groups.heuristics.names.check_names",
        "tables": "pipeline.problems.groups.env.tables.TABLES",
        "draw": "pipeline.problems.groups.env.workload.source.draw",
        "scoring": "pipeline.problems.groups.heuristics.tuning.scoring",
        "planning": "pipeline.problems.parts.no_planning",
        "learning": "pipeline.problems.groups.agents.learning.LEARNING",
        "algorithms": "pipeline.problems.groups.agents.training.algorithms.ALGORITHMS",
        "hindsight": "pipeline.problems.parts.no_hindsight",
        "comparison": "pipeline.problems.groups.comparison.COMPARISON",
        "schedule": "pipeline.interactive.groups.scheduling.SCHEDULING",
        "show": "pipeline.interactive.groups.showing.SHOWING",
        "explain": "pipeline.interactive.groups.explaining.EXPLAINING",
        "live": "pipeline.interactive.groups.live.LIVE",
        "served": "pipeline.interactive.groups.serving.served",
        "export": "pipeline.interactive.groups.exporting.onnx",
    },
}

# External protocols for evaluating policies: the name in the command `benchmark`, and the module.
PROTOCOLS: Mapping[str, str] = {"rlscheduler": "pipeline.interactive.machines.benchmark"}


class Problem:
    """The parts of one problem, each imported when it is first used."""

    check: Callable[[Params], None]  # raises UserError for rows of params.yaml that the problem's code cannot use
    tables: ResultTables  # for the results of policies
    draw: Callable[[Params, str, ProgressCallback], Drawn[object]]  # draws or cuts all jobsets of a scenario
    scoring: Callable[[Params, str, str | None], Scoring[object, object]]  # on a scenario, for an agent if given
    planning: Planning[object]  # builds a policy that looks ahead, from a row of `plans`
    learning: "Learning[object, object, nn.Module]"
    algorithms: Algorithms
    hindsight: Hindsight
    comparison: Comparison
    schedule: "Scheduling[JobsInColumns]"  # schedules a user's own jobs
    show: "Showing[JobsInColumns]"  # draws jobsets
    explain: "Explaining"
    live: "Live[Any, Any]"  # decides for a live cluster
    served: Callable[[Path], Served]  # stored policy as a function of rows of numbers
    export: Callable[[Path], bytes]  # a model's folder as an ONNX file

    def __init__(self, word: str) -> None:
        self._word = word

    if not TYPE_CHECKING:  # otherwise mypy would accept any name

        def __getattr__(self, part: str) -> object:
            if part not in Problem.__annotations__:
                raise AttributeError(f"no part of a problem: {part}")
            places = PROBLEMS[self._word]
            if part not in places:
                raise UserError(f"problem {self._word}: '{part}' is not available")
            module, _, name = places[part].rpartition(".")
            return getattr(import_module(module), name)


def problem(word: str) -> Problem:
    """Return the problem that has this name in params.yaml."""
    return Problem(word)


def problem_of(params: Params, scenario: str) -> Problem:
    """Return the problem of a scenario; raise UserError if there is no such scenario."""
    return problem(params.scenario(scenario).problem)


def check(params: Params) -> None:
    """Check params.yaml with the problems' own code; raise UserError with one line about the first mistake."""
    from pipeline.core.logs.registry import check_formats

    check_formats(params)
    for word in PROBLEMS:
        problem(word).check(params)


def protocol(word: str) -> Callable[[Path, int, bool, Sequence[str], Path], pd.DataFrame]:
    """Return the function of an external protocol: (log, maximum number of jobs, backfill, policies, out) -> means."""
    run: Callable[[Path, int, bool, Sequence[str], Path], pd.DataFrame] = import_module(PROTOCOLS[word]).run
    return run


def scenarios_by_problem(params: Params) -> dict[str, list[str]]:
    """Return the scenarios of each problem, possibly none, by the problem's name."""
    found: dict[str, list[str]] = {word: [] for word in PROBLEMS}
    for name, row in params.scenarios.items():
        found[row.problem].append(name)
    return found
