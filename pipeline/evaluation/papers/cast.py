"""Which of params.yaml's agents plays which of the papers' schedulers: told from its rows, never from its name."""

from typing import NamedTuple

from pipeline.config import Agent, AtOnce, Params
from pipeline.evaluation.papers.verdicts import CannotTellError

HEURISTICS = ("sjf", "packer", "tetris")  # the papers' own, beside random
SYSTEMS = {"mlp": "DeepRM", "cnn": "DeepRM2"}  # by network


class Cast(NamedTuple):
    """The agents of one scenario, and what the papers would call them."""

    scenario: str
    at_once: bool  # do all jobs wait at the start, as in DeepRM_Off?
    agents: dict[str, Agent]  # in the order of params.yaml

    def of(self, objective: str, network: str = "") -> list[str]:
        """Return the agents that were trained for an objective, with a network if one is named."""
        return [
            name
            for name, row in self.agents.items()
            if row.objective == objective and network in ("", row.network.name)
        ]

    def lead(self, objective: str, network: str) -> str:
        """Return the agent that stands for a paper's scheduler: the first of its kind.

        Raises:
            CannotTellError: there is none.
        """
        found = self.of(objective, network)
        if not found:
            what = f"network {network} and objective {objective}"
            raise CannotTellError(f"no agent of scenario {self.scenario} has {what}")
        return found[0]

    def paper(self, agent: str) -> str:
        """Return what the papers call a scheduler of the agent's kind."""
        if self.at_once:
            return "DeepRM_Off"
        return SYSTEMS.get(self.agents[agent].network.name, agent)

    def protocol(self, agent: str) -> str:
        """Return how the agent was trained, for the foot of a finding."""
        part = self.agents[agent].finetune
        loads = sorted(part.loads)
        where = f"load {loads[0]}" if len(loads) == 1 else f"loads {loads[0]} to {loads[-1]} together"
        return f"recipe {part.recipe}, {part.updates} updates on {where}"


def casts(params: Params) -> list[Cast]:
    """Return the cast of every scenario, in the order of params.yaml."""
    return [
        Cast(
            scenario,
            isinstance(row.arrivals, AtOnce),
            {name: agent for name, agent in params.agents.items() if agent.scenario == scenario},
        )
        for scenario, row in params.scenarios.items()
    ]
