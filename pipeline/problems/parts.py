"""The parts of a problem, and what is asked of them: records without behaviour, shared by all problems."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, Protocol, TypeVar

import pandas as pd
import pandera.pandas as pa

from pipeline.comparing.comparing import Metrics
from pipeline.config import Card, FinetuneConfig, Params, PretrainConfig
from pipeline.core import FloatArray, IntArray, Json
from pipeline.errors import UserError
from pipeline.learning.update import Update
from pipeline.progress import ShareCallback
from pipeline.simulation.results import Results
from pipeline.storage import Chosen, Model

if TYPE_CHECKING:
    from torch import nn

Jobs = TypeVar("Jobs")  # of one episode
Policy = TypeVar("Policy")  # as it is scored
Policy_co = TypeVar("Policy_co", covariant=True)
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
    single: bool = False  # is it one for all loads, as policies do not know the load?


class Scoring(NamedTuple, Generic[Jobs, Policy]):
    """How policies are scored on the jobsets of one scenario."""

    read: Callable[[str], JobSets[Jobs]]  # jobsets of a split
    score: Score[Jobs, Policy]
    tune: Callable[[Examine[Policy], JobSets[Jobs]], dict[str, float]]  # (examine, training jobsets) -> knobs
    heuristics: Callable[[Mapping[str, float]], Mapping[str, Policy]]  # all of them, given those knobs
    best: Callable[[Mapping[str, Results]], Best]
    scale: float | None = None  # time that features show as one half; None: a quarter of the horizon


# Ways to learn by their params.yaml word: (network, task, part, memory) -> updates. The network is changed in place,
# the memory survives a kill, what an update draws depends on its number alone.
Algorithms = Mapping[str, Callable[..., Iterator[Update]]]


class Learning(NamedTuple, Generic[Policy_co, Task, Network]):
    """How agents of a problem learn."""

    task: Callable[[Params, str, Part], Task]  # (params, agent, part)
    untrained: Callable[[Params, str, Task], Network]
    stored: Callable[[Params, str, str], Network]  # (params, agent, which)
    policies: Callable[[Params, str], Mapping[str, Policy_co]]  # (params, agent) -> what is scored, by its name
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


Planning = Callable[[Params, str], Policy]  # (params, plan) -> the policy that looks ahead


def no_planning(params: Params, plan: str) -> NoReturn:
    """Refuse a plan of a problem whose policies do not look ahead in its own simulator.

    Raises:
        UserError: always.
    """
    found = params.scenario(params.plan(plan).scenario).problem
    raise UserError(f"plan '{plan}': expected a scenario of problem pool or machines, found {found}")


class Evidence(NamedTuple):
    """What a comparison says and shows of the scenarios of one problem, beside what it does of all."""

    tables: Mapping[str, Table]  # by the name of their file in reports/
    figures: Mapping[str, bytes]  # PNG
    sections: Sequence[str] = ()  # Markdown, of comparison.md
    findings: Sequence[str] = ()  # lines for people
    overloads: Mapping[str, Metrics] = MappingProxyType({})  # key metrics of scenarios not judged by slowdown


class Validated(NamedTuple):
    """What the learning curve of an agent is drawn beside."""

    levels: Mapping[str, float]  # of heuristics, on the same scale; none where it has no such
    label: str  # of the scale


class Tested(NamedTuple):
    """The test jobsets of a scenario, as a comparison must know them."""

    jobs: pd.DataFrame  # as they are stored
    capacity: Mapping[str, float]  # of each resource, all there is, in the units of the jobs' demands
    span: float | None = None  # time in which the jobs of a jobset arrive; None: what they tell themselves
    same_windows: bool = False  # are those of all loads cut from the same windows of a log?


class Comparison(NamedTuple):
    """What is compared on scenarios of a problem beside slowdown."""

    evidence: Callable[[Params, Sequence[str]], Evidence]  # (params, the problem's scenarios)
    validated: Callable[[Params, str, Chosen], Validated]  # (params, agent, what validation chose)
    tested: Callable[[Params, str], Tested]  # (params, scenario)
    references: Collection[str] = ()  # heuristics that are compared with, and never advised: chance, foresight


class SiteRows(NamedTuple):
    """What params.yaml needs to advise a site."""

    scenario: Mapping[str, Json]
    agent: str  # its name
    agent_row: Mapping[str, Json]
    site: Mapping[str, Json]
    fewer: Mapping[str, Json]  # of the gate's section; empty where its rules are met without
    windows: int  # independent ones of the test period


class Trial(NamedTuple):
    """A site's log under every policy."""

    played: pd.DataFrame  # TRIAL
    limits: bool  # does the log say which run times users asked for?


Answering = Callable[[FloatArray, FloatArray], FloatArray | IntArray]  # (rows, uniform draws) -> answers


class Served(NamedTuple):
    """A stored policy, asked with rows of numbers: what they look like, and how it is loaded, which takes torch."""

    width: int  # of a row
    answer: int | None  # width of an answer; None: it is one number, an action
    load: Callable[[], Answering]  # once; asked again, it returns the same

    def act(self, rows: FloatArray, draws: FloatArray) -> FloatArray | IntArray:
        """Answer rows; models that were logged long ago ask so, by their own copy of `policy_model`."""
        return self.load()(rows, draws)
