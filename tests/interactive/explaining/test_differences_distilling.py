"""What is told of an agent whose ways are known: one that holds long jobs, and SJF itself."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from builders import cluster, jobset
from readable import faults

from pipeline.comparing.plots import png
from pipeline.core.config import Evaluation
from pipeline.core.types import FloatArray, IntArray, Observation, Policy, keys
from pipeline.interactive.explaining.decisions import Decisions, Play, outcomes_by, record, within
from pipeline.interactive.explaining.differences import (
    CLASSES,
    DIFFERENCES,
    EFFECTS,
    IMPORTANCE,
    JOBS,
    OUTCOMES,
    WITHHELD,
    Times,
    agreement,
    by_length,
    classes,
    differences,
    edges,
    effects,
    importance,
    jobs,
    withheld,
)
from pipeline.interactive.explaining.distilling import distil, examples, grow, rules
from pipeline.interactive.explaining.explain import figures
from pipeline.interactive.explaining.placing import summary
from pipeline.interactive.explaining.tree import TreeCard, decide, tree_policy, words
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.simulation.rollout import choose, heuristic, sjf
from tests.oracles.pool_heuristics import hold

CLUSTER, LIMIT, LONG = cluster(4, horizon=8, slots=3), 100, 5
NAMED = {"agent": "holder", "scenario": "online"}
SETTINGS = Evaluation(resamples=200, confidence=0.9)
VOID = 3
PARTS = ["agrees", "another_machine", "another_job", "waits"]

# Four units. At step 0, a runs for two steps on one unit, and b and c wait beside it: b for three units and six steps,
# c for one unit and three steps. The next job, d, comes at step 4.
WORKED = jobset((0, 2, 1), (0, 6, 3), (0, 3, 1), (4, 1, 1))


def patient(view: Observation) -> FloatArray:
    """Shortest first, and no long job beside another that runs."""
    runs = (view.free[:, 0, 0] < view.capacity[:, 0]).any(axis=1)
    return np.where((view.duration >= LONG) & runs[:, None], -np.inf, sjf(view))


HOLDER: Policy = heuristic(patient)
# Asked move by move, for to compile rules takes longer than to do without.
PLAIN: dict[str, Policy] = {"sjf": heuristic(sjf), "hold": heuristic(hold(LONG))}


def fifth(number: int) -> JobSet:
    """Twelve jobs of which every fourth is long; they come two a step."""
    rng = np.random.default_rng(number)
    return jobset(*((k // 2, 6 if k % 4 == 3 else int(rng.integers(1, 4)), int(rng.integers(1, 4))) for k in range(12)))


JOBSETS = {100: [fifth(k) for k in range(8)], 150: [fifth(k) for k in range(8, 16)]}


def game(*jobsets: JobSet, masked: bool = True) -> Play:
    number, jobs = np.arange(len(jobsets)), batch(list(jobsets))
    key, load = keys(1, number, np.zeros_like(number)), np.full(len(jobsets), 100)
    return Play(Batched(jobs, CLUSTER, LIMIT, skip_forced=masked), jobs, key, load, number)


@pytest.fixture(scope="module")
def worked() -> Decisions:
    return record(game(WORKED), HOLDER)


@pytest.fixture(scope="module")
def held() -> Decisions:
    return record(game(*JOBSETS[100], *JOBSETS[150]), HOLDER)


LOADS = np.repeat([100, 150], 8)


def test_an_agents_decisions_are_recorded_beside_sjfs(worked: Decisions) -> None:
    # a first (two steps), then c, then the agent holds b until a and c have ended, where the move is forced or SJF's.
    assert worked.agent[:3].tolist() == [0, 2, VOID]
    assert worked.sjf[:3].tolist()[:2] == [0, 2]
    assert worked.of("duration", worked.agent)[:3].tolist() == [2, 3, 0]
    assert worked.of("demand", worked.agent)[:2].tolist() == [0.25, 0.25]


def test_the_next_arrival_is_told_until_the_last_has_come(worked: Decisions) -> None:
    assert worked.until_arrival[:2].tolist() == [4, 4]
    assert set(worked.until_arrival[~np.isnan(worked.until_arrival)]) <= {4, 3, 2, 1}


def test_sjf_differs_from_itself_in_nothing() -> None:
    same = record(game(*JOBSETS[100]), PLAIN["sjf"])
    table = DIFFERENCES.validate(differences(same, np.full(8, 100)))
    assert set(table["by"]) == {"load", "waiting", "free"}
    assert (table[PARTS].to_numpy() == [1.0, 0.0, 0.0, 0.0]).all()
    assert JOBS.validate(jobs(same, np.full(8, 100)))["decisions"].tolist() == [0]
    assert withheld(same, np.full(8, 100))["withheld"].tolist() == [0]


def test_a_job_as_short_as_sjfs_counts_as_the_same() -> None:
    last = heuristic(lambda view: sjf(view) + 1e-6 * np.arange(view.duration.shape[1]))
    alike = record(game(jobset((0, 2, 1), (0, 2, 1), (0, 2, 1))), last)
    assert (alike.agent != alike.sjf).any()
    assert alike.same_job.all()


def test_what_is_not_legal_counts_as_withheld() -> None:
    def stubborn(view: Observation, draws: FloatArray) -> IntArray:
        """The second slot first, whether or not there is a job that fits."""
        wanted = choose(sjf(view), view)
        return np.where(view.now == 0, 1, wanted)

    found = record(game(jobset((0, 2, 1), (0, 2, 4)), masked=False), stubborn)
    assert found.agent[0] == 1  # all four units fit an idle cluster
    again = record(game(jobset((0, 2, 1)), masked=False), stubborn)
    assert again.agent[0] == VOID


def test_shares_add_up_and_only_long_jobs_are_withheld(held: Decisions) -> None:
    table = DIFFERENCES.validate(differences(held, LOADS))
    assert table.loc[table["by"] == "load", "from"].tolist() == [100, 150]
    assert table[PARTS].sum(axis=1).to_numpy() == pytest.approx(1)
    assert (table.groupby("by")["decisions"].sum() == len(held.agent)).all()
    out = WITHHELD.validate(withheld(held, LOADS))
    assert out["duration"].tolist() == [6, 6]
    assert out["withheld"].sum() == sum(int(held.features.fits[k].sum()) for k in np.flatnonzero(held.agent == VOID))


def test_classes_tell_who_is_withheld(held: Decisions) -> None:
    table = CLASSES.validate(classes(Times(held)))
    assert table["n"].sum() == len(Times(held).withheld)
    short = table[table["duration_to"] < LONG]
    assert (short["withheld"].dropna() == 0).all()
    assert table.loc[table["duration_from"] >= LONG, "withheld"].max() > 0.5


def test_bins_split_no_value() -> None:
    assert edges(np.array([1.0] * 9 + [2.0]), 4) == [(1.0, 1.0), (2.0, 2.0)]
    assert edges(np.array([3.0, 3.0]), 4) == [(3.0, 3.0)]


def test_effects_of_duration_are_those_of_the_rule(held: Decisions) -> None:
    table = EFFECTS.validate(effects(Times(held)))
    rows = table[table["feature"] == "duration"]
    assert rows.loc[rows["high"] < LONG, "withheld"].eq(0).all()
    assert rows.loc[rows["low"] >= LONG, "withheld"].gt(0).all()
    assert rows["n"].sum() == len(Times(held).withheld)


def test_a_tree_learns_who_is_withheld(held: Decisions) -> None:
    card = grow([examples(held)], 6, NAMED, seed=1)
    assert card.leaves <= 6
    assert card.nodes[0].feature in ("duration", "times_shortest", "shorter_waiting", "free", "until_free")
    assert agreement(card, held) > 0.9
    long = np.flatnonzero(held.agent == VOID)
    assert (decide(card, held.features)[long] == VOID).mean() > 0.9


def test_a_stored_tree_has_the_chances_that_its_rows_have(held: Decisions) -> None:
    learned = examples(held)
    card = grow([learned], 6, NAMED, seed=1)
    chance = card.chances(learned.rows)
    for value in np.unique(chance):
        inside = chance == value
        share = np.average(learned.started[inside], weights=learned.weight[inside])
        assert value == pytest.approx(share, rel=1e-4)


def test_a_tree_of_an_agent_that_withholds_nothing_always_starts() -> None:
    same = record(game(*JOBSETS[100]), PLAIN["sjf"])
    card = grow([examples(same)], 4, NAMED, seed=1)
    assert (decide(card, same.features) < VOID).all()


def test_a_feature_matters_as_much_as_agreement_is_lost_without_it(held: Decisions) -> None:
    card = grow([examples(held)], 6, NAMED, seed=1)
    table = IMPORTANCE.validate(importance(card, held, np.random.default_rng(1)))
    assert table["lost"].iloc[0] > 0.05
    asked = {node.feature for node in card.nodes if node.feature is not None}
    assert (table.loc[~table["feature"].isin(asked), "lost"] == 0).all()
    assert table["agreement"].unique().tolist() == [agreement(card, held)]


def test_the_cheapest_tree_of_all_rounds_is_kept(held: Decisions) -> None:
    played: list[int] = []
    costs = iter([[5.0] * 5 + [3.0], [4.0, 2.0] + [4.0] * 4, [2.5] * 6])

    def asked(card: object) -> Decisions:
        played.append(1)
        return held

    card = distil(held, asked, lambda cards: next(costs), [4], 2, NAMED, seed=1)
    assert len(played) == 2
    assert card.threshold == 0.2  # the second of the second round


def test_the_tree_plays_nearly_as_its_agent(held: Decisions) -> None:
    card = grow([examples(held)], 8, NAMED, seed=1)
    policies = {"holder": HOLDER, "holder_tree": tree_policy(card)} | PLAIN
    results = score(policies, JOBSETS, CLUSTER, LIMIT, 1)
    table = OUTCOMES.validate(outcomes_by("jobs", by_length(results), "online", ("sjf", "holder"), SETTINGS, 1))
    rows = table[(table["jobs"] == "all") & (table["load"] == "all")].set_index(["policy", "against"])
    assert rows.loc[("holder_tree", "holder"), "mean"] == pytest.approx(results["holder_tree"].mean)
    assert abs(rows.loc[("holder_tree", "holder"), "difference"]) < 0.1
    by_hand = results["holder"].jobs
    shorter = by_hand[by_hand["duration"] <= by_hand["duration"].mean()]
    short = shorter.groupby(["load", "jobset"])["slowdown"].mean().groupby("load").mean().mean()
    mine = table[(table["jobs"] == "short") & (table["load"] == "all") & (table["policy"] == "holder")]
    assert mine["mean"].iloc[0] == pytest.approx(short)


def test_rules_are_readable(held: Decisions) -> None:
    card = grow([examples(held)], 3, NAMED, seed=1)
    text = rules(card, "steps", several=False)
    assert text.startswith("# Rules of holder_tree\n")
    assert "machines" not in text
    assert "It goes to the first of the machines" in rules(card, "steps", several=True)
    assert text.count("**start**") + text.count("**withhold**") == 3


def test_figures_and_lines_are_the_same_twice(held: Decisions) -> None:
    def told() -> tuple[list[str], dict[str, bytes]]:
        card = grow([examples(held)], 6, NAMED, seed=1)
        policies = {"holder": HOLDER, "holder_tree": tree_policy(card)} | PLAIN
        results = score(policies, JOBSETS, CLUSTER, LIMIT, 1)
        tables: dict[str, pd.DataFrame] = {
            "differences": differences(held, LOADS),
            "jobs": jobs(held, LOADS),
            "withheld": withheld(held, LOADS),
            "classes": classes(Times(held)),
            "effects": effects(Times(held)),
            "importance": importance(card, held, np.random.default_rng(1)),
            "outcomes": outcomes_by("jobs", by_length(results), "online", ("sjf", "holder"), SETTINGS, 1),
        }
        drawn = figures("holder", tables, words("steps"))
        assert [fault for figure in drawn.values() for fault in faults(figure)] == []
        return summary(tables, card, words("steps"), "steps"), {name: png(figure) for name, figure in drawn.items()}

    lines, pictures = told()
    assert (lines, pictures) == told()
    assert set(pictures) == {"differences", "classes", "effects", "outcomes"}
    assert lines[0].startswith(f"holder: of {len(held.agent)} decisions in which a job could start, as SJF in ")
    assert lines[1].startswith("withheld jobs: 6.0 steps long")


def test_long_jobsets_are_limited_by_their_jobs_but_every_load_keeps_one() -> None:
    """A jobset of each load has 24 jobs together."""
    kept = {jobs: [len(some) for some in within(JOBSETS, 5, jobs).values()] for jobs in (10, 24, 72, 10_000)}
    assert kept == {10: [1, 1], 24: [1, 1], 72: [3, 3], 10_000: [5, 5]}


def test_of_a_round_only_trees_that_reproduce_most_decisions_play(held: Decisions) -> None:
    seen: list[TreeCard] = []

    def costs(cards: Sequence[TreeCard]) -> list[float]:
        seen.extend(cards)
        return [float(k) for k in range(len(cards))]

    distil(held, lambda card: held, costs, [2, 6], 0, NAMED, seed=1)
    every = sorted((agreement(card, held) for card in seen), reverse=True)
    assert (len(every), every[0] > every[-1]) == (12, True)
    seen.clear()
    card = distil(held, lambda card: held, costs, [2, 6], 0, NAMED, seed=1, most=2)
    assert [agreement(one, held) for one in seen] == every[:2]
    assert card == seen[0]
