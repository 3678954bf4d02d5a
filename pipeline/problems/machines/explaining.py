"""How policies on many machines are explained."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from pipeline import storage
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.explaining.placing import Placing, explaining
from pipeline.explaining.recording import Play
from pipeline.problems.machines.evaluation.play import game_of, score
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.plans import planning
from pipeline.problems.machines.nouns import Jobs, end_to_end
from pipeline.problems.machines.scheduling import any_policy
from pipeline.problems.machines.simulator.compiled.batch import Simulator
from pipeline.problems.machines.storage import read_jobsets, read_park
from pipeline.problems.machines.workload.park import machines_of


def placing(params: Params, scenario: str) -> Placing:
    """Return the parts of an explanation for a scenario."""
    folder, row = storage.jobsets_folder(scenario), params.machines_scenario(scenario)
    park = read_park(folder)
    machines = machines_of(row, park)

    def policy(agent: str) -> tuple[Policy, bool]:
        if agent not in params.agents:  # policies that look ahead are refused earlier
            return cast("Policy", any_policy(params, agent, row, park, scenario)), True
        from pipeline.problems.machines.learning import LEARNING  # torch: 2 s and 250 MB that others do without

        return LEARNING.policies(params, agent)[agent], True

    def begin(jobsets: Mapping[int, Sequence[Jobs]], masked: bool) -> Play:
        game, load, number = game_of(jobsets, machines, params.seed)
        jobs = end_to_end(game.episodes)
        simulator = Simulator(jobs, machines, np.zeros(len(jobs.arrival)))
        return Play(simulator, jobs, game.key, load, number, lambda: simulator.started)

    return Placing(
        policy,
        lambda split: read_jobsets(folder, split, park),
        begin,
        lambda policies, jobsets, masked: score(policies, jobsets, machines, params.seed),
        {name: HEURISTICS[name] for name in ("fcfs", "sjf", "saf")},
        references=["sjf", "saf"],
        unit="time units",
        several=len(machines.kind) > 1,
    )


EXPLAINING = explaining(placing, planning)
