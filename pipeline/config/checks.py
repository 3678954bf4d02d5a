"""What must agree across the sections of params.yaml: names, and that an agent learns by what its scenario allows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipeline.config.acting import Ppo, PpoRecipe
from pipeline.config.events import MachinesScenario
from pipeline.config.groups import DqnRecipe, GroupsScenario
from pipeline.config.learning import Agent, AnyRecipe, Cnn, NoPretrain, Recipe
from pipeline.config.mixture import Mixture, Transfer
from pipeline.config.problem import PoolScenario
from pipeline.config.records import there_are
from pipeline.errors import UserError

AnyScenario = PoolScenario | MachinesScenario | GroupsScenario
OF_SETS = ("imitate", "mixture")  # ways to learn
LEAST_CNN_ROWS = 4  # two pools halve the image twice


class Allowed(NamedTuple):
    """What an agent may have on the scenarios of one problem."""

    networks: tuple[str, ...]
    pretrains: tuple[str, ...]
    finetunes: tuple[str, ...]
    objectives: tuple[str, ...]


ALLOWED = {
    "pool": Allowed(
        ("mlp", "cnn", "sets"),
        ("none", "clone", "imitate"),
        ("reinforce", "mixture"),
        ("slowdown", "completion_time", "makespan", "utilisation"),
    ),
    "machines": Allowed(
        ("vector", "deepsets", "linear"),
        ("none",),
        ("ppo", "a3c", "dagger", "cem"),
        ("slowdown", "bounded_slowdown", "completion_time"),
    ),
    "groups": Allowed(("group_q",), ("none", "replay"), ("dqn",), ("delay", "slowdown")),
}


def must_know(where: str, place: str, name: str, rows: Mapping[str, Any]) -> None:
    """Refuse a name that is not among the rows it is chosen from.

    Raises:
        UserError: it is not.
    """
    if name not in rows:
        raise UserError(f"{where}: {place}: unknown '{name}'; {there_are(rows, name)}")


def check_agent(
    where: str,
    name: str,
    agent: Agent,
    scenario: AnyScenario,
    recipe: AnyRecipe,
    own_load: bool,
) -> None:
    """Refuse an agent that its scenario or its recipe does not go with.

    Args:
        where: the file.
        name: the agent's.
        agent: its row.
        scenario: the row that it names.
        recipe: the row that it names.
        own_load: do the scenario's jobs, in steps, come from a log, which has a load of its own?

    Raises:
        UserError: one line for the first thing that does not go with another.
    """
    _fits_the_problem(where, name, agent, scenario.problem)
    wanted = (
        "reinforce" if isinstance(scenario, PoolScenario) else agent.finetune.name
    )  # in steps, all learn by such ones
    if recipe.algorithm != wanted:
        raise UserError(
            f"{where}: agents.{name}.finetune.recipe: '{agent.finetune.recipe}' is one of {recipe.algorithm}, "
            f"not of {wanted}"
        )
    if isinstance(scenario, PoolScenario) and isinstance(recipe, Recipe):
        _goes_with_the_network(where, name, agent)
        _goes_with_the_recipe(where, name, agent, recipe)
    alone = isinstance(agent.finetune, Ppo) and agent.finetune.episodes < 2
    if alone and isinstance(recipe, PpoRecipe) and recipe.advantage == "leave_one_out":
        raise UserError(f"{where}: agents.{name}.finetune.episodes: expected at least 2 for leave_one_out, got 1")
    if isinstance(recipe, DqnRecipe):
        side_by_side = max(getattr(agent.pretrain, "jobsets", 1), agent.finetune.jobsets)
        if recipe.memory < 2 * side_by_side:
            place = f"{where}: recipes.{agent.finetune.recipe}.memory"
            least = f"at least {2 * side_by_side}, twice the jobsets that agent '{name}' has side by side"
            raise UserError(f"{place}: expected {least}, got {recipe.memory}")
    if agent.finetune.name == "cem" and agent.network.name != "linear":
        raise UserError(f"{where}: agents.{name}.network.name: expected linear for cem, got '{agent.network.name}'")
    if isinstance(scenario, PoolScenario) and isinstance(agent.network, Cnn) and scenario.horizon < LEAST_CNN_ROWS:
        place, got = f"{where}: scenarios.{agent.scenario}.horizon", scenario.horizon
        raise UserError(f"{place}: expected at least {LEAST_CNN_ROWS} for the cnn of agent '{name}', got {got}")
    if not own_load:
        _has_its_jobsets(where, name, agent, scenario, recipe)


def _fits_the_problem(where: str, name: str, agent: Agent, problem: str) -> None:
    allowed = ALLOWED[problem]
    for place, found, wanted in (
        ("network.name", agent.network.name, allowed.networks),
        ("pretrain.name", agent.pretrain.name, allowed.pretrains),
        ("finetune.name", agent.finetune.name, allowed.finetunes),
        ("objective", agent.objective, allowed.objectives),
    ):
        if found not in wanted:
            raise UserError(
                f"{where}: agents.{name}.{place}: expected {' or '.join(wanted)} for scenario '{agent.scenario}' "
                f"(problem: {problem}), got '{found}'"
            )


def _goes_with_the_network(where: str, name: str, agent: Agent) -> None:
    """Refuse other ways to learn than those of `sets` for it, and those for other networks."""
    sets = agent.network.name == "sets"
    pool = ALLOWED["pool"]
    for part, found, wanted in (
        ("pretrain", agent.pretrain.name, _ways(pool.pretrains, sets)),
        ("finetune", agent.finetune.name, _ways(pool.finetunes, sets)),
    ):
        if found not in wanted:
            raise UserError(
                f"{where}: agents.{name}.{part}.name: expected {' or '.join(wanted)} for a network "
                f"'{agent.network.name}', got '{found}'"
            )


def _ways(allowed: tuple[str, ...], sets: bool) -> list[str]:
    """Return those of the ways to learn that `sets` have, or that the other networks have."""
    return [name for name in allowed if name == "none" or (name in OF_SETS) == sets]


def _goes_with_the_recipe(where: str, name: str, agent: Agent, recipe: Recipe) -> None:
    """Refuse what a recipe says and the algorithm would not do."""
    chosen, mixed = agent.finetune, isinstance(agent.finetune, Mixture)
    if isinstance(chosen, Mixture) and not chosen.jobsets and chosen.streams is None:
        raise UserError(f"{where}: agents.{name}.finetune: expected jobsets above 0, or streams; got neither")
    for key, found, wrong, wanted in (
        ("masked", recipe.masked, mixed and not recipe.masked, "true"),
        ("optimizer", recipe.optimizer, mixed and recipe.optimizer != "adam", "adam"),
        ("minibatches", recipe.minibatches, mixed and recipe.minibatches > 1, "1"),
        ("baseline", recipe.baseline, not mixed and recipe.baseline == "time", "decision or leave_one_out"),
        ("falling", recipe.falling, not mixed and recipe.falling, "false"),
    ):
        if wrong:
            shown = str(found).lower()
            raise UserError(
                f"{where}: recipes.{chosen.recipe}.{key}: expected {wanted} for the {chosen.name} of agent '{name}', "
                f"got {shown}"
            )


def _has_its_jobsets(where: str, name: str, agent: Agent, scenario: AnyScenario, recipe: AnyRecipe) -> None:
    """Refuse training on loads or jobsets that `generate` does not draw."""
    fixed = isinstance(recipe, Recipe) and recipe.jobsets == "fixed"
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


def check_transfers(
    where: str,
    transfers: Mapping[str, Transfer],
    agents: Mapping[str, Agent],
    scenarios: Mapping[str, AnyScenario],
) -> None:
    """Refuse an agent on a scenario that it cannot play, was trained on, or is carried over to already.

    Raises:
        UserError: one line for the first such row.
    """
    pairs: dict[tuple[str, str], str] = {}
    for name, row in transfers.items():
        place = f"{where}: transfers.{name}"
        must_know(where, f"transfers.{name}.agent", row.agent, agents)
        must_know(where, f"transfers.{name}.scenario", row.scenario, scenarios)
        agent = agents[row.agent]
        for of, scenario in (("agent", agent.scenario), ("scenario", row.scenario)):
            if not isinstance(scenarios[scenario], PoolScenario):
                found = f"scenario '{scenario}' has {scenarios[scenario].problem}"
                raise UserError(f"{place}.{of}: expected problem pool, {found}")
        if agent.network.name != "sets":
            expected = "expected one with network sets, which serves any size"
            raise UserError(f"{place}.agent: {expected}; '{row.agent}' has {agent.network.name}")
        if row.scenario == agent.scenario:
            expected = f"expected another one than agent '{row.agent}' is trained on"
            raise UserError(f"{place}.scenario: {expected}, got '{row.scenario}'")
        same = pairs.setdefault((row.agent, row.scenario), name)
        if same != name:
            raise UserError(f"{place}: expected each agent and scenario once; 'transfers.{same}' has the same")
