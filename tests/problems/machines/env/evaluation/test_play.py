"""Policies on the same jobsets of an event-driven scenario: compiled or in lock step, alone or side by side."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from machine_rows import few

from pipeline.core.config.machines.learning import MachinesKnobs
from pipeline.core.types import ANY_KIND, Policy
from pipeline.problems.machines.env.evaluation import play as event_play
from pipeline.problems.machines.env.evaluation.play import score
from pipeline.problems.machines.env.nouns import GREEDY, Jobs, Machines
from pipeline.problems.machines.env.storage import machines_of
from pipeline.problems.machines.env.workload.source import source
from pipeline.problems.machines.heuristics.rules import HEURISTICS, MIX, heuristics_with, tuned_mix, with_mix
from pipeline.simulation.results import Results, mean_cost
from pipeline.simulation.rollout import Heuristic

PARAMS = few()
ORIGIN = source(PARAMS, "few", None)  # type: ignore[arg-type]  # drawn: nothing is read
MACHINES = machines_of(PARAMS.machines_scenario("few"), ORIGIN.park)
JOBSETS = ORIGIN.split("validation")
SEED = 3


def asked(policy: Policy) -> Policy:
    """The same heuristic without its compiled rule."""
    assert isinstance(policy, Heuristic)
    return Heuristic(policy.decide)


def same(one: Results, other: Results) -> None:
    for mine, theirs in zip(one[:2], other[:2], strict=True):
        pd.testing.assert_frame_equal(mine.drop(columns="policy"), theirs.drop(columns="policy"), check_exact=True)


def test_the_shortest_first_is_worth_what_is_worked_by_hand() -> None:
    one = Machines(np.array([[1000]]), np.array([0]), slots=3, dispatch=GREEDY, pause=16.0, time_limit=1000.0)
    any_kind, ones = np.full(2, ANY_KIND), np.ones(2, dtype=np.int64)
    run = np.array([10.0, 1.0])
    jobs = Jobs(np.zeros(2), run, run, 1000 * ones[:, None], ones, any_kind)
    found = score({name: HEURISTICS[name] for name in ("fcfs", "sjf")}, {50: [jobs]}, one, SEED)
    # In order: the short one ends at 11, and counts for one of 10. Shortest first: the long one ends at 11.
    assert found["fcfs"].by_load == {50: (1 + 1.1) / 2}
    assert found["sjf"].by_load == {50: (1 + 1.1) / 2}
    assert [found[name].mean_by_load("mean_slowdown")[50] for name in ("fcfs", "sjf")] == [(1 + 11) / 2, (1 + 1.1) / 2]
    assert found["sjf"].jobs["start"].tolist() == [1, 0]
    assert mean_cost(found["sjf"], "bounded_slowdown") == (1 + 1.1) / 2
    assert mean_cost(found["sjf"], "completion_time") == (11 + 1) / 2


@pytest.mark.parametrize("name", sorted(HEURISTICS))
def test_a_compiled_rule_does_as_its_policy_in_lock_step(name: str) -> None:
    policies = {"compiled": HEURISTICS[name], "asked": asked(HEURISTICS[name])}
    found = score(policies, JOBSETS, MACHINES, SEED)
    same(found["compiled"], found["asked"])


def test_company_and_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    together = score(HEURISTICS, JOBSETS, MACHINES, SEED)
    assert list(together) == list(HEURISTICS)
    monkeypatch.setattr(event_play, "NUMBERS_ABREAST", 1)
    for name in ("random", "packer"):
        same(score({name: HEURISTICS[name]}, JOBSETS, MACHINES, SEED)[name], together[name])


def test_draws_depend_on_the_seed_alone() -> None:
    one, again, other = (
        score({"random": HEURISTICS["random"]}, JOBSETS, MACHINES, seed)["random"] for seed in (1, 1, 2)
    )
    same(one, again)
    assert (one.jobs["start"] != other.jobs["start"]).any()


def test_play_tells_how_far_it_is() -> None:
    shares: list[float] = []
    score({"sjf": HEURISTICS["sjf"], "mine": asked(HEURISTICS["sjf"])}, JOBSETS, MACHINES, SEED, shares.append)
    assert shares == sorted(shares)
    assert (shares[0] < 1, shares[-1]) == (True, 1)


def test_one_episode_in_lock_step_tells_how_many_of_its_jobs_have_started() -> None:
    shares: list[float] = []
    (load, (jobs, *_)), *_ = JOBSETS.items()
    score({"mine": asked(HEURISTICS["sjf"])}, {load: [jobs]}, MACHINES, SEED, shares.append)
    count = len(jobs.arrival)
    assert set(shares) <= {started / count for started in range(count + 1)}
    assert len(set(shares)) > count / 2


def test_jobs_beyond_the_limit_are_flagged() -> None:
    short = MACHINES._replace(time_limit=10.0)
    found = score({"sjf": HEURISTICS["sjf"]}, JOBSETS, short, SEED)["sjf"]
    assert found.jobs["unfinished"].any()
    assert found.jobsets["unfinished"].sum() == found.jobs["unfinished"].sum()
    assert len(found.jobs) == 2 * 3 * 20


def test_the_mix_of_tetris_is_the_best_of_its_candidates() -> None:
    mixes = ((1.0, 0.0), (0.0, 0.0), (0.3, 0.2))
    knobs = MachinesKnobs(mixes=mixes)

    def on_validation(policies: Mapping[str, Policy]) -> dict[str, Results]:
        return score(policies, JOBSETS, MACHINES, SEED)

    cost = {mix: mean_cost(on_validation({"": with_mix(*mix)})[""], "bounded_slowdown") for mix in mixes}
    chosen = tuned_mix(on_validation, knobs)
    assert tuple(chosen[name] for name in MIX) == min(mixes, key=cost.__getitem__)
    named = heuristics_with(chosen)
    assert list(named) == list(HEURISTICS)
    assert mean_cost(on_validation({"": named["tetris"]})[""], "bounded_slowdown") == min(cost.values())
