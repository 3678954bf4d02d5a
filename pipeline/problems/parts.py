"""Types of the parts of a problem: records without behaviour, shared by all problems."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, Protocol, TypeVar

import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.comparing import Metrics
from pipeline.core.config import Card, FinetuneConfig, Params, PretrainConfig
from pipeline.core.storage import Chosen, Model
from pipeline.core.types import FloatArray, IntArray
from pipeline.errors import UserError
from pipeline.learning.update import Update
from pipeline.progress import ShareCallback
from pipeline.simulation.results import Results

if TYPE_CHECKING:
    from torch import nn

Jobs = TypeVar("Jobs")  # of one episode
Policy = TypeVar("Policy")  # ready to be scored
Policy_co = TypeVar("Policy_co", covariant=True)
Task = TypeVar("Task")  # of a learner
Network = TypeVar("Network", bound="nn.Module")

Part = PretrainConfig | FinetuneConfig
JobSets = Mapping[int, Sequence[Jobs]]  # by load, in percent
Table = tuple[pd.DataFrame, pa.DataFrameSchema]


class Drawn(NamedTuple, Generic[Jobs]):
    """All jobsets of a scenario."""

    splits: Mapping[str, JobSets[Jobs]]
    notes: Sequence[str]  # for users to read
    write: Callable[[Path], None]  # into a folder


Jobs_contra = TypeVar("Jobs_contra", contravariant=True)
Policy_contra = TypeVar("Policy_contra", contravariant=True)


class Score(Protocol[Jobs_contra, Policy_contra]):
    """Function that has policies play jobsets."""

    def __call__(
        self, policies: Mapping[str, Policy_contra], jobsets: JobSets[Jobs_contra], on_progress: ShareCallback = ...
    ) -> dict[str, Results]:
        """Return the results of each policy, by its name."""


Examine = Callable[[Mapping[str, Policy]], dict[str, Results]]  # has policies play the validation jobsets


class Best(NamedTuple):
    """The best heuristic at each load."""

    slowdown: dict[int, str]
    delay: Mapping[int, str] = MappingProxyType({})  # the same by mean waiting time, where that is compared
    single: bool = False  # is it the same for all loads, because policies do not know the load?


class Scoring(NamedTuple, Generic[Jobs, Policy]):
    """Functions that score policies on the jobsets of one scenario."""

    read: Callable[[str], JobSets[Jobs]]  # jobsets of a split
    score: Score[Jobs, Policy]
    tune: Callable[[Examine[Policy], JobSets[Jobs]], dict[str, float]]  # (examine, training jobsets) -> knobs
    heuristics: Callable[[Mapping[str, float]], Mapping[str, Policy]]  # all heuristics, given those knobs
    best: Callable[[Mapping[str, Results]], Best]
    scale: float | None = None  # time that maps to one half in features; None: a quarter of the horizon


# Algorithms by their name in params.yaml: (network, task, part, memory) -> updates. The network changes in place, the
# memory survives a killed process, and the random draws of an update depend only on its number.
Algorithms = Mapping[str, Callable[..., Iterator[Update]]]


class Learning(NamedTuple, Generic[Policy_co, Task, Network]):
    """Functions for the agents of a problem."""

    task: Callable[[Params, str, Part], Task]  # (params, agent, part)
    untrained: Callable[[Params, str, Task], Network]
    stored: Callable[[Params, str, str], Network]  # (params, agent, a key of STORED)
    policies: Callable[[Params, str], Mapping[str, Policy_co]]  # (params, agent) -> scored policies, by name
    validate: Callable[[Network, Task], Callable[[], float]]  # function for the cost on validation jobsets
    model: Callable[[Params, str, Network], Model[Card]]  # the network with its card, for storage
    examined: Callable[[Params, str], Mapping[str, pd.DataFrame]]  # (params, agent) -> additional tables, by name


STORED = {"pretrained": "{agent}_pretrained", "policy": "{agent}"}  # stored network -> its policy's name in the tables


def both(agent: str, read: Callable[[str], Policy]) -> dict[str, Policy]:
    """Return an agent's pretrained and finetuned policies by their names in the tables."""
    return {title.format(agent=agent): read(which) for which, title in STORED.items()}


def no_extra_tables(params: Params, agent: str) -> dict[str, pd.DataFrame]:
    """Return no additional tables."""
    return {}


Hindsight = Callable[[Params, str], pd.DataFrame]  # (params, scenario) -> the table HINDSIGHT


def no_hindsight(params: Params, scenario: str) -> pd.DataFrame:
    """Raise UserError: scenarios of this problem are not solved in hindsight."""
    raise UserError(f"scenario '{scenario}': problem {params.scenario(scenario).problem} is not solved in hindsight")


Planning = Callable[[Params, str], Policy]  # (params, plan) -> the policy that looks ahead


def no_planning(params: Params, plan: str) -> NoReturn:
    """Raise UserError: policies of this problem do not look ahead in its simulator."""
    found = params.scenario(params.plan(plan).scenario).problem
    raise UserError(f"plan '{plan}': expected a scenario of problem pool or machines, found {found}")


class Evidence(NamedTuple):
    """Results of a comparison for the scenarios of one problem, in addition to the general ones."""

    tables: Mapping[str, Table]  # by file name in reports/
    figures: Mapping[str, bytes]  # PNG
    sections: Sequence[str] = ()  # Markdown, of comparison.md
    findings: Sequence[str] = ()  # lines for users to read
    overloads: Mapping[str, Metrics] = MappingProxyType({})  # key metrics of scenarios not judged by slowdown


class Validated(NamedTuple):
    """Reference levels for the learning curve of an agent, and the label of its scale."""

    levels: Mapping[str, float]  # by heuristic, on the scale of the curve; may be empty
    label: str  # text at the axis


def validation_label(objective: str, time: str) -> str:
    """Return the axis label of an objective's mean on validation jobsets; `time` is the problem's unit of time."""
    unit = "ratio" if objective.endswith(("slowdown", "utilisation")) else time
    return f"Mean {objective.replace('_', ' ')} on validation jobsets ({unit})"


class Tested(NamedTuple):
    """The test jobsets of a scenario for a comparison."""

    jobs: pd.DataFrame  # the stored table
    capacity: Mapping[str, float]  # of each resource, in the units of the jobs' demands
    span: float | None = None  # time over which the jobs of a jobset arrive; None: derived from the jobs
    same_windows: bool = False  # are the jobsets of all loads cut from the same windows of a log?


class Comparison(NamedTuple):
    """Comparison on the scenarios of a problem by more than slowdown."""

    evidence: Callable[[Params, Sequence[str]], Evidence]  # (params, the problem's scenarios)
    validated: Callable[[Params, str, Chosen], Validated]  # (params, agent, choice on validation jobsets)
    tested: Callable[[Params, str], Tested]  # (params, scenario)
    references: Collection[str] = ()  # heuristics that are compared but never advised: chance, foresight


Answering = Callable[[FloatArray, FloatArray], FloatArray | IntArray]  # (rows, uniform draws) -> answers


class Served(NamedTuple):
    """A stored policy as a function of rows of numbers: their layout, and its loader, which needs torch."""

    width: int  # numbers in a row
    answer: int | None  # width of an answer; None: one number, an action
    load: Callable[[], Answering]  # cached

    def act(self, rows: FloatArray, draws: FloatArray) -> FloatArray | IntArray:
        """Answer rows; old logged models call it from their own copy of `policy_model`."""
        return self.load()(rows, draws)
