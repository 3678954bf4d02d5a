"""Names of the rules, which are not available to agents in params.yaml."""

from pipeline.core.config import GroupsScenario, Params
from pipeline.core.config.problems import check_names_free
from pipeline.errors import UserError

# As in the tables of results. Literal names, because `tuning` imports numba, whose threads must be set before.
RULES = (
    *("equal", "proportional", "drf", "shortest_first", "capacity", "fixed", "undivided"),
    *("lookahead", "expecting", "oracle"),
)
REFERENCES = ("oracle", "undivided")  # the rule that knows future jobs, and the one without shares
OWN = "{agent}_own"  # an agent without the knapsack: each group's own best level


def check_names(params: Params) -> None:
    """Raise UserError if an agent has the name of a rule or of another scored policy."""
    agents = [name for name, agent in params.agents.items() if agent.scenario in params.scenarios_of(GroupsScenario)]
    taken = {*RULES, *(OWN.format(agent=agent) for agent in agents)}
    check_names_free(params, "groups", taken)
    for name in agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
