"""Params: all of params.yaml, read and checked, names across sections included."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pipeline.config.checks import check_agent, check_transfers, must_know
from pipeline.config.events import MachinesScenario
from pipeline.config.groups import DqnRecipe, GroupsScenario
from pipeline.config.hindsight import Hindsight, check_hindsight
from pipeline.config.learning import Agent, AnyRecipe, Evaluation, HeuristicKnobs, MachinesRecipe, Recipe
from pipeline.config.mixture import Transfer
from pipeline.config.problem import Demand, PoolLog, PoolScenario, Synthetic
from pipeline.config.records import Frozen, Name, Seed, first_problem, pick
from pipeline.errors import UserError

PARAMS_FILE = Path("params.yaml")
AnyScenario = Annotated[PoolScenario | MachinesScenario | GroupsScenario, Field(discriminator="problem")]
GOES = {"pool": "is one pooled cluster", "machines": "has many machines", "groups": "is one of user groups"}


class Params(Frozen):
    """All of params.yaml."""

    seed: Seed
    threads: Annotated[int, Field(gt=0, le=1024)]
    device: Literal["auto", "cpu", "cuda"]
    workload: Annotated[Synthetic | PoolLog, Field(discriminator="name")]
    demands: dict[Name, Demand]
    scenarios: Annotated[dict[Name, AnyScenario], Field(min_length=1)]
    heuristics: HeuristicKnobs
    evaluation: Evaluation
    recipes: dict[Name, AnyRecipe]
    agents: Annotated[dict[Name, Agent], Field(min_length=1)]
    transfers: dict[Name, Transfer] = Field(default_factory=dict, exclude_if=lambda rows: not rows)
    hindsight: Hindsight

    @property
    def pool_scenarios(self) -> dict[str, PoolScenario]:
        """Return the scenarios that go in steps, by name."""
        return {name: row for name, row in self.scenarios.items() if isinstance(row, PoolScenario)}

    @property
    def machines_scenarios(self) -> dict[str, MachinesScenario]:
        """Return the event-driven scenarios, by name."""
        return {name: row for name, row in self.scenarios.items() if isinstance(row, MachinesScenario)}

    @property
    def groups_scenarios(self) -> dict[str, GroupsScenario]:
        """Return the scenarios of user groups, by name."""
        return {name: row for name, row in self.scenarios.items() if isinstance(row, GroupsScenario)}

    def scenario(self, name: str) -> AnyScenario:
        """Return the named scenario, whatever its problem."""
        return pick(self.scenarios, name, "scenario")

    def pool_scenario(self, name: str) -> PoolScenario:
        """Return the named scenario, with the log's own capacity where the workload is one that sets it.

        Raises:
            UserError: there is none, or it does not go in steps.
        """
        chosen = self.scenario(name)
        if not isinstance(chosen, PoolScenario):
            raise UserError(f"scenario '{name}' {GOES[chosen.problem]}; {_those(self.pool_scenarios)} pooled clusters")
        workload = self.workload_of(chosen)
        if isinstance(workload, PoolLog) and workload.capacity is not None:
            units = dict.fromkeys(chosen.resources, workload.capacity)
            return chosen.model_copy(update={"resources": units})
        return chosen

    def workload_of(self, scenario: PoolScenario) -> Synthetic | PoolLog:
        """Return where the jobs of a scenario in steps come from: its own recipe, or what all others share."""
        return self.workload if scenario.workload is None else scenario.workload

    def machines_scenario(self, name: str) -> MachinesScenario:
        """Return the named scenario.

        Raises:
            UserError: there is none, or it is not event-driven.
        """
        chosen = self.scenario(name)
        if not isinstance(chosen, MachinesScenario):
            raise UserError(f"scenario '{name}' {GOES[chosen.problem]}; {_those(self.machines_scenarios)} event-driven")
        return chosen

    def groups_scenario(self, name: str) -> GroupsScenario:
        """Return the named scenario.

        Raises:
            UserError: there is none, or it is not one of user groups.
        """
        chosen = self.scenario(name)
        if not isinstance(chosen, GroupsScenario):
            raise UserError(f"scenario '{name}' {GOES[chosen.problem]}; {_those(self.groups_scenarios)} of user groups")
        return chosen

    def agents_of(self, scenario: str) -> list[str]:
        """Return the agents that are scored on a scenario: its own, and those that are carried over to it."""
        own = [name for name, row in self.agents.items() if row.scenario == scenario]
        return own + [row.agent for row in self.transfers.values() if row.scenario == scenario]

    def agent(self, name: str) -> Agent:
        """Return the named agent."""
        return pick(self.agents, name, "agent")

    def transfer(self, name: str) -> Transfer:
        """Return the named transfer."""
        return pick(self.transfers, name, "transfer")

    def pool_recipe(self, agent: str) -> Recipe:
        """Return the learning recipe of the named agent.

        Raises:
            UserError: its scenario is event-driven.
        """
        chosen = self.recipes[self.agent(agent).finetune.recipe]
        if not isinstance(chosen, Recipe):
            raise UserError(self._other(agent, chosen))
        return chosen

    def machines_recipe(self, agent: str) -> MachinesRecipe:
        """Return the learning recipe of the named agent.

        Raises:
            UserError: its scenario goes in steps.
        """
        chosen = self.recipes[self.agent(agent).finetune.recipe]
        if isinstance(chosen, Recipe | DqnRecipe):
            raise UserError(self._other(agent, chosen))
        return chosen

    def groups_recipe(self, agent: str) -> DqnRecipe:
        """Return the learning recipe of the named agent.

        Raises:
            UserError: its scenario has no user groups.
        """
        chosen = self.recipes[self.agent(agent).finetune.recipe]
        if not isinstance(chosen, DqnRecipe):
            raise UserError(self._other(agent, chosen))
        return chosen

    def _other(self, agent: str, recipe: AnyRecipe) -> str:
        goes = GOES[self.scenario(self.agent(agent).scenario).problem]
        return f"agent '{agent}' learns by {recipe.algorithm}: its scenario {goes}"


def _those(rows: Iterable[str]) -> str:
    names = sorted(rows)
    return f"{', '.join(names) or 'none'} {'are' if len(names) > 1 else 'is'}"


def repository_root() -> Path:
    """Return the root that relative paths of params.yaml start at: DVC's, also inside a temporary experiment."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd())


def load_params(path: Path = PARAMS_FILE) -> Params:
    """Read and check params.yaml.

    Raises:
        UserError: the file is missing, is not YAML, or holds a key or value that it should not.
    """
    try:
        # Not by the compiled reader: what that says of a mistake is less clear, and of another line.
        raw = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); run this at the repository's root") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x}") from error
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: not YAML: {error.problem or error.context}") from error
    except YAMLError as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return check_params(raw, str(path))


def check_params(raw: Any, where: str) -> Params:
    """Check a mapping as params.yaml holds it, names across sections included.

    Raises:
        UserError: one line for the first problem, with its place.
    """
    if not isinstance(raw, Mapping):
        found = {type(None): "nothing", list: "a list"}.get(type(raw), repr(raw)[:40])
        raise UserError(f"{where}: expected a mapping of keys to values, found {found}")
    try:
        params = Params.model_validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise UserError(first_problem(error, raw, where)) from error
    for name, scenario in params.pool_scenarios.items():
        must_know(where, f"scenarios.{name}.demand", scenario.demand, params.demands)
    check_hindsight(where, params.hindsight.scenarios, params.scenarios)
    for name, agent in params.agents.items():
        must_know(where, f"agents.{name}.scenario", agent.scenario, params.scenarios)
        must_know(where, f"agents.{name}.finetune.recipe", agent.finetune.recipe, params.recipes)
        chosen, recipe = params.scenarios[agent.scenario], params.recipes[agent.finetune.recipe]
        own_load = isinstance(chosen, PoolScenario) and isinstance(params.workload_of(chosen), PoolLog)
        for demand in getattr(agent.finetune, "demands", None) or ():
            must_know(where, f"agents.{name}.finetune.demands", demand, params.demands)
        check_agent(where, name, agent, chosen, recipe, own_load)
    check_transfers(where, params.transfers, params.agents, params.scenarios)
    return params
