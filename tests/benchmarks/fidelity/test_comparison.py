"""Plays are compared as distributions; those kept in the repository, and some that are worked by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from builders import REPOSITORY

from benchmarks.fidelity.comparison import SLURM, Within, dispatches_of, distance, figures, jobs_of, ranked, within
from benchmarks.fidelity.jobs import ORDERS, in_minutes
from benchmarks.fidelity.measuring import cluster_of, compared
from benchmarks.fidelity.simulated import backfill_of, starts
from benchmarks.fidelity.tables import PLAYS
from benchmarks.slurm.configuration import Cluster
from pipeline.core.storage.files import read_table

KEPT = REPOSITORY / "docs" / "results" / "fidelity" / "plays.csv.gz"
ONE = Cluster(nodes=1, cpus=1)


@pytest.fixture(scope="module")
def kept() -> pd.DataFrame:
    return read_table(KEPT, PLAYS)


def by_hand(order: str = "sjf", repeats: int = 2) -> pd.DataFrame:
    """Three jobs of 2, 4 and 1 s on one CPU, all there at once; Slurm starts one a second after another ended."""
    rows = {"job": [0, 1, 2], "arrival_s": [0.0, 0.0, 0.0], "run_s": [2, 4, 1], "limit_min": [2, 4, 1]}
    alike = {"cpus": 1, "nodes": 1, "user": 0, "submit_s": 0.0, "start_s": [2.0, 5.0, 0.0], "end_s": [4.0, 9.0, 1.0]}
    play = pd.DataFrame(rows | alike).assign(order=order)
    later = {"start_s": lambda rows: rows["start_s"] + rows["repeat"]}
    return pd.concat([play.assign(repeat=k) for k in range(repeats)]).assign(**later)[list(PLAYS.columns)]


def test_figures_of_a_play_are_as_worked_by_hand() -> None:
    found = figures(by_hand(), ONE).set_index(["player", "repeat"])
    assert found.loc[(SLURM, 0), ["mean_wait", "distance"]].to_list() == pytest.approx([7 / 3, 1.0])
    assert found.loc[(SLURM, 1), "mean_wait"] == pytest.approx(10 / 3)
    assert found.loc[(SLURM, 0), "utilisation"] == pytest.approx(7 / 9)
    # easy takes the first before it sees the others, and then holds the second: 0, 2 and 6 s
    assert found.loc[("easy, exact", 0), "mean_wait"] == pytest.approx((0 + 2 + 6) / 3)
    # easy_dynamic takes 1 s, 2 s, 4 s, each at once behind the other
    exact = found.loc[("easy_dynamic, exact", 0)]
    assert exact["mean_wait"] == pytest.approx((0 + 1 + 3) / 3)
    assert exact["utilisation"] == 1.0
    assert exact["distance"] == pytest.approx((1 + 2) / 3 / 2 + (1 + 2 + 3) / 3 / 2)


def test_what_is_drawn_holds_a_processor_for_up_to_a_second_more() -> None:
    jobs = jobs_of(by_hand(repeats=1))._replace(arrival_s=np.array([0.0, 0.2, 0.4]))
    assert starts(jobs, "fcfs", "easy", "exact", ONE, 0).tolist() == [0.0, 2.0, 6.0]
    begun = np.array([starts(jobs, "fcfs", "easy", "drawn", ONE, play) for play in range(20)])
    held = np.diff(begun, axis=1) - np.array([2.0, 4.0])
    assert ((held >= 0.1) & (held <= 1.1)).all()
    assert len(np.unique(held)) == 40
    assert begun[3].tolist() == starts(jobs, "fcfs", "easy", "drawn", ONE, 3).tolist()


def test_with_fair_share_the_replay_starts_the_user_who_has_used_nothing_and_no_other_simulator_plays() -> None:
    """Jobs of minutes: the first two are of user 0. A pass that backfills follows within 30 s."""
    seconds = jobs_of(by_hand(repeats=1))._replace(run_s=np.array([1, 2, 2]), user=np.array([0, 0, 1]))
    jobs, fair = in_minutes(seconds), cluster_of(0, 60)._replace(nodes=1, cpus=1)
    assert (jobs.run_s.tolist(), jobs.limit_min.tolist()) == ([60, 120, 120], [2, 4, 1])
    for cluster, later in ((ONE._replace(speed=60.0), 1), (fair, 2)):
        begun = starts(jobs._replace(arrival_s=np.array([0.0, 10.0, 20.0])), "fcfs", "planned", "drawn", cluster, 0)
        assert begun.argsort().tolist() == [0, later, 3 - later]
    assert dispatches_of(fair) == ("planned",)


def test_a_distance_is_of_distributions_and_not_of_jobs() -> None:
    assert distance(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == 0.0


@pytest.mark.parametrize(
    ("measure", "ours", "inside"),
    [("mean_wait", 1.0, True), ("mean_wait", 0.9, False), ("mean_wait", 2.1, False), ("distance", 0.1, True)],
)
def test_inside_is_between_the_least_and_the_most_and_no_distance_is_too_small(
    measure: str, ours: float, inside: bool
) -> None:
    assert Within("fcfs", measure, ours, 1.5, 1.0, 2.0).inside is inside


def told_apart(found: pd.DataFrame, measure: str = "mean_wait") -> list[tuple[str, str]]:
    """Return the pairs of orders, lower first, whose repeats on Slurm do not overlap."""
    spread = found[found["player"] == SLURM].groupby("order")[measure].agg(["min", "max"])
    return [
        (str(low), str(high))
        for low in spread.index
        for high in spread.index
        if spread.loc[low, "max"] < spread.loc[high, "min"]
    ]


def test_orders_are_ranked_and_told_apart_only_where_no_repeats_overlap() -> None:
    rows = [("a", 3.0), ("a", 4.0), ("b", 1.0), ("b", 2.0), ("c", 1.5), ("c", 3.5)]
    found = pd.DataFrame([(order, SLURM, value) for order, value in rows], columns=["order", "player", "mean_wait"])
    assert ranked(found, SLURM) == ["b", "c", "a"]
    assert told_apart(found) == [("b", "a")]


def test_the_kept_plays_are_five_repeats_of_every_order_and_are_compared(kept: pd.DataFrame) -> None:
    assert kept.groupby("order")["repeat"].nunique().to_dict() == dict.fromkeys(ORDERS, 5)
    assert kept.groupby(["order", "repeat"]).size().unique().tolist() == [80]
    found = figures(kept, Cluster())
    waits = (kept["start_s"] - kept["submit_s"]).groupby([kept["order"], kept["repeat"]]).mean()
    for row in within(found, "easy, drawn"):
        if row.measure == "mean_wait":
            assert (row.low, row.high) == (waits[row.order].min(), waits[row.order].max())
        assert row.low <= row.mean <= row.high


def test_the_simulator_puts_first_what_slurm_tells_apart(kept: pd.DataFrame) -> None:
    found = figures(kept, Cluster())
    assert told_apart(found), "the kept plays tell no orders apart"
    for low, high in told_apart(found):
        for player in ("easy, exact", "easy, drawn"):
            place = ranked(found, player)
            assert place.index(low) < place.index(high)


def furthest(found: list[Within]) -> float:
    """Return the largest difference of a mean wait, in percent of Slurm's."""
    return max(100 * abs(row.ours / row.mean - 1) for row in found if row.measure == "mean_wait")


def test_a_reservation_for_every_job_is_closer_to_slurm_than_one(kept: pd.DataFrame) -> None:
    found = figures(kept, Cluster())
    inside = {player: sum(row.inside for row in within(found, player)) for player in ("easy, drawn", "planned, drawn")}
    assert inside == {"easy, drawn": 5, "planned, drawn": 12}
    data, lines = compared(kept, Cluster())
    rows = [row for row in json.loads(json.dumps(data))["figures"] if row["player"] == "planned, drawn"]
    assert (len(rows), all(row["inside"] for row in rows)) == (12, True)
    assert sum(line.startswith("planned, drawn: ") and line.endswith(": inside") for line in lines) == 12
    page = " ".join((REPOSITORY / "docs/results/fidelity.md").read_text().split())
    most = furthest(within(found, "planned, drawn"))
    assert f"own spread, and mean waits differ by at most {most:.1f} %; with" in page


def test_backfilling_at_slurms_interval_is_closer_than_whenever_something_changes(kept: pd.DataFrame) -> None:
    always = Cluster(parameters="bf_interval=0")
    assert backfill_of(always).interval == 0.0
    found = within(figures(kept, always), "planned, drawn")
    short = [100 * (1 - row.ours / row.mean) for row in found if row.measure == "mean_wait"]
    page = " ".join((REPOSITORY / "docs/results/fidelity.md").read_text().split())
    said = f"{sum(row.inside for row in found)} figures lie within the spread, and mean waits are"
    assert [f"{by:.0f}" for by in short] == ["10", "10", "10"]
    assert f"{said} 10 % too short" in page


def test_the_page_says_how_well_the_replay_follows_two_partitions() -> None:
    two = cluster_of(2)
    found = within(figures(read_table(KEPT.with_name("partitions.csv.gz"), PLAYS), two), "planned, drawn")
    page = " ".join((REPOSITORY / "docs/results/fidelity.md").read_text().split())
    assert [row for row in found if not row.inside] == []
    said = f"share nodes, {len(found)} of {len(found)} do, and mean waits"
    assert f"{said} differ by at most {furthest(found):.1f} %" in page


def test_the_page_says_how_well_the_replay_follows_fair_share() -> None:
    measured = figures(read_table(KEPT.with_name("fair_share.csv.gz"), PLAYS), cluster_of(2, 60))
    found = within(measured, "planned, drawn")
    (outside,) = (row for row in found if not row.inside)
    assert (outside.order, outside.measure) == ("sjf", "mean_wait")
    assert ranked(measured, "planned, drawn") == ranked(measured, SLURM)
    page = " ".join((REPOSITORY / "docs/results/fidelity.md").read_text().split())
    assert f"with fair-share as well, 11 of 12 and at most {furthest(found):.1f} %." in page


def test_short_jobs_overtake_in_a_partition_of_a_higher_tier() -> None:
    """One node of one CPU is in both partitions: the job of one minute is in the higher one, the others are not."""
    rows = {
        "arrival_s": [0.0, 1.0, 2.0],
        "run_s": [60, 60, 30],
        "limit_min": [9, 9, 1],
        "cpus": 1,
        "nodes": 1,
        "user": 0,
    }
    jobs = jobs_of(pd.DataFrame(rows))
    assert starts(jobs, "fcfs", "planned", "exact", ONE, 0).tolist() == [0.0, 60.0, 120.0]
    assert starts(jobs, "fcfs", "planned", "exact", ONE._replace(short=1), 0).tolist() == [0.0, 90.0, 60.0]


def test_planned_reserves_for_every_waiting_job() -> None:
    """On two CPUs, two jobs need both after the first ends; a fourth, of three minutes, would delay only the second."""
    rows = {"arrival_s": [0.0, 1.0, 2.0, 3.0], "run_s": [60, 30, 30, 1], "limit_min": [1, 1, 1, 3]}
    jobs = jobs_of(pd.DataFrame(rows | {"cpus": [1, 2, 1, 1], "nodes": 1, "user": 0}))
    two = Cluster(nodes=1, cpus=2)
    assert starts(jobs, "fcfs", "planned", "exact", two, 0).tolist() == [0.0, 60.0, 90.0, 90.0]
