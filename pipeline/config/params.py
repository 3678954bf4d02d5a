"""Params: all of params.yaml, read and checked, names across sections included."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from pipeline.config.checks import check_names
from pipeline.config.external import External, check_policies
from pipeline.config.gate import Gate, check_gate
from pipeline.config.groups.learning import DqnRecipe
from pipeline.config.groups.scenario import GroupsScenario
from pipeline.config.learning import EvolutionRecipe
from pipeline.config.machines.learning import MachinesRecipe
from pipeline.config.machines.scenario import MachinesScenario
from pipeline.config.parsing import parsed
from pipeline.config.pool.hindsight import Hindsight
from pipeline.config.pool.learning import Recipe, Transfer
from pipeline.config.pool.scenario import Demand, PoolLog, PoolScenario, Synthetic
from pipeline.config.problems import CHECKS, Agent, AnyRecipe, AnyScenario, HeuristicKnobs, Plan
from pipeline.config.records import Frozen, Name, Seed, all_errors, first_error, pick
from pipeline.config.site import Site, check_sites
from pipeline.errors import UserError
from pipeline.progress import say

PARAMS_FILE = Path("params.yaml")
LIST_ALL = ": python -m pipeline check --all"
Row = TypeVar("Row", bound=Frozen)


class Evaluation(Frozen):
    """The paired bootstrap of the comparison."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000)]  # of the paired bootstrap
    confidence: Annotated[float, Field(gt=0.5, lt=1)]  # of the intervals, 0.95 for 95 %


class Params(Frozen):
    """All of params.yaml."""

    seed: Seed  # of everything; each split, load, jobset and episode draws from its own stream
    # Of torch and numba; part of the result, for sums are taken in another order.
    threads: Annotated[int, Field(gt=0, le=1024)]
    device: Literal["auto", "cpu", "cuda"]  # where networks compute; on a GPU the same bytes are not promised
    workload: Annotated[Synthetic | PoolLog, Field(discriminator="name")]  # where jobs of pooled clusters come from
    demands: dict[Name, Demand]  # what jobs ask for; a scenario picks one by name
    # Clusters, their jobs and their loads, by name.
    scenarios: Annotated[dict[Name, Annotated[AnyScenario, Field(discriminator="problem")]], Field(min_length=1)]
    heuristics: HeuristicKnobs  # what validation jobsets choose among for heuristics
    evaluation: Evaluation  # how intervals are computed
    recipes: dict[Name, AnyRecipe]  # how agents learn, by name
    # One row is one learned scheduler.
    agents: dict[Name, Annotated[Agent, Field(discriminator="problem")]]
    # Agents scored on other scenarios.
    transfers: dict[Name, Transfer] = Field(default_factory=dict, exclude_if=lambda rows: not rows)
    # Policies that look ahead, scored beside the others: a heuristic's or an agent's, improved.
    plans: dict[Name, Annotated[Plan, Field(discriminator="problem")]] = Field(
        default_factory=dict, exclude_if=lambda rows: not rows
    )
    # Policies that were made elsewhere, compared as agents are.
    policies: dict[Name, External] = Field(default_factory=dict, exclude_if=lambda rows: not rows)
    hindsight: Hindsight  # schedules that know all jobs beforehand
    # What a candidate must show to become the champion of a scenario.
    gate: Annotated[Gate | None, Field(exclude_if=lambda rules: rules is None)] = None
    # Clusters whose logs are replayed to advise them, by their scenarios' names.
    sites: dict[Name, Site] = Field(default_factory=dict, exclude_if=lambda rows: not rows)

    def scenario(self, name: str) -> AnyScenario:
        """Return the named scenario, whatever its problem."""
        return pick(self.scenarios, name, "scenario")

    def scenarios_of(self, kind: type[Row]) -> dict[str, Row]:
        """Return the scenarios of one problem, by name."""
        return {name: row for name, row in self.scenarios.items() if isinstance(row, kind)}

    def scenario_of(self, kind: type[Row], name: str) -> Row:
        """Return the named scenario as one of its problem.

        Raises:
            UserError: there is none, or it is of another problem.
        """
        chosen = self.scenario(name)
        if not isinstance(chosen, kind):
            there = ", ".join(sorted(self.scenarios_of(kind))) or "none"
            raise UserError(f"scenario '{name}' is of problem {chosen.problem}; of problem {_word(kind)}: {there}")
        return chosen

    @property
    def pool_scenarios(self) -> dict[str, PoolScenario]:
        """Return the scenarios of pooled clusters, by name."""
        return self.scenarios_of(PoolScenario)

    @property
    def machines_scenarios(self) -> dict[str, MachinesScenario]:
        """Return the scenarios of many machines, by name."""
        return self.scenarios_of(MachinesScenario)

    @property
    def groups_scenarios(self) -> dict[str, GroupsScenario]:
        """Return the scenarios of user groups, by name."""
        return self.scenarios_of(GroupsScenario)

    def pool_scenario(self, name: str) -> PoolScenario:
        """Return the named scenario of a pooled cluster, with the log's own capacity where a log sets it."""
        chosen = self.scenario_of(PoolScenario, name)
        return chosen.with_log_capacity(self.workload_of(chosen))

    def workload_of(self, scenario: PoolScenario) -> Synthetic | PoolLog:
        """Return where the jobs of a pooled cluster come from: its own recipe, or what all others share."""
        return self.workload if scenario.workload is None else scenario.workload

    def machines_scenario(self, name: str) -> MachinesScenario:
        """Return the named scenario of many machines."""
        return self.scenario_of(MachinesScenario, name)

    def groups_scenario(self, name: str) -> GroupsScenario:
        """Return the named scenario of user groups."""
        return self.scenario_of(GroupsScenario, name)

    def agents_of(self, scenario: str) -> list[str]:
        """Return who is judged on a scenario: its agents, those carried over to it, and policies made elsewhere."""
        own = [name for name, row in self.judged.items() if row.scenario == scenario]
        return own + [row.agent for row in self.transfers.values() if row.scenario == scenario]

    @property
    def judged(self) -> dict[str, Agent | External]:
        """Return agents and policies that were made elsewhere: what is compared, gated and reported alike."""
        return {**self.agents, **self.policies}

    def agents_with(self, kind: type[Row]) -> dict[str, Row]:
        """Return the agents of one problem, by name."""
        return {name: row for name, row in self.agents.items() if isinstance(row, kind)}

    @property
    def rules(self) -> Gate:
        """Return the rules of the gate.

        Raises:
            UserError: none are declared.
        """
        if self.gate is None:
            raise UserError("params.yaml: gate: missing key: rules must be declared before a champion can be judged")
        return self.gate

    def agent(self, name: str) -> Agent:
        """Return the named agent."""
        return pick(self.agents, name, "agent")

    def agent_of(self, kind: type[Row], name: str) -> Row:
        """Return the named agent as one of its problem; errors are those of `scenario_of`."""
        return _of(kind, f"agent '{name}'", self.agent(name))

    def transfer(self, name: str) -> Transfer:
        """Return the named transfer."""
        return pick(self.transfers, name, "transfer")

    def policy(self, name: str) -> External:
        """Return the named policy that was made elsewhere."""
        return pick(self.policies, name, "external policy")

    def plan(self, name: str) -> Plan:
        """Return the named policy that looks ahead."""
        return pick(self.plans, name, "plan")

    def plan_of(self, kind: type[Row], name: str) -> Row:
        """Return the named policy that looks ahead as one of its problem; errors are those of `scenario_of`."""
        return _of(kind, f"plan '{name}'", self.plan(name))

    def recipe_of(self, kind: type[Row], agent: str) -> Row:
        """Return the learning recipe of the named agent, as one of its problem.

        Raises:
            UserError: it is of another problem.
        """
        row = self.agent(agent)
        chosen = self.recipes[row.finetune.recipe]
        if not isinstance(chosen, kind):
            raise UserError(f"agent '{agent}' learns by {chosen.algorithm}: it is of problem {row.problem}")
        return chosen

    def pool_recipe(self, agent: str) -> Recipe | EvolutionRecipe:
        """Return the learning recipe of an agent of a pooled cluster."""
        return self._evolution(agent) or self.recipe_of(Recipe, agent)

    def machines_recipe(self, agent: str) -> MachinesRecipe | EvolutionRecipe:
        """Return the learning recipe of an agent of many machines."""
        return self._evolution(agent) or self.recipe_of(MachinesRecipe, agent)

    def groups_recipe(self, agent: str) -> DqnRecipe | EvolutionRecipe:
        """Return the learning recipe of a controller."""
        return self._evolution(agent) or self.recipe_of(DqnRecipe, agent)

    def _evolution(self, agent: str) -> EvolutionRecipe | None:
        chosen = self.recipes[self.agent(agent).finetune.recipe]
        return chosen if isinstance(chosen, EvolutionRecipe) else None


def _of(kind: type[Row], what: str, chosen: Agent | Plan) -> Row:
    if not isinstance(chosen, kind):
        raise UserError(f"{what} is of problem {chosen.problem}, not of {_word(kind)}")
    return chosen


def _word(kind: type[Frozen]) -> str:
    """Return the word of the problem whose rows these are."""
    (word,) = get_args(kind.model_fields["problem"].annotation)
    return str(word)


def repository_root() -> Path:
    """Return the root that relative paths of params.yaml start at: DVC's, also inside a temporary experiment."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd())


def load_params(path: Path = PARAMS_FILE, every: bool = False) -> Params:
    """Read and check params.yaml.

    Raises:
        UserError: the file is missing, is not YAML, or holds a key or value that it should not.
    """
    return check_params(raw_params(path), str(path), every)


def raw_params(path: Path = PARAMS_FILE) -> Any:
    """Return params.yaml as it is written."""
    try:
        return parsed(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); run this at the repository's root") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x}") from error


def check_params(raw: Any, where: str, every: bool = False) -> Params:
    """Check a mapping as params.yaml holds it, names across sections included.

    Args:
        raw: what the file holds.
        where: the file.
        every: say all wrong keys and values, not the first alone.

    Raises:
        UserError: one line for the first problem, with its place.
    """
    if not isinstance(raw, Mapping):
        found = {type(None): "nothing", list: "a list"}.get(type(raw), repr(raw)[:40])
        raise UserError(f"{where}: expected a mapping of keys to values, found {found}")
    try:
        text = json.dumps(raw, default=str)
    except TypeError as error:
        raise UserError(f"{where}: expected words as keys, found a key that is a list, a mapping or a date") from error
    try:
        params = Params.model_validate_json(text, strict=True)
    except ValidationError as error:
        *before, last = all_errors(error, raw, where) if every else [first_error(error, raw, where, LIST_ALL)]
        for line in before:
            say(f"error: {line}")
        raise UserError(last) from error
    check_names(params, where)
    check_policies(params, where)
    check_sites(params, where)
    check_gate(params, where)
    for check in CHECKS:
        check(params, where)
    return params
