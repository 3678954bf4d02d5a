"""All of params.yaml, read and checked."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from pipeline.core.config.evaluation import Evaluation, External, Gate, Site
from pipeline.core.config.groups.learning import DqnRecipe
from pipeline.core.config.groups.scenario import GroupsScenario
from pipeline.core.config.learning import EvolutionRecipe
from pipeline.core.config.machines.learning import MachinesRecipe
from pipeline.core.config.machines.scenario import MachinesScenario
from pipeline.core.config.parsing import parsed, read_text
from pipeline.core.config.pool.heuristics import Hindsight
from pipeline.core.config.pool.learning import Recipe, Transfer
from pipeline.core.config.pool.scenario import Demand, PoolLog, PoolScenario, Synthetic
from pipeline.core.config.problems import CHECKS, Agent, AnyRecipe, AnyScenario, HeuristicKnobs, Plan, check_names
from pipeline.core.config.records import Frozen, Name, Seed, all_errors, first_error, pick
from pipeline.errors import UserError
from pipeline.progress import say

PARAMS_FILE = Path("params.yaml")
LIST_ALL = ": python -m pipeline check --all"
Row = TypeVar("Row", bound=Frozen)


class Params(Frozen):
    """All of params.yaml."""

    seed: Seed  # of everything; each split, load, jobset and episode has a random stream of its own
    # Of torch and numba; results depend on the number, because it determines the order of sums.
    threads: Annotated[int, Field(gt=0, le=1024)]
    device: Literal["auto", "cpu", "cuda"]  # where networks compute; a GPU may give slightly different results
    workload: Annotated[Synthetic | PoolLog, Field(discriminator="name")]  # jobs of pooled clusters
    demands: dict[Name, Demand]  # of jobs; a scenario selects one by name
    # Clusters, their jobs and their loads, by name.
    scenarios: Annotated[dict[Name, Annotated[AnyScenario, Field(discriminator="problem")]], Field(min_length=1)]
    heuristics: HeuristicKnobs  # knobs of heuristics, chosen on validation jobsets
    evaluation: Evaluation  # how intervals are computed
    recipes: dict[Name, AnyRecipe]  # how agents learn, by name
    # One row is one learned scheduler.
    agents: dict[Name, Annotated[Agent, Field(discriminator="problem")]]
    # Agents scored on other scenarios.
    transfers: dict[Name, Transfer] = Field(default_factory=dict, exclude_if=lambda rows: not rows)
    # Policies that look ahead, scored with the others: a heuristic's or an agent's, improved.
    plans: dict[Name, Annotated[Plan, Field(discriminator="problem")]] = Field(
        default_factory=dict, exclude_if=lambda rows: not rows
    )
    # External policies, compared in the same way as agents.
    policies: dict[Name, External] = Field(default_factory=dict, exclude_if=lambda rows: not rows)
    hindsight: Hindsight  # schedules with knowledge of all jobs
    # Conditions for a candidate to become the champion of a scenario.
    gate: Annotated[Gate | None, Field(exclude_if=lambda rules: rules is None)] = None
    # Clusters to advise by replays of their logs, by the name of their scenario.
    sites: dict[Name, Site] = Field(default_factory=dict, exclude_if=lambda rows: not rows)

    def scenario(self, name: str) -> AnyScenario:
        """Return the named scenario of any problem."""
        return pick(self.scenarios, name, "scenario")

    def scenarios_of(self, kind: type[Row]) -> dict[str, Row]:
        """Return the scenarios of one problem, by name."""
        return {name: row for name, row in self.scenarios.items() if isinstance(row, kind)}

    def scenario_of(self, kind: type[Row], name: str) -> Row:
        """Return the named scenario; a UserError if there is none, or it is of another problem."""
        chosen = self.scenario(name)
        if not isinstance(chosen, kind):
            there = ", ".join(sorted(self.scenarios_of(kind))) or "none"
            raise UserError(f"scenario '{name}' is of problem {chosen.problem}; of problem {_word(kind)}: {there}")
        return chosen

    def pool_scenario(self, name: str) -> PoolScenario:
        """Return the named scenario of a pooled cluster, with the capacity of its log if the log has one."""
        chosen = self.scenario_of(PoolScenario, name)
        return chosen.with_log_capacity(self.workload_of(chosen))

    def workload_of(self, scenario: PoolScenario) -> Synthetic | PoolLog:
        """Return the workload of a pooled cluster: its own, or the shared one."""
        return self.workload if scenario.workload is None else scenario.workload

    def machines_scenario(self, name: str) -> MachinesScenario:
        """Return the named scenario of many machines."""
        return self.scenario_of(MachinesScenario, name)

    def groups_scenario(self, name: str) -> GroupsScenario:
        """Return the named scenario of user groups."""
        return self.scenario_of(GroupsScenario, name)

    def agents_of(self, scenario: str) -> list[str]:
        """Return the policies judged on a scenario: its agents, transferred agents, and external policies."""
        own = [name for name, row in self.judged.items() if row.scenario == scenario]
        return own + [row.agent for row in self.transfers.values() if row.scenario == scenario]

    @property
    def judged(self) -> dict[str, Agent | External]:
        """Return agents and external policies, which are compared, gated and reported in the same way."""
        return {**self.agents, **self.policies}

    def agents_with(self, kind: type[Row]) -> dict[str, Row]:
        """Return the agents of one problem, by name."""
        return {name: row for name, row in self.agents.items() if isinstance(row, kind)}

    @property
    def rules(self) -> Gate:
        """Return the rules of the gate; a UserError if none are declared."""
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
        """Return the named external policy."""
        return pick(self.policies, name, "external policy")

    def plan(self, name: str) -> Plan:
        """Return the named plan: a policy that looks ahead."""
        return pick(self.plans, name, "plan")

    def plan_of(self, kind: type[Row], name: str) -> Row:
        """Return the named plan as its problem's type; errors are those of `scenario_of`."""
        return _of(kind, f"plan '{name}'", self.plan(name))

    def recipe_of(self, kind: type[Row], agent: str) -> Row | EvolutionRecipe:
        """Return the learning recipe of the named agent; a UserError if it is of another problem."""
        row = self.agent(agent)
        chosen = self.recipes[row.finetune.recipe]
        if not isinstance(chosen, (kind, EvolutionRecipe)):
            raise UserError(f"agent '{agent}' learns by {chosen.algorithm}: it is of problem {row.problem}")
        return chosen

    def pool_recipe(self, agent: str) -> Recipe | EvolutionRecipe:
        """Return the learning recipe of an agent of a pooled cluster."""
        return self.recipe_of(Recipe, agent)

    def machines_recipe(self, agent: str) -> MachinesRecipe | EvolutionRecipe:
        """Return the learning recipe of an agent of many machines."""
        return self.recipe_of(MachinesRecipe, agent)

    def groups_recipe(self, agent: str) -> DqnRecipe | EvolutionRecipe:
        """Return the learning recipe of a controller."""
        return self.recipe_of(DqnRecipe, agent)


def _of(kind: type[Row], what: str, chosen: Agent | Plan) -> Row:
    if not isinstance(chosen, kind):
        raise UserError(f"{what} is of problem {chosen.problem}, not of {_word(kind)}")
    return chosen


def _word(kind: type[Frozen]) -> str:
    (word,) = get_args(kind.model_fields["problem"].annotation)
    return str(word)


def repository_root() -> Path:
    """Return the base of relative paths in params.yaml: DVC's root, also inside a temporary experiment."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd())


def load_params(path: Path = PARAMS_FILE, every: bool = False) -> Params:
    """Read and check params.yaml; errors are those of `raw_params` and `check_params`."""
    return check_params(raw_params(path), str(path), every)


def raw_params(path: Path = PARAMS_FILE) -> Any:
    """Return the content of params.yaml, unchecked."""
    return parsed(read_text(path), str(path))


def check_params(raw: Any, where: str, every: bool = False) -> Params:
    """Check the content of params.yaml, including references between sections; raise a UserError for the first problem.

    `where` names the file. With `every`, all wrong keys and values are reported, not only the first.
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
    for check in (check_names, *CHECKS):
        check(params, where)
    return params
