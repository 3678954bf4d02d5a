"""What must agree among the rows about pooled clusters."""

from typing import TYPE_CHECKING

from pipeline.config.checks import check_algorithm, check_jobsets_drawn
from pipeline.config.pool.hindsight import must_be_solvable
from pipeline.config.pool.learning import PoolAgent, PoolEvolution, Recipe, ShortRunsAndStreams, Transfer
from pipeline.config.pool.networks import Cnn
from pipeline.config.pool.scenario import PoolLog, PoolScenario
from pipeline.config.records import check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.config.params import Params

LEAST_CNN_ROWS = 4  # two pools halve the image twice
OTHERS = ("clone", "reinforce")  # ways to learn, of other networks than `sets`: to begin, and to go on
OF_SETS = ("imitate", "mixture")
OF_SCORES = ("none", "evolution")  # they begin as a rule by hand


def check_pool(params: "Params", where: str) -> None:
    """Check them.

    Raises:
        UserError: one line for the first row that does not go with another.
    """
    scenarios = params.scenarios_of(PoolScenario)
    for name, scenario in scenarios.items():
        check_known(where, f"scenarios.{name}.demand", scenario.demand, params.demands)
    for name in params.hindsight.scenarios:
        check_known(where, "hindsight.scenarios", name, params.scenarios)
        if name not in scenarios:
            found = params.scenarios[name].problem
            raise UserError(f"{where}: hindsight.scenarios: '{name}': expected problem pool, found {found}")
        must_be_solvable(f"{where}: hindsight.scenarios", name, scenarios[name])
    for name, agent in params.agents_with(PoolAgent).items():
        _check_agent(params, where, name, agent)
    _check_transfers(params, where)


def _check_agent(params: "Params", where: str, name: str, agent: PoolAgent) -> None:
    evolves = isinstance(agent.finetune, PoolEvolution)
    check_algorithm(params, where, name, "evolution" if evolves else "reinforce")
    recipe, scenario = params.pool_recipe(name), params.scenario_of(PoolScenario, agent.scenario)
    _goes_with_the_network(where, name, agent)
    if isinstance(recipe, Recipe):
        _goes_with_the_recipe(where, name, agent, recipe)
    if isinstance(agent.network, Cnn) and scenario.horizon < LEAST_CNN_ROWS:
        place, got = f"{where}: scenarios.{agent.scenario}.horizon", scenario.horizon
        raise UserError(f"{place}: expected at least {LEAST_CNN_ROWS} for the cnn of agent '{name}', got {got}")
    if isinstance(agent.finetune, ShortRunsAndStreams | PoolEvolution):
        for demand in agent.finetune.demands or ():
            check_known(where, f"agents.{name}.finetune.demands", demand, params.demands)
    if not isinstance(params.workload_of(scenario), PoolLog):  # a log has a load of its own
        check_jobsets_drawn(params, where, name, only_generated=getattr(recipe, "jobsets", "") == "fixed")


def _goes_with_the_network(where: str, name: str, agent: PoolAgent) -> None:
    """Refuse other ways to learn than those of `sets` for it, and those for other networks."""
    own = {"sets": OF_SETS, "scores": OF_SCORES}.get(agent.network.name, OTHERS)
    for part, found, wanted in (
        ("pretrain", agent.pretrain.name, ("none", own[0])),
        ("finetune", agent.finetune.name, own[1:]),
    ):
        if found not in wanted:
            raise UserError(
                f"{where}: agents.{name}.{part}.name: expected {' or '.join(wanted)} for a network "
                f"'{agent.network.name}', got '{found}'"
            )


def _goes_with_the_recipe(where: str, name: str, agent: PoolAgent, recipe: Recipe) -> None:
    """Refuse what a recipe says and the algorithm would not do."""
    chosen, mixed = agent.finetune, isinstance(agent.finetune, ShortRunsAndStreams)
    if isinstance(chosen, ShortRunsAndStreams) and not chosen.jobsets and chosen.streams is None:
        raise UserError(f"{where}: agents.{name}.finetune: expected jobsets above 0, or streams; got neither")
    for key, found, wrong, wanted in (
        ("masked", recipe.masked, mixed and not recipe.masked, "true"),
        ("optimizer", recipe.optimizer, mixed and recipe.optimizer != "adam", "adam"),
        ("minibatches", recipe.minibatches, mixed and recipe.minibatches > 1, "1"),
        ("baseline", recipe.baseline, recipe.baseline == ("value" if mixed else "time"), "decision or leave_one_out"),
        ("falling", recipe.falling, not mixed and recipe.falling, "false"),
        ("annealed", recipe.annealed, not mixed and recipe.annealed, "false"),
        ("near", recipe.near, not mixed and recipe.near > 0, "0"),
    ):
        if wrong:
            shown = str(found).lower()
            raise UserError(
                f"{where}: recipes.{chosen.recipe}.{key}: expected {wanted} for the {chosen.name} of agent '{name}', "
                f"got {shown}"
            )


def _check_transfers(params: "Params", where: str) -> None:
    """Refuse an agent on a scenario that it cannot play, was trained on, or is carried over to already."""
    pairs: dict[tuple[str, str], str] = {}
    for name, row in params.transfers.items():
        place = f"{where}: transfers.{name}"
        check_known(where, f"transfers.{name}.agent", row.agent, params.agents)
        check_known(where, f"transfers.{name}.scenario", row.scenario, params.scenarios)
        _can_be_carried_over(params, place, row)
        same = pairs.setdefault((row.agent, row.scenario), name)
        if same != name:
            raise UserError(f"{place}: expected each agent and scenario once; 'transfers.{same}' has the same")


def _can_be_carried_over(params: "Params", place: str, row: Transfer) -> None:
    agent = params.agents[row.agent]
    for of, scenario in (("agent", agent.scenario), ("scenario", row.scenario)):
        if scenario not in params.scenarios_of(PoolScenario):
            found = params.scenarios[scenario].problem
            raise UserError(f"{place}.{of}: expected problem pool; scenario '{scenario}' is of problem {found}")
    if agent.network.name not in ("sets", "scores"):
        expected = "expected one with network sets or scores, which serve any size"
        raise UserError(f"{place}.agent: {expected}; '{row.agent}' has {agent.network.name}")
    if row.scenario == agent.scenario:
        expected = f"expected another one than agent '{row.agent}' is trained on"
        raise UserError(f"{place}.scenario: {expected}, got '{row.scenario}'")
