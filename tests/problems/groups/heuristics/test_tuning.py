"""What validation jobsets choose about the rules of sharing: orders, fixed weights, the best rule at each load."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from group_rows import cluster, group_jobs

from pipeline.core.types import FloatArray
from pipeline.problems.groups.env.evaluation.play import Player, controlled, score
from pipeline.problems.groups.env.nouns import Configurations, Jobs, SharedCluster, batch
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from pipeline.problems.groups.env.teachers import fixed
from pipeline.problems.groups.heuristics import tuning
from pipeline.problems.groups.heuristics.names import RULES
from pipeline.problems.groups.heuristics.tuning import (
    CANDIDATES,
    HEURISTICS,
    REFERENCES,
    best_rules,
    capacity,
    parts_of_work,
    rules_with,
    tuned_rules,
)
from pipeline.problems.parts import Best
from pipeline.simulation.results import Results, mean_cost

AREA = cluster(6)
LEVELS = Configurations(np.array([[0], [2], [3], [6]]), 2)

# A long job ahead of a short one in every group, of two queues: the short ones wait 1 or 20.
QUEUES = group_jobs((0, 20, 3, 0, 0), (0, 1, 3, 0, 1), (0, 20, 3, 1, 0), (0, 1, 3, 1, 1))
# Five jobs of one group for each of the other's: a unit each, so that the first group is served best by five units.
UNEVEN = group_jobs(*((0, 10, 1, 0),) * 5, (0, 10, 1, 1))


class Play:
    """Scores controllers on some jobsets, and remembers whom."""

    def __init__(self, jobsets: Mapping[int, list[Jobs]], area: SharedCluster = AREA) -> None:
        self.jobsets, self.area, self.asked = jobsets, area, list[str]()

    def __call__(self, players: Mapping[str, Player]) -> dict[str, Results]:
        self.asked += players
        return score(players, self.jobsets, self.area, seed=1)

    def delay(self, player: Player) -> float:
        return mean_cost(score({"": player}, self.jobsets, AREA, seed=1)[""], "delay")


def on(*jobsets: Jobs) -> Play:
    return Play({80: list(jobsets)})


def shares(player: Player, jobs: Jobs) -> tuple[list[int], list[int]]:
    """What is set for the first interval: units, and orders."""
    groups = GroupsSimulator(batch([jobs]), AREA, np.ones(len(jobs.arrival)))
    setting = player.act(groups, groups.rows, groups.observe(groups.rows), np.zeros(1))
    return setting.share[0, :, 0].tolist(), setting.order[0].tolist()


# Parts of the work


def test_parts_of_work_are_units_times_estimates_over_all_jobsets() -> None:
    estimate = group_jobs((0, 1, 6, 0), (0, 10, 3, 1))._replace(estimate=np.array([5.0, 10.0]))
    # Group 0: 1 * 5 + 1/6 * 6 + 1/2 * 8 = 10. Group 1: 1/2 * 10 + 1 * 25 = 30.
    other, third = group_jobs((0, 6, 1, 0), (3, 25, 6, 1)), group_jobs((0, 8, 3, 0))
    assert parts_of_work({60: [estimate, other], 90: [third]}, AREA).tolist() == pytest.approx([0.25, 0.75])


def test_a_group_without_jobs_has_a_part_all_the_same() -> None:
    # A hundredth of an equal part, and then all sum to 1.
    found = parts_of_work({60: [group_jobs((0, 1, 6, 0))]}, AREA)
    assert found.tolist() == pytest.approx([1 / 1.005, 0.005 / 1.005])


# What is chosen


def test_every_rule_has_the_order_in_which_jobs_wait_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CANDIDATES", 3)
    found = tuned_rules(on(QUEUES), AREA, {80: [QUEUES]}, seed=1)
    orders = {name: value for name, value in found.items() if name.endswith("_order")}
    assert orders == {f"{name}_order": 1.0 for name in (*HEURISTICS, "capacity", "undivided", "fixed")}
    turned = QUEUES._replace(queue=1 - QUEUES.queue)
    found = tuned_rules(on(turned), AREA, {80: [turned]}, seed=1)
    assert {value for name, value in found.items() if name.endswith("_order")} == {0.0}


@pytest.fixture(scope="module")
def tuned() -> tuple[Play, dict[str, float]]:
    """What was tuned on uneven jobs, where both orders are as good, and who was asked to play for that."""
    play = on(UNEVEN)
    return play, tuned_rules(play, AREA, {80: [UNEVEN]}, seed=1)


def test_of_orders_that_are_as_good_the_first_is_chosen(tuned: tuple[Play, dict[str, float]]) -> None:
    assert {value for name, value in tuned[1].items() if name.endswith("_order")} == {0.0}


def test_fixed_weights_are_the_best_of_their_candidates(tuned: tuple[Play, dict[str, float]]) -> None:
    play, found = tuned
    weights = [found["fixed_0"], found["fixed_1"]]
    assert sum(weights) == pytest.approx(1)
    assert play.delay(Player(controlled(fixed(AREA, 0, weights)))) == 0  # five units and one
    assert play.delay(Player(controlled(fixed(AREA, 0, [1, 1])))) == 20 / 6  # three units: two jobs wait for 10
    assert [play.asked.count(str(k)) for k in range(CANDIDATES)] == [1] * CANDIDATES


def test_equal_shares_and_shares_by_work_are_among_the_candidates() -> None:
    given: dict[str, list[float]] = {}

    class Watching(Play):
        def __call__(self, players: Mapping[str, Player]) -> dict[str, Results]:
            given.update({name: shares(player, UNEVEN)[0] for name, player in players.items() if name.isdigit()})
            return super().__call__(players)

    tuned_rules(Watching({80: [UNEVEN]}), AREA, {80: [UNEVEN]}, seed=1)
    # Weights by work 5 : 1, to the powers 0, 1/2 (2.24 : 1) and 1; whole units of six.
    assert [given[name] for name in "012"] == [[3, 3], [4, 2], [5, 1]]
    assert len({tuple(share) for share in given.values()}) > 3  # the others are spread around these


def test_candidates_are_drawn_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CANDIDATES", 10)
    jobs = group_jobs(*((0, 10, 1, 0),) * 4, (0, 10, 4, 1))
    area = cluster(6, time_limit=60.0)  # who gives too few units to the second group waits for no longer
    one, again, other = (tuned_rules(Play({80: [jobs]}, area), area, {80: [UNEVEN]}, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


# The rules as chosen

KNOBS = {f"{name}_order": 1.0 for name in (*HEURISTICS, "capacity", "undivided", "fixed")} | {
    "fixed_0": 0.5,
    "fixed_1": 0.5,
    "part_0": 1 / 3,
    "part_1": 2 / 3,
}


def test_rules_are_as_their_knobs_say() -> None:
    found = rules_with(KNOBS, AREA, LEVELS)
    assert tuple(found) == RULES
    assert all(player.expectation is None for player in found.values())
    many = group_jobs((0, 9, 6, 0), (0, 9, 6, 0), (0, 9, 6, 1), (0, 9, 6, 1))
    assert shares(found["equal"], many) == ([3, 3], [1, 1])
    assert shares(found["capacity"], many) == ([2, 4], [1, 1])
    assert shares(found["undivided"], many) == ([6, 6], [1, 1])
    first = rules_with(KNOBS | {"fixed_0": 1.0, "fixed_1": 0.0, "fixed_order": 0.0}, AREA, LEVELS)
    assert shares(first["fixed"], many) == ([6, 0], [0, 0])


def test_the_oracle_knows_who_comes_and_lookahead_does_not() -> None:
    found = rules_with(KNOBS, AREA, LEVELS)
    # At 0 group 0 wants two units, at 0.5 group 1 three; what nobody is known to want goes where work came last.
    coming = group_jobs((0, 9, 2, 0), (0.5, 9, 3, 1))
    assert shares(found["lookahead"], coming)[0] == [6, 0]
    assert shares(found["oracle"], coming)[0] == [3, 3]


def test_what_was_tuned_can_be_played(tuned: tuple[Play, dict[str, float]]) -> None:
    _, knobs = tuned
    assert set(knobs) == set(KNOBS)
    play = on(QUEUES, UNEVEN)
    scored = play(rules_with(knobs, AREA, LEVELS))
    assert tuple(scored) == RULES
    assert mean_cost(scored["capacity"], "delay") == play.delay(
        Player(controlled(capacity(AREA, 0, parts_of_work({80: [UNEVEN]}, AREA))))
    )


# The best rule at each load


def results(slowdown: tuple[float, float], wait: tuple[float, float]) -> Results:
    """Of two loads with two jobsets each, one half a unit above the mean and one below."""
    frame = pd.DataFrame({"load": [50, 50, 90, 90]})
    off: FloatArray = np.array([0.5, -0.5, 0.5, -0.5])
    return Results(frame, frame.assign(mean_slowdown=np.repeat(slowdown, 2) + off, mean_wait=np.repeat(wait, 2) + off))


def test_the_best_rule_is_by_slowdown_and_by_waiting_time_and_is_no_reference() -> None:
    examined = {
        "equal": results((2, 5), (9, 9)),
        "drf": results((3, 4), (7, 8)),
        "fixed": results((4, 6), (6, 10)),
        **{name: results((1, 1), (1, 1)) for name in REFERENCES},
    }
    assert best_rules(examined) == Best({50: "equal", 90: "drf"}, {50: "fixed", 90: "drf"})
