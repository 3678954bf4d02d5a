"""Names of params.yaml that must not be those of rules that share a cluster."""

from pipeline.config import Params
from pipeline.config.checks import check_names_free
from pipeline.errors import UserError

# In the tables of results. Written out: `scores` imports numba, which must not begin before its threads are set.
RULES = (
    *("equal", "proportional", "drf", "shortest_first", "capacity", "fixed", "undivided"),
    *("lookahead", "expecting", "oracle"),
)
REFERENCES = ("oracle", "undivided")  # of them: what knows the jobs to come, and what divides nothing
OWN = "{agent}_own"  # an agent without the knapsack, each group for itself


def check_names(params: Params) -> None:
    """Check that agents of scenarios of user groups have names of their own.

    Raises:
        UserError: one has the name of a rule, or of what another agent is scored as.
    """
    agents = [name for name, agent in params.agents.items() if agent.scenario in params.groups_scenarios]
    taken = {*RULES, *(OWN.format(agent=agent) for agent in agents)}
    check_names_free(params, "groups", taken)
    for name in agents:
        if name in taken:
            raise UserError(f"params.yaml: agents.{name}: '{name}' is the name of another policy; choose another")
