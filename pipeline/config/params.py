"""Params: all of params.yaml, read and checked, names across sections included."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pipeline.config.learning import Agent, Cnn, Evaluation, HeuristicKnobs, NoPretrain, Recipe
from pipeline.config.problem import Demand, Scenario, Swf, Synthetic
from pipeline.config.records import Frozen, Name, Seed, first_problem, pick, there_are
from pipeline.errors import UserError

PARAMS_FILE = Path("params.yaml")
LEAST_CNN_ROWS = 4  # two pools halve the image twice


class Params(Frozen):
    """All of params.yaml."""

    seed: Seed
    threads: Annotated[int, Field(gt=0, le=1024)]
    device: Literal["auto", "cpu", "cuda"]
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
    for name, scenario in params.scenarios.items():
        _must_know(where, f"scenarios.{name}.demand", scenario.demand, params.demands)
    for name, agent in params.agents.items():
        _must_know(where, f"agents.{name}.scenario", agent.scenario, params.scenarios)
        _must_know(where, f"agents.{name}.finetune.recipe", agent.finetune.recipe, params.recipes)
        horizon = params.scenarios[agent.scenario].horizon
        if isinstance(agent.network, Cnn) and horizon < LEAST_CNN_ROWS:
            place = f"{where}: scenarios.{agent.scenario}.horizon"
            raise UserError(f"{place}: expected at least {LEAST_CNN_ROWS} for the cnn of agent '{name}', got {horizon}")
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
        raise UserError(f"{where}: {place}: unknown '{name}'; {there_are(rows, name)}")
