"""One package per problem, behind one typed seam: what stages, commands and the report may ask of any of them.

A problem's `problem.py` is nothing but assembly: each of its parts is imported when it is first asked for, so that a
stage imports no more than it runs, and DVC knows what that is. Jobs, policies, tasks and networks of a problem are type
variables here. Whoever holds a problem that is only known when params.yaml is read holds `AnyProblem`: what a part gave
him, he may hand to another part of the same problem, and can do nothing else with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.results import Results
from pipeline.config import Card, FinetuneConfig, Params, PretrainConfig
from pipeline.core import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.learning.update import Update
from pipeline.progress import ProgressCallback, ShareCallback
from pipeline.schemas import ResultTables
from pipeline.storage import Chosen, Model

if TYPE_CHECKING:
    from torch import nn

# The one place where a new problem is entered: params.yaml's word, and the module that assembles it.
PROBLEMS: Mapping[str, str] = {
    "pool": "pipeline.problems.pool.problem",
    "machines": "pipeline.problems.machines.problem",
    "groups": "pipeline.problems.groups.problem",
}

# Protocols of others that policies can be played under: the word of `benchmark`, and the module that does it.
PROTOCOLS: Mapping[str, str] = {"rlscheduler": "pipeline.problems.machines.benchmark"}

Jobs = TypeVar("Jobs")  # of one episode
Policy = TypeVar("Policy")  # as it is scored
Task = TypeVar("Task")  # what a learner is given
Network = TypeVar("Network", bound="nn.Module")

Part = PretrainConfig | FinetuneConfig
JobSets = Mapping[int, Sequence[Jobs]]  # by load, in percent
Table = tuple[pd.DataFrame, pa.DataFrameSchema]


class Drawn(NamedTuple, Generic[Jobs]):
    """All jobsets of a scenario, and what to do with them."""

    splits: Mapping[str, JobSets[Jobs]]
    notes: Sequence[str]  # for people
    write: Callable[[Path], None]  # into a folder


Jobs_contra = TypeVar("Jobs_contra", contravariant=True)
Policy_contra = TypeVar("Policy_contra", contravariant=True)


class Score(Protocol[Jobs_contra, Policy_contra]):
    """Let policies play jobsets."""

    def __call__(
        self, policies: Mapping[str, Policy_contra], jobsets: JobSets[Jobs_contra], on_progress: ShareCallback = ...
    ) -> dict[str, Results]:
        """Return the results of each policy, by its name."""


Examine = Callable[[Mapping[str, Policy]], dict[str, Results]]  # lets policies play the validation jobsets


class Best(NamedTuple):
    """The best heuristic at each load."""

    slowdown: dict[int, str]
    delay: Mapping[int, str] = MappingProxyType({})  # by mean waiting time, where that is compared


class Scoring(NamedTuple, Generic[Jobs, Policy]):
    """How policies are scored on the jobsets of one scenario."""

    read: Callable[[str], JobSets[Jobs]]  # jobsets of a split
    score: Score[Jobs, Policy]
    tune: Callable[[Examine[Policy], JobSets[Jobs]], dict[str, float]]  # (examine, training jobsets) -> knobs
    heuristics: Callable[[Mapping[str, float]], Mapping[str, Policy]]  # all of them, given those knobs
    best: Callable[[Mapping[str, Results]], Best]


Algorithms = Mapping[str, Callable[..., Iterator[Update]]]  # word -> (network, task, part, memory) -> updates


class Learning(NamedTuple, Generic[Policy, Task, Network]):
    """How agents of a problem learn."""

    task: Callable[[Params, str, Part], Task]  # (params, agent, part)
    untrained: Callable[[Params, str, Task], Network]
    stored: Callable[[Params, str, str], Network]  # (params, agent, which)
    policies: Callable[[Params, str], Mapping[str, Policy]]  # (params, agent) -> what is scored, by its name in tables
    validate: Callable[[Network, Task], Callable[[], float]]  # how good it is on validation jobsets; less is better
    model: Callable[[Params, str, Network], Model[Card]]  # what to store
    examined: Callable[[Params, str], Mapping[str, pd.DataFrame]]  # (params, agent) -> more tables, by name


STORED = {"pretrained": "{agent}_pretrained", "policy": "{agent}"}  # stored network: its policy's name in the tables


def both(agent: str, read: Callable[[str], Policy]) -> dict[str, Policy]:
    """Return an agent's policies, as pretrained and as finetuned, by their names in the tables."""
    return {title.format(agent=agent): read(which) for which, title in STORED.items()}


def nothing_more(params: Params, agent: str) -> dict[str, pd.DataFrame]:
    """Return no more tables."""
    return {}


Hindsight = Callable[[Params, str], pd.DataFrame]  # (params, scenario) -> HINDSIGHT


def no_hindsight(params: Params, scenario: str) -> pd.DataFrame:
    """Refuse a scenario of a problem that is not solved in hindsight.

    Raises:
        UserError: always.
    """
    raise UserError(f"scenario '{scenario}': problem {params.scenario(scenario).problem} is not solved in hindsight")


class Evidence(NamedTuple):
    """What a comparison says and shows of the scenarios of one problem, beside what it does of all."""

    tables: Mapping[str, Table]  # by the name of their file in reports/
    figures: Mapping[str, bytes]  # PNG
    sections: Sequence[str] = ()  # Markdown, of comparison.md
    findings: Sequence[str] = ()  # lines for people


class Validated(NamedTuple):
    """What the learning curve of an agent is drawn beside."""

    levels: Mapping[str, float]  # of heuristics, on the same scale; none where it has no such
    label: str  # of the scale


class Comparison(NamedTuple):
    """What is compared on scenarios of a problem beside slowdown."""

    evidence: Callable[[Params, Sequence[str]], Evidence]  # (params, the problem's scenarios)
    validated: Callable[[Params, str, Chosen], Validated]  # (params, agent, what validation chose)


class ScheduleRequest(NamedTuple):
    """A user's own jobs, and who is to schedule them."""

    jobs: Path  # a job table or a log
    scenario: str
    policy: str  # a heuristic by name, a model directory, or <agent>_tree
    out: Path
    capacity: int | None = None  # units of each resource, slots, horizon: instead of the scenario's
    slots: int | None = None
    horizon: int | None = None
    samples: int = 0  # schedules that are drawn with all jobs known
    tries: int = 0  # schedules that are searched with all jobs known


class ShowRequest(NamedTuple):
    """Which jobset to draw, and which of its time."""

    jobs: Path | None  # a job table or log; None: the test jobsets of the scenario
    scenario: str
    load: int | None = None
    jobset: str | None = None
    begin: int | None = None
    end: int | None = None


class Picture(NamedTuple):
    """A drawn jobset, and what can be said of it."""

    content: bytes  # PNG
    title: str
    halves: list[str]  # what is written over each half


class ExplainRequest(NamedTuple):
    """Which agent to explain, and how much of it."""

    agent: str
    jobsets: int  # of each load and split, at most
    leaves: int  # of the tree, at most


class Use(NamedTuple):
    """What people do with policies on their own jobs."""

    schedule: Callable[[Params, ScheduleRequest], None]
    draw: Callable[[Params, ShowRequest, Sequence[str], Sequence[str]], Picture]  # (..., policies, their names or none)
    explain: Callable[[Params, ExplainRequest], None]


class Served(NamedTuple):
    """A stored policy, asked with rows of numbers."""

    width: int  # of a row
    answer: int | None  # width of an answer; None: it is one number, an action
    act: Callable[[FloatArray, FloatArray], FloatArray | IntArray]  # (rows, uniform draws) -> answers


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


def scenarios_by_problem(params: Params) -> dict[str, list[str]]:
    """Return the scenarios of each problem, by its word; of some there may be none."""
    found: dict[str, list[str]] = {word: [] for word in PROBLEMS}
    for name, row in params.scenarios.items():
        found[row.problem].append(name)
    return found
