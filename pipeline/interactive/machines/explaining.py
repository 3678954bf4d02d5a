"""How policies on many machines are explained."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.types import Policy
from pipeline.interactive.explaining.decisions import Play
from pipeline.interactive.explaining.placing import Placing, explaining
from pipeline.interactive.machines.scheduling import any_policy
from pipeline.problems.machines.env.evaluation.play import game_of, score
from pipeline.problems.machines.env.nouns import Jobs, end_to_end
from pipeline.problems.machines.env.simulator.batch import Simulator
from pipeline.problems.machines.env.storage import machines_of, read_park
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.plans import planning


def placing(params: Params, scenario: str) -> Placing:
    """Return what explanations of a scenario's decisions need."""
    row, park = params.machines_scenario(scenario), read_park(storage.jobsets_folder(scenario))
    machines = machines_of(row, park)

    def policy(agent: str) -> tuple[Policy, bool]:
        if agent not in params.agents:  # policies that look ahead are refused earlier
            return cast("Policy", any_policy(params, agent, row, park, scenario)), True
        from pipeline.problems.machines.agents.learning import LEARNING  # torch: 2 s and 250 MB that others do not need

        return LEARNING.policies(params, agent)[agent], True

    def begin(jobsets: Mapping[int, Sequence[Jobs]], masked: bool) -> Play:
        game, load, number = game_of(jobsets, machines, params.seed)
        jobs = end_to_end(game.episodes)
        simulator = Simulator(jobs, machines, np.zeros(len(jobs.arrival)))
        return Play(simulator, jobs, game.key, load, number)

    return Placing(
        policy,
        begin,
        lambda policies, jobsets, masked: score(policies, jobsets, machines, params.seed),
        {name: HEURISTICS[name] for name in ("fcfs", "sjf", "saf")},
        references=["sjf", "saf"],
        unit="time units",
        several=len(machines.kind) > 1,
    )


EXPLAINING = explaining(placing, planning)
