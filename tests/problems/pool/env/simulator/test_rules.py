"""Every heuristic and its compiled rule: the same schedules bit for bit, in any company, in slices of any length."""

import numba
import numpy as np
import pytest
from builders import clusters, jobset, jobsets, random_jobset
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.types import CompiledRule, Observation, Policy, keys, uniform
from pipeline.problems.pool.env.nouns import Cluster, JobSet, Schedule, batch, repeat
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import RULES, players
from pipeline.problems.pool.heuristics.scores import HEURISTICS, with_knobs
from pipeline.simulation.compiled import uniform as compiled_uniform
from pipeline.simulation.rollout import Heuristic, compiled_rule_of, play_together, sjf
from tests.oracles.pool_heuristics import plain_policy, plain_score

KNOBS = st.tuples(st.floats(0.0, 1.0), st.integers(1, 9), st.lists(st.floats(-2.0, 2.0), min_size=15, max_size=15))
WEIGHTS = [1.1, 0.3, -0.4, 0.2, 0.7, 0.5, -0.3, 1.2, -1.9, -0.2, 0.4, 0.6, 0.3, -0.5, 0.2]
INCREASED = Cluster((7, 5, 3, 9), 8, 12, 4, False)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Cluster, list[JobSet], int]:
    """A cluster, some jobsets, and a step limit that may cut them."""
    of = draw(clusters(most_resources=4, most_slots=12))
    return of, draw(st.lists(jobsets(of), min_size=1, max_size=3)), draw(st.integers(1, 60))


def all_heuristics(weight: float, long_steps: int, weights: list[float]) -> list[Heuristic]:
    """Every heuristic, those with knobs twice."""
    table = [policy for policy in HEURISTICS.values() if isinstance(policy, Heuristic)]
    spans = [with_knobs(name, long_steps, 6) for name in ("hold_until", "hold_long")]
    return [
        *table, with_knobs("tetris", weight), with_knobs("hold", long_steps), *spans, with_knobs("linear", *weights)
    ]  # fmt: skip


def by_rules(
    of: Cluster, several: list[JobSet], limit: int, policies: list[Heuristic], skip: bool, most: int
) -> tuple[Schedule, list[int]]:
    """Play all jobsets under all policies in one batch; return the schedule, and how many decisions each made."""
    rules = [policy.rule for policy in policies for _ in several]
    simulator = Batched(batch(several * len(policies)), of, limit, skip_forced=skip)
    who = players([rule for rule in rules if rule is not None], np.tile(key_of(several), len(policies)))
    while len(rows := simulator.rows):
        simulator.play(rows, who, most)
    return simulator.schedule(), who.decision.tolist()


def key_of(several: list[JobSet]) -> np.ndarray:
    return keys(3, np.arange(len(several)), np.zeros(len(several), dtype=np.int64))


def assert_same(of: Cluster, several: list[JobSet], limit: int, policies: list[Heuristic], skip: bool) -> None:
    """Play all by the rules, and each by its plain definition; on the way, score what is shown both ways."""
    compiled, _ = by_rules(of, several, limit, policies, skip, most=7)
    jobs, episodes, count = sum(len(jobs.arrival) for jobs in several), len(several), len(policies)
    simulator = Batched(batch(several * count), of, limit, skip_forced=skip)
    whose = np.repeat(np.arange(count), episodes)
    for _ in play_together(simulator, [checked(policy) for policy in policies], whose, np.tile(key_of(several), count)):
        pass
    for name, asked, played in zip(Schedule._fields, simulator.schedule(), compiled, strict=True):
        size = jobs if name in ("start", "finish", "withheld") else episodes
        for policy, one, other in zip(policies, asked.reshape(-1, size), played.reshape(-1, size), strict=True):
            assert one.tolist() == other.tolist(), (policy.rule, name)


def checked(policy: Heuristic) -> Policy:
    """A rule by its plain definition, which compares the scores of waiting jobs, and the actions."""
    assert policy.rule is not None
    decide, score = plain_policy(policy.rule), policy.score
    if score is None:
        return decide
    plain = plain_score(policy.rule)

    def decided(view: Observation, draws: np.ndarray) -> np.ndarray:
        actions, waits = decide(view, draws), view.duration > 0
        assert score(view)[waits].tolist() == plain(view)[waits].tolist(), policy.rule
        assert policy(view, np.zeros(len(draws))).tolist() == actions.tolist(), policy.rule
        return actions

    return decided


def test_every_heuristic_has_a_compiled_rule_of_its_own() -> None:
    rules = {name: compiled_rule_of(policy) for name, policy in HEURISTICS.items()}
    assert {name: rule.rule for name, rule in rules.items() if rule is not None} == {
        name: name
        for name in RULES
        if name != "scores"  # the rule of a network
    }
    assert compiled_rule_of(Heuristic(lambda view, draws: sjf(view).argmax(axis=1))) is None
    assert compiled_rule_of(lambda view, draws: sjf(view).argmax(axis=1)) is None


def test_a_rule_with_weights_has_one_for_every_feature() -> None:
    jobs = [jobset((0, 1, 1))]
    assert players([CompiledRule("linear", weights=tuple(WEIGHTS))], key_of(jobs)).weights.tolist() == [WEIGHTS]
    with pytest.raises(ValueError, match="expected 15 weights, got 14"):
        players([CompiledRule("sjf"), CompiledRule("linear", weights=tuple(WEIGHTS[1:]))], key_of(jobs * 2))


@settings(max_examples=75)
@given(problem=problems(), knobs=KNOBS, skip=st.booleans())
def test_a_rule_decides_as_the_heuristic_does(
    problem: tuple[Cluster, list[JobSet], int], knobs: tuple[float, int, list[float]], skip: bool
) -> None:
    assert_same(*problem, all_heuristics(*knobs), skip)


@pytest.mark.parametrize("of", [Cluster((10, 10), 20, 10, 60, ahead) for ahead in (False, True)] + [INCREASED])
def test_rules_decide_alike_where_many_jobs_compete(of: Cluster) -> None:
    rng = np.random.default_rng(6)
    several = [random_jobset(rng, of, 60, 50) for _ in range(3)]
    assert_same(of, several, 2000, all_heuristics(0.3, 4, WEIGHTS), skip=True)


def test_a_rule_decides_alike_in_lock_step_and_counts_what_it_was_asked() -> None:
    of = Cluster((5, 4), 8, 4, 4, True)
    rng = np.random.default_rng(1)
    several = [random_jobset(rng, of, 20, 20) for _ in range(4)]
    rules = [
        CompiledRule("random"),
        CompiledRule("hold", 4),
        CompiledRule("linear", weights=tuple(WEIGHTS)),
        CompiledRule("easy"),
    ]
    simulator = Batched(batch(several), of, 100)
    who, asked = players(rules, key_of(several)), np.zeros(4, dtype=np.int64)
    while len(rows := simulator.rows):
        simulator.step(rows, simulator.decide(rows, who))
        asked[rows] += 1
    assert who.decision.tolist() == asked.tolist()
    whole, again = Batched(batch(several), of, 100), players(rules, key_of(several))
    whole.play(whole.rows, again, 10_000)
    assert not len(whole.rows)
    assert again.decision.tolist() == asked.tolist()
    for one, other in zip(simulator.schedule(), whole.schedule(), strict=True):
        assert one.tolist() == other.tolist()


def test_play_stops_after_as_many_decisions_as_it_may_make() -> None:
    simulator = Batched(batch([jobset((0, 1, 1), (0, 1, 1)), jobset((0, 1, 1))]), Cluster((2,), 4, 2, 0, False), 9)
    who = players([CompiledRule("sjf"), CompiledRule("sjf")], key_of([jobset((0, 1, 1))] * 2))
    simulator.play(simulator.rows, who, 2)
    assert who.decision.tolist() == [2, 2]
    assert simulator.schedule().start.tolist() == [0, 0, 0]
    assert simulator.rows.tolist() == [0]  # the other has let a step pass, too, and is over
    simulator.play(simulator.rows, who, 2)
    assert who.decision.tolist() == [3, 2]
    assert not len(simulator.rows)


def test_a_rule_draws_the_numbers_of_core() -> None:
    key, decision = keys(4, np.arange(50), np.arange(50)), np.arange(50) * 7

    @numba.njit
    def drawn(key: np.ndarray, decision: np.ndarray) -> list[float]:
        return [compiled_uniform(key[k], decision[k]) for k in range(len(key))]

    assert drawn(key, decision) == uniform(key, decision).tolist()


@pytest.mark.usefixtures("two_threads")
def test_the_number_of_threads_changes_nothing_for_rules() -> None:
    of = Cluster((5, 5), 8, 4, 4, True)
    rng = np.random.default_rng(4)
    several = repeat([random_jobset(rng, of, 20, 20) for _ in range(10)], 3)
    played = []
    for threads in (numba.get_num_threads(), 1):
        numba.set_num_threads(threads)
        played.append(by_rules(of, several, 200, all_heuristics(0.2, 3, WEIGHTS), skip=True, most=50)[0])
    assert all(np.array_equal(one, other) for one, other in zip(*played, strict=True))
