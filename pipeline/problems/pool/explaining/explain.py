"""How policies of a pooled cluster are explained."""

from collections.abc import Mapping, Sequence

from pipeline import storage
from pipeline.config import Params
from pipeline.core import Policy
from pipeline.errors import UserError
from pipeline.explaining.explain import Plans
from pipeline.explaining.placing import Placing, explaining
from pipeline.explaining.recording import Play
from pipeline.problems.pool.evaluation.metrics import span_of
from pipeline.problems.pool.evaluation.play import game_of, score
from pipeline.problems.pool.explaining.plans import CANDIDATES, tried
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.nouns import Cluster, JobSet
from pipeline.problems.pool.policies import policy_for
from pipeline.problems.pool.simulator.compiled.batch import Batched
from pipeline.problems.pool.storage import read_jobsets
from pipeline.simulation.results import Results


def placing(params: Params, name: str, agent: str) -> Placing:
    """Return a policy, and where it plays."""
    row = params.pool_scenario(name)
    if row.place_ahead:
        raise UserError(
            f"scenario '{name}': expected place_ahead: false, for SJF and a tree start jobs at once; found true"
        )
    cluster, limit, folder = Cluster.of(row), row.step_limit, storage.jobsets_folder(name)
    if agent in params.agents:
        from pipeline.problems.pool.learning import read_network  # torch: 2 s and 250 MB that a tree does without

        loaded = read_network(params, agent, "policy")
        policy, masked = loaded.policy, loaded.masked
    else:
        policy, masked = policy_for(params, agent, row, name, cluster)

    def begin(jobsets: Mapping[int, Sequence[JobSet]], masked: bool) -> Play:
        game, load, _ = game_of(jobsets, cluster, limit, params.seed, masked)
        return Play(Batched(game.jobs, cluster, limit, skip_forced=masked), game.jobs, game.key, load)

    def scored(
        policies: Mapping[str, Policy], jobsets: Mapping[int, Sequence[JobSet]], masked: bool
    ) -> dict[str, Results]:
        return score(policies, jobsets, cluster, limit, params.seed, masked, measured=span_of(row))

    rules = {rule: HEURISTICS[rule] for rule in ("sjf", "hold")}
    return Placing(
        policy,
        masked,
        lambda split: read_jobsets(folder, split, row.resources),
        begin,
        scored,
        rules,
        references=["sjf"],
        unit="steps",
    )


EXPLAINING = explaining(placing, Plans(tried, CANDIDATES, "a step"))
