"""Roles of params.yaml's agents as the papers' schedulers: by their rows, never by their names."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pipeline.core.config import Agent, AtOnce, MachinesScenario, Params, PoolScenario
from pipeline.papers.rules import CannotTellError

HEURISTICS = ("sjf", "packer", "tetris")  # the papers' own, besides random
STRONG = ("hold_until", "hold_long")  # our rules, in all figures: a learner has to beat them, too
# DeepRM2 compares SJF, Tetris and Random, as the published code of DeepRM does. Its "Tetris" only packs: it starts
# large jobs, and small ones then cannot start. A learner has to beat our tuned Tetris, which is harder.
SECOND_TETRIS = "packer"
NAMES = {"fcfs": "FCFS", "random": "Random", "sjf": "SJF", "packer": "Packer", "tetris": "Tetris"}
SYSTEMS = {"mlp": "DeepRM", "cnn": "DeepRM2"}  # by network

# On a pooled cluster jobs arrive over time, or all wait at the start (DeepRM_Off); Deepk8s has many machines.
Setting = Literal["online", "offline", "machines"]


class Roles(NamedTuple):
    """Agents of one scenario, and the papers' names for them."""

    scenario: str
    setting: Setting
    agents: dict[str, Agent]  # in the order of params.yaml

    def of(self, objective: str, network: str = "") -> list[str]:
        """Return the agents that were trained for an objective, with a network if one is named."""
        rows = self.agents.items()
        return [name for name, row in rows if row.objective == objective and network in ("", row.network.name)]

    def at(self, objective: str, network: str, load: int) -> list[str]:
        """Return the agents of a kind trained only at that load with the largest budget: several if seeds differ."""
        return self._largest(
            [name for name in self.of(objective, network) if self.agents[name].finetune.loads == (load,)]
        )

    def _largest(self, found: Sequence[str]) -> list[str]:
        parts = {name: self.agents[name].finetune for name in found}
        episodes = {name: part.updates * part.jobsets * getattr(part, "episodes", 1) for name, part in parts.items()}
        return [name for name in found if episodes[name] == max(episodes.values())]

    def about(self, objective: str, network: str, load: int) -> list[str]:
        """Return the agents for a claim about training at a load: those `at` it, or all of the kind."""
        return self.at(objective, network, load) or self.of(objective, network)

    def lead(self, objective: str, network: str, load: int | None = None) -> str:
        """Return the agent that stands for a paper's scheduler, the first of its kind, or raise CannotTellError."""
        found = self.of(objective, network) if load is None else self.about(objective, network, load)
        return self._first(found, f"network {network} and objective {objective}")

    def _first(self, found: Sequence[str], what: str) -> str:
        if not found:
            raise CannotTellError(f"no agent of scenario {self.scenario} has {what}")
        return found[0]

    def learned_by(self, algorithm: str) -> list[str]:
        """Return the agents for slowdown that were finetuned by an algorithm."""
        return [name for name in self.of("slowdown") if self.agents[name].finetune.name == algorithm]

    def lead_by(self, algorithm: str) -> str:
        """Return the agent that stands for Deepk8s with an algorithm, or raise CannotTellError."""
        return self._first(self.learned_by(algorithm), f"finetune {algorithm} and objective slowdown")

    def each_at_its_load(self, objective: str, network: str) -> dict[int, str]:
        """Return the agents that were each trained at one load only: those with the largest budget and first seed.

        Empty unless there are several loads: one agent does not make a line over loads.
        """
        single = [name for name in self.of(objective, network) if len(self.agents[name].finetune.loads) == 1]
        found: dict[int, str] = {}
        for name in self._largest(single):
            found.setdefault(self.agents[name].finetune.loads[0], name)
        return found if len(found) > 1 else {}

    def rival(self, agent: str) -> str:
        """Return the DeepRM agent to compare with a DeepRM2 agent: trained equally, otherwise the leading one."""
        objective, wanted = self.agents[agent].objective, self._conditions(agent)
        equal = [name for name in self.of(objective, "mlp") if self._conditions(name) == wanted]
        return equal[0] if equal else self.lead(objective, "mlp")

    def _conditions(self, agent: str) -> dict[str, object]:
        return self.agents[agent].finetune.model_dump(exclude={"validate_every"})

    def paper(self, agent: str) -> str:
        """Return the papers' name for a scheduler of the agent's kind."""
        if self.setting == "offline":
            return "DeepRM_Off"
        return SYSTEMS.get(self.agents[agent].network.name, agent)

    def protocol(self, agent: str) -> str:
        """Return the training of an agent in words, for the end of a finding."""
        part = self.agents[agent].finetune
        loads = sorted(part.loads)
        where = f"load {loads[0]}" if len(loads) == 1 else f"loads {loads[0]} to {loads[-1]} together"
        return f"recipe {part.recipe}, {part.updates} updates on {where}"


def roles_of(params: Params) -> list[Roles]:
    """Return the roles in every scenario with an agent: pooled clusters first, then many machines.

    Streams have none: the papers' runs end, and all their jobs count. Nor do scenarios to which agents are transferred.
    """
    rows = params.agents.items()
    networks = [(name, row) for name, row in rows if row.network.name in SYSTEMS]
    slowdown = [(name, row) for name, row in rows if row.objective == "slowdown"]
    pooled = [
        Roles(name, "offline" if isinstance(row.arrivals, AtOnce) else "online", _agents(networks, name))
        for name, row in params.scenarios_of(PoolScenario).items()
        if row.measured is None
    ]
    machines = [Roles(name, "machines", _agents(slowdown, name)) for name in params.scenarios_of(MachinesScenario)]
    return [roles for roles in (*pooled, *machines) if roles.agents]


def _agents(rows: Iterable[tuple[str, Agent]], scenario: str) -> dict[str, Agent]:
    return {name: row for name, row in rows if row.scenario == scenario}
