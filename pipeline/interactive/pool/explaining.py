"""Explanations of policies of a pooled cluster."""

from collections.abc import Mapping, Sequence

from pipeline.core.config import Params
from pipeline.core.types import Policy
from pipeline.errors import UserError
from pipeline.interactive.explaining.decisions import Play
from pipeline.interactive.explaining.placing import Placing, explaining
from pipeline.interactive.pool.policies import policy_for
from pipeline.problems.pool.env.evaluation.metrics import span_of
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.lookahead.naming import planning
from pipeline.simulation.rollout import numbered


def placing(params: Params, name: str) -> Placing:
    """Return the parts that a scenario supplies."""
    row = params.pool_scenario(name)
    cluster, limit, span = Cluster.of(row), row.step_limit, span_of(row)

    def policy(agent: str) -> tuple[Policy, bool]:
        if row.place_ahead:
            raise UserError(
                f"scenario '{name}': expected place_ahead: false, because SJF and trees start jobs at once; found "
                f"{str(row.place_ahead).lower()}"
            )
        if agent not in params.agents:
            return policy_for(params, agent, row, name, cluster)
        from pipeline.problems.pool.agents.learning import read_network  # torch: 2 s and 250 MB, not needed for a tree

        loaded = read_network(params, agent, "policy")
        return loaded.policy, loaded.masked

    def begin(jobsets: Mapping[int, Sequence[JobSet]], masked: bool) -> Play:
        episodes, load, number, key = numbered(jobsets, params.seed)
        jobs = batch(episodes)
        return Play(Batched(jobs, cluster, limit, skip_forced=masked), jobs, key, load, number)

    return Placing(
        policy,
        begin,
        lambda policies, jobsets, masked: score(policies, jobsets, cluster, limit, params.seed, masked, measured=span),
        {rule: HEURISTICS[rule] for rule in ("sjf", "hold")},
        references=["sjf"],
        unit="steps",
    )


EXPLAINING = explaining(placing, planning)
