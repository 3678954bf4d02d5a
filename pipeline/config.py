"""Params: a frozen, checked view of params.yaml, free of torch.

Unknown keys are refused by name, every number has its type and range, and derived sizes are properties. The defaults
live in params.yaml; only `Swf` has some here, because `{name: swf, path: ...}` is all a user must write to read a log.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline.errors import UserError

PARAMS_FILE = Path("params.yaml")

Row = TypeVar("Row")
Number = TypeVar("Number", int, float)

Positive = Annotated[int, Field(gt=0)]
Units = Annotated[int, Field(gt=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Load = Annotated[int, Field(gt=0, le=1000)]
Rate = Annotated[float, Field(gt=0)]


def _ordered(span: tuple[Number, Number]) -> tuple[Number, Number]:
    if span[0] > span[1]:
        raise ValueError(f"expected [low, high] with low <= high, got {list(span)}")
    return span


def _distinct(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        raise ValueError(f"expected distinct values, got {list(values)}")
    return values


StepRange = Annotated[tuple[Positive, Positive], AfterValidator(_ordered)]
ShareRange = Annotated[tuple[PositiveShare, PositiveShare], AfterValidator(_ordered)]
Loads = Annotated[tuple[Load, ...], Field(min_length=1), AfterValidator(_distinct)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Frozen(BaseModel):
    """A record that cannot change and takes no key it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Synthetic(Frozen):
    """DeepRM's workload (section 4.1): short and long jobs, one dominant resource each."""

    name: Literal["synthetic"]
    short: StepRange
    long: StepRange
    short_share: Share

    @property
    def mean_duration(self) -> float:
        """Expected duration of a job, in steps."""
        return self.short_share * sum(self.short) / 2 + (1 - self.short_share) * sum(self.long) / 2

    @property
    def longest(self) -> int:
        """Longest duration a job can have, in steps."""
        return max(self.short[1], self.long[1])


class Swf(Frozen):
    """A log in the Standard Workload Format, cut into windows of consecutive jobs."""

    name: Literal["swf"]
    path: str
    step_s: Positive = 3600
    capacity: Units | None = 20
    memory_kb: Positive | None = None
    max_steps: Positive = 20
    window: Positive = 100
    train_share: PositiveShare = 0.6
    validation_share: PositiveShare = 0.15

    @model_validator(mode="after")
    def _leaves_a_test_period(self) -> "Swf":
        if self.train_share + self.validation_share >= 1:
            raise ValueError("expected train_share + validation_share below 1, so that a test period is left")
        return self


class Demand(Frozen):
    """Shares of a resource asked for by a job: of its dominant one, and of each other one."""

    dominant: ShareRange
    other: ShareRange


class Streaming(Frozen):
    """Jobs arrive over `steps` steps: several a step (poisson) or at most one (bernoulli)."""

    name: Literal["poisson", "bernoulli"]
    steps: Positive


class AtOnce(Frozen):
    """All `jobs` jobs wait at step 0 (DeepRM_Off)."""

    name: Literal["at_once"]
    jobs: Positive


class Counts(Frozen):
    """Jobsets of each load in each split."""

    train: Positive
    validation: Positive
    test: Positive


class Scenario(Frozen):
    """One scheduling problem: cluster, dynamics and the loads it is met at."""

    resources: Annotated[dict[Name, Units], Field(min_length=1)]
    horizon: Annotated[int, Field(gt=1, le=10_000)]
    slots: Annotated[int, Field(gt=0, le=1000)]
    backlog: Annotated[int, Field(ge=0)]
    place_ahead: bool
    step_limit: Positive
    demand: str
    arrivals: Annotated[Streaming | AtOnce, Field(discriminator="name")]
    loads: Loads
    jobsets: Counts

    def changed(self, capacity: int | None, slots: int | None, horizon: int | None) -> "Scenario":
        """Return the scenario with another cluster; None leaves a number as it is.

        Raises:
            UserError: a number is out of range.
        """
        asked = {"slots": slots, "horizon": horizon}
        update: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        if capacity is not None:
            update["resources"] = dict.fromkeys(self.resources, capacity)
        try:
            return Scenario.model_validate(self.model_dump() | update)
        except ValidationError as error:
            raise UserError(_first_problem(error, "scenario")) from error

    @model_validator(mode="after")
    def _all_jobs_are_seen(self) -> "Scenario":
        if isinstance(self.arrivals, AtOnce) and self.arrivals.jobs > self.slots + self.backlog:
            raise ValueError(f"arrivals.jobs {self.arrivals.jobs} exceed slots {self.slots} + backlog {self.backlog}")
        return self


class HeuristicKnobs(Frozen):
    """Candidates among which validation jobsets choose."""

    tetris_weights: Annotated[tuple[Share, ...], Field(min_length=1)]
    hold_quantiles: Annotated[tuple[Share, ...], Field(min_length=1)]


class Evaluation(Frozen):
    """The paired bootstrap of the comparison."""

    resamples: Annotated[int, Field(ge=100)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)]


class Recipe(Frozen):
    """How REINFORCE learns: everything but the budget."""

    jobsets: Literal["fixed", "fresh"]
    baseline: Literal["decision", "leave_one_out"]
    masked: bool
    play: Literal["greedy", "sampled"]
    optimizer: Literal["rmsprop", "adam"]
    learning_rate: Rate
    gamma: PositiveShare
    entropy: Annotated[float, Field(ge=0)]
    normalise: bool
    clip: Rate | None
    minibatches: Positive


class Mlp(Frozen):
    """DeepRM's network: one hidden layer over the image."""

    name: Literal["mlp"]
    hidden: Positive
    clock: bool


class Cnn(Frozen):
    """DeepRM2's network (Table 1)."""

    name: Literal["cnn"]
    channels: tuple[Positive, Positive]
    hidden: Positive
    clock: bool


class NoPretrain(Frozen):
    """Start from the seeded initial weights."""

    name: Literal["none"]

    @property
    def budget(self) -> int:
        """Updates at most."""
        return 1


class Clone(Frozen):
    """Behaviour cloning of a heuristic, until validation accuracy stops rising."""

    name: Literal["clone"]
    teacher: str
    loads: Loads
    jobsets: Positive
    epochs: Positive
    patience: Positive
    batch: Positive
    learning_rate: Rate
    entropy: Annotated[float, Field(ge=0)]

    @property
    def budget(self) -> int:
        """Updates at most: one an epoch."""
        return self.epochs


class Reinforce(Frozen):
    """Policy gradient: how much of a recipe to run."""

    name: Literal["reinforce"]
    recipe: str
    loads: Loads
    updates: Positive
    jobsets: Positive
    episodes: Annotated[int, Field(ge=2)]
    validate_every: Positive

    @property
    def budget(self) -> int:
        """Updates."""
        return self.updates


class Agent(Frozen):
    """One learned scheduler."""

    scenario: str
    objective: Literal["slowdown", "completion_time", "makespan", "utilisation"]
    network: Annotated[Mlp | Cnn, Field(discriminator="name")]
    pretrain: Annotated[NoPretrain | Clone, Field(discriminator="name")]
    finetune: Reinforce


class ModelCard(Frozen):
    """What a stored network is: all that is needed to rebuild it, and the problem it was trained on."""

    format: Literal[1] = 1
    agent: Name
    scenario: Name
    resources: dict[Name, Units]
    horizon: Positive
    slots: Positive
    backlog: Annotated[int, Field(ge=0)]
    place_ahead: bool
    objective: str
    network: Annotated[Mlp | Cnn, Field(discriminator="name")]
    masked: bool
    play: Literal["greedy", "sampled"]


class Params(Frozen):
    """All of params.yaml."""

    seed: Annotated[int, Field(ge=0)]
    threads: Positive
    workload: Annotated[Synthetic | Swf, Field(discriminator="name")]
    demands: dict[Name, Demand]
    scenarios: Annotated[dict[Name, Scenario], Field(min_length=1)]
    heuristics: HeuristicKnobs
    evaluation: Evaluation
    recipes: dict[Name, Recipe]
    agents: Annotated[dict[Name, Agent], Field(min_length=1)]

    def scenario(self, name: str) -> Scenario:
        """Return the named scenario, with the log's own capacity where the workload is one that sets it."""
        chosen = pick(self.scenarios, name, "scenario")
        if isinstance(self.workload, Swf) and self.workload.capacity is not None:
            units = dict.fromkeys(chosen.resources, self.workload.capacity)
            return chosen.model_copy(update={"resources": units})
        return chosen

    def agent(self, name: str) -> Agent:
        """Return the named agent."""
        return pick(self.agents, name, "agent")

    def recipe(self, agent: str) -> Recipe:
        """Return the learning recipe of the named agent."""
        return self.recipes[self.agent(agent).finetune.recipe]


def pick(rows: dict[str, Row], name: str, kind: str) -> Row:
    """Return rows[name], or say which names there are.

    Raises:
        UserError: there is no such name.
    """
    if name not in rows:
        raise UserError(f"unknown {kind} '{name}'; there are: {', '.join(sorted(rows))}")
    return rows[name]


def repository_root() -> Path:
    """Return the root that relative paths of params.yaml start at: DVC's, also inside a temporary experiment."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd())


def load_params(path: Path = PARAMS_FILE) -> Params:
    """Read and check params.yaml.

    Raises:
        UserError: the file is missing, is not YAML, or holds a key or value that it should not.
    """
    try:
        raw = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); run this at the repository's root") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return check_params(raw, str(path))


def check_params(raw: Any, where: str) -> Params:
    """Check a mapping as params.yaml holds it, names across sections included.

    Raises:
        UserError: one line for the first problem, with its place.
    """
    try:
        params = Params.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise UserError(_first_problem(error, where)) from error
    for name, scenario in params.scenarios.items():
        _must_know(where, f"scenarios.{name}.demand", scenario.demand, params.demands)
    for name, agent in params.agents.items():
        _must_know(where, f"agents.{name}.scenario", agent.scenario, params.scenarios)
        _must_know(where, f"agents.{name}.finetune.recipe", agent.finetune.recipe, params.recipes)
        _has_its_jobsets(where, name, agent, params)
    return params


def _has_its_jobsets(where: str, name: str, agent: Agent, params: Params) -> None:
    """Refuse training on loads or jobsets that `generate` does not draw; a log has a load of its own."""
    if isinstance(params.workload, Swf):
        return
    scenario = params.scenarios[agent.scenario]
    fixed = params.recipes[agent.finetune.recipe].jobsets == "fixed"
    for part, chosen in (("pretrain", agent.pretrain), ("finetune", agent.finetune)):
        if isinstance(chosen, NoPretrain):
            continue
        place = f"{where}: agents.{name}.{part}"
        for load in chosen.loads:
            if load not in scenario.loads:
                raise UserError(f"{place}.loads: {load} is not a load of scenario '{agent.scenario}'")
        each = -(-chosen.jobsets // len(chosen.loads))
        if (part == "pretrain" or fixed) and each > scenario.jobsets.train:
            raise UserError(
                f"{place}.jobsets: {chosen.jobsets} need {each} training jobsets of each load; scenario "
                f"'{agent.scenario}' has {scenario.jobsets.train}"
            )


def _must_know(where: str, place: str, name: str, rows: dict[str, Any]) -> None:
    if name not in rows:
        raise UserError(f"{where}: {place}: unknown '{name}'; there are: {', '.join(sorted(rows))}")


def _first_problem(error: ValidationError, where: str) -> str:
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"]) or "top level"
    found = "" if problem["type"] == "missing" else f", got {problem['input']!r}"
    said = {"extra_forbidden": "unknown key", "missing": "missing key"}.get(problem["type"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {place}: {said or problem['msg']}{'' if said else found}{more}"
