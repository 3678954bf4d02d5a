"""How validation jobsets choose the weights of the linear rule, and what becomes of them."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from builders import tiny_jobset
from pydantic import ValidationError

from pipeline.core.config import LinearRuleSearch, PoolKnobs
from pipeline.core.types import Policy
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.env.teachers import FEATURES, FIRST
from pipeline.problems.pool.heuristics.scores import HEURISTICS, heuristics_with, tuned, tuned_linear, with_knobs
from pipeline.simulation.results import Results
from pipeline.simulation.rollout import compiled_rule_of

CLUSTER, LIMIT = Cluster((4, 4), 6, 3, 6, False), 60
JOBSETS: dict[int, list[JobSet]] = {load: [tiny_jobset(load, 0, number) for number in range(5)] for load in (80, 160)}
KNOBS = PoolKnobs(tetris_weights=(0.0,), hold_quantiles=(1.0,))
SMALL = LinearRuleSearch(population=6, rounds=3, elite=2)
AIM = np.linspace(-1.0, 1.0, len(FEATURES))


def play(policies: Mapping[str, Policy]) -> dict[str, Results]:
    return score(policies, JOBSETS, CLUSTER, LIMIT, 1)


def weights_of(policy: Policy) -> tuple[float, ...]:
    rule = compiled_rule_of(policy)
    return () if rule is None or rule.weights is None else rule.weights


def told(means: Mapping[int, float]) -> Results:
    """Results of which only the mean slowdown by load is known."""
    table = pd.DataFrame({"load": list(means), "mean_slowdown": list(means.values())})
    return Results(table, table)


def cost(policy: Policy) -> float:
    """The mean over loads of slowdown to SJF's."""
    found = play({"mine": policy, "sjf": HEURISTICS["sjf"]})
    mine, sjf = found["mine"].by_load, found["sjf"].by_load
    return sum(mine[load] / sjf[load] for load in JOBSETS) / len(JOBSETS)


class Listened:
    """Scores policies, and remembers the weights that were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, ...]] = []

    def __call__(self, policies: Mapping[str, Policy]) -> dict[str, Results]:
        self.asked += [weights for policy in policies.values() if (weights := weights_of(policy))]
        return play(policies)


class Valley:
    """Slowdowns that are least where weights are at AIM; SJF's is 2."""

    def __init__(self) -> None:
        self.costs: list[float] = []

    def __call__(self, policies: Mapping[str, Policy]) -> dict[str, Results]:
        means = {name: self.depth(weights_of(policy)) for name, policy in policies.items()}
        self.costs += [mean for name, mean in means.items() if name != "sjf"]
        return {name: told({50: mean}) for name, mean in means.items()}

    @staticmethod
    def depth(weights: tuple[float, ...]) -> float:
        return 1.0 + float(np.square(np.array(weights) - AIM).sum()) if weights else 2.0


def by_order(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[float, ...]:
    """What is chosen of the first two candidates by their slowdowns, where SJF has 2 at load 50 and 100 at 190."""

    def answers(policies: Mapping[str, Policy]) -> dict[str, Results]:
        means = {(): {50: 2.0, 190: 100.0}, FIRST[0]: first, FIRST[1]: second}
        return {name: told(means[weights_of(policy)]) for name, policy in policies.items()}

    return tuned_linear(answers, LinearRuleSearch(population=2, rounds=1, elite=1), seed=1)


def test_no_load_outweighs_the_others() -> None:
    # (1 / 2 + 100 / 100) / 2 = 0.75 against (2 / 2 + 90 / 100) / 2 = 0.95, though 100 + 1 is more than 90 + 2
    thrifty, mighty = {50: 1.0, 190: 100.0}, {50: 2.0, 190: 90.0}
    assert by_order(thrifty, mighty) == FIRST[0]
    assert by_order(mighty, thrifty) == FIRST[1]


def test_the_weights_are_the_best_of_all_that_were_tried() -> None:
    listened = Listened()
    found = tuned_linear(listened, SMALL, seed=1)
    assert len(listened.asked) == 3 * 6
    assert listened.asked[: len(FIRST)] == list(FIRST)
    assert cost(with_knobs("linear", *found)) == min(cost(with_knobs("linear", *weights)) for weights in listened.asked)


@pytest.mark.parametrize("population", [2, 6])
def test_the_linear_rule_is_never_worse_than_sjf_align_where_it_was_tuned(population: int) -> None:
    found = tuned_linear(play, LinearRuleSearch(population=population, rounds=1, elite=1), seed=1)
    assert cost(with_knobs("linear", *found)) <= cost(HEURISTICS["sjf_align"])


def test_the_first_candidate_plays_as_sjf_align_does() -> None:
    found = play(
        {"sjf_align": HEURISTICS["sjf_align"], "linear": with_knobs("linear", *FIRST[0]), "sjf": HEURISTICS["sjf"]}
    )
    starts = {name: done.jobs["start"].tolist() for name, done in found.items()}
    assert starts["linear"] == starts["sjf_align"] != starts["sjf"]


def test_each_round_is_drawn_around_the_best_of_the_one_before() -> None:
    valley = Valley()
    found = tuned_linear(valley, LinearRuleSearch(population=40, rounds=20, elite=8), seed=1)
    rounds = np.array(valley.costs).reshape(20, 40).mean(axis=1)
    assert rounds[-1] < 0.25 * rounds[0]
    assert Valley.depth(found) == min(valley.costs)


def test_the_same_seed_finds_the_same_weights() -> None:
    config = LinearRuleSearch(population=20, rounds=6, elite=4)
    once, again, other = (tuned_linear(Valley(), config, seed) for seed in (1, 1, 2))
    assert once == again != other


def test_tuned_weights_are_knobs_that_the_linear_rule_is_made_of() -> None:
    knobs = tuned(play, KNOBS.model_copy(update={"linear": SMALL}), JOBSETS, seed=3)
    assert list(knobs) == ["tetris", "hold", *(f"linear_{name}" for name in FEATURES)]
    assert tuple(knobs[f"linear_{name}"] for name in FEATURES) == tuned_linear(play, SMALL, seed=3)
    named = heuristics_with(knobs)
    assert list(named) == list(HEURISTICS)
    assert weights_of(named["linear"]) == tuned_linear(play, SMALL, seed=3)


def test_without_a_search_the_linear_rule_is_as_it_was() -> None:
    knobs = tuned(play, KNOBS, JOBSETS)
    assert list(knobs) == ["tetris", "hold"]
    assert heuristics_with(knobs)["linear"] is HEURISTICS["linear"]


def test_no_more_are_best_than_are_tried() -> None:
    with pytest.raises(ValidationError, match=r"expected elite at most population \(4\), got 5"):
        LinearRuleSearch(population=4, rounds=1, elite=5)
