"""Checks that the rows about pooled clusters agree."""

from typing import TYPE_CHECKING

from pipeline.core.config.learning import check_algorithm, check_jobsets_drawn
from pipeline.core.config.pool.heuristics import must_be_solvable
from pipeline.core.config.pool.learning import Cnn, PoolAgent, PoolEvolution
from pipeline.core.config.pool.scenario import PoolLog, PoolScenario
from pipeline.core.config.records import check_known
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.core.config.params import Params

LEAST_CNN_ROWS = 4  # two pooling layers halve the image twice
# Algorithms of pre-training and of fine-tuning, for a kind of network.
OF_IMAGES = ("none", "clone"), ("reinforce",)
OF_SCORES = ("none",), ("evolution",)  # their initial weights are a hand-written rule


def check_pool(params: "Params", where: str) -> None:
    """Check the rows about pooled clusters; raise a UserError for the first that contradicts another."""
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
    pretrain, finetune = OF_SCORES if agent.network.name == "scores" else OF_IMAGES
    for part, found, wanted in (
        ("pretrain", agent.pretrain.name, pretrain),
        ("finetune", agent.finetune.name, finetune),
    ):
        if found not in wanted:
            raise UserError(
                f"{where}: agents.{name}.{part}.name: expected {' or '.join(wanted)} for a network "
                f"'{agent.network.name}', got '{found}'"
            )
    if isinstance(agent.network, Cnn) and scenario.horizon < LEAST_CNN_ROWS:
        place, got = f"{where}: scenarios.{agent.scenario}.horizon", scenario.horizon
        raise UserError(f"{place}: expected at least {LEAST_CNN_ROWS} for the cnn of agent '{name}', got {got}")
    if isinstance(agent.finetune, PoolEvolution):
        for demand in agent.finetune.demands or ():
            check_known(where, f"agents.{name}.finetune.demands", demand, params.demands)
    if not isinstance(params.workload_of(scenario), PoolLog):  # a log has a load of its own
        check_jobsets_drawn(params, where, name, only_generated=getattr(recipe, "jobsets", "") == "fixed")


def _check_transfers(params: "Params", where: str) -> None:
    """Refuse an agent on a scenario that it cannot play or was trained on, and duplicates."""
    pairs: dict[tuple[str, str], str] = {}
    for name, row in params.transfers.items():
        place = f"{where}: transfers.{name}"
        check_known(where, f"transfers.{name}.agent", row.agent, params.agents)
        check_known(where, f"transfers.{name}.scenario", row.scenario, params.scenarios)
        agent = params.agents[row.agent]
        for of, scenario in (("agent", agent.scenario), ("scenario", row.scenario)):
            if scenario not in params.scenarios_of(PoolScenario):
                found = params.scenarios[scenario].problem
                raise UserError(f"{place}.{of}: expected problem pool; scenario '{scenario}' is of problem {found}")
        if agent.network.name != "scores":
            expected = "expected one with network scores, which serves any size"
            raise UserError(f"{place}.agent: {expected}; '{row.agent}' has {agent.network.name}")
        if row.scenario == agent.scenario:
            expected = f"expected another one than agent '{row.agent}' is trained on"
            raise UserError(f"{place}.scenario: {expected}, got '{row.scenario}'")
        same = pairs.setdefault((row.agent, row.scenario), name)
        if same != name:
            raise UserError(f"{place}: expected each agent and scenario once; 'transfers.{same}' has the same")
