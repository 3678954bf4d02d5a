"""Figures are drawn for any params.yaml; what cannot be drawn is left out and its claims say why."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from papers_evidence import LENGTHS, agent, curve, evidence, job_table
from readable import faults

from pipeline.comparing.plots import png
from pipeline.core.schemas.tables import PAPERS
from pipeline.papers import job_lengths, learning, means
from pipeline.papers.figures import figures, table
from pipeline.papers.job_lengths import box
from pipeline.papers.rules import UNDECIDED
from pipeline.papers.verdicts import Shown

TWO = {"shallow": agent(), "deep": agent("cnn", cloned=True)}
TIME = {"shallow_time": agent("mlp", "completion_time"), "deep_time": agent("cnn", "completion_time")}
OFFLINE = evidence({"off": agent("cnn", cloned=True)}, loads=[100], setting="offline")
NO_ANSWER = {UNDECIDED}


def there(found: Sequence[Shown]) -> set[str]:
    """The figures that are not left out."""
    return {shown.figure for shown in found if shown.drawing is not None}


def drawn(found: Sequence[Shown], only: str = "") -> set[str]:
    """The same, after those with such a name were drawn as PNG, which takes most of the time."""
    for shown in found:
        if shown.drawing is not None:
            assert list(faults(shown.drawing)) == [], shown.figure
            assert only not in shown.figure or png(shown.drawing).startswith(b"\x89PNG")
    return there(found)


def words(rows: pd.DataFrame, paper: str) -> set[str]:
    return set(rows.loc[rows["paper"].str.startswith(paper), "verdict"])


def test_every_figure_is_drawn_where_every_agent_is_there() -> None:
    found = figures([evidence({**TWO, **TIME}), OFFLINE])
    assert drawn(found) == {
        "loads_made",
        "objectives_made_70",
        "objectives_made_130",
        "learning_shallow",
        "learning_deep",
        "learning_shallow_time",
        "learning_deep_time",
        "learning_off",
        "durations_shallow",
        "durations_deep",
        "withheld_shallow",
    }
    rows = PAPERS.validate(table(found))
    # Made jobs fare alike under every policy, and so do agents; of many machines there is no scenario.
    machines = rows["paper"].str.startswith("Deepk8s")
    assert set(rows.loc[machines, "verdict"]) == {UNDECIDED}
    open_ones = set(rows.loc[~machines & (rows["verdict"] == UNDECIDED), "figure"])
    alike = {"durations_shallow", "durations_deep", "withheld_shallow", "objectives_made_70", "objectives_made_130"}
    assert open_ones == alike | {"loads_made", "learning_deep"}


def test_one_load_is_drawn_with_claims_about_loads_left_open() -> None:
    found = figures([evidence(TWO, loads=[99])])
    assert drawn(found, "loads_made") >= {"loads_made", "objectives_made_99", "durations_deep", "withheld_shallow"}
    rows = PAPERS.validate(table(found))
    objectives = rows[rows["figure"] == "objectives_made_99"]
    assert objectives["claim"].nunique() == 5  # of both papers, in one figure
    assert objectives["found"].str.contains("load 99").sum() == 8


def test_a_log_has_its_durations_in_groups() -> None:
    made = evidence(TWO, loads=[99])
    lengths = dict.fromkeys(range(1, 21), (2.0, 1))
    jobs = job_table(made.policies, [99], dict.fromkeys(made.policies, lengths)).assign(held=1.0)
    (shown,) = job_lengths.withheld(replace(made, jobs=jobs, long=11.0))
    assert shown.drawing is not None
    _, below = shown.drawing.axes
    assert [text.get_text() for text in below.get_xticklabels()] == ["1", "2-3", "4-7", "8-15", "16-20"]


@pytest.mark.parametrize(
    ("agents", "figure", "paper"),
    [
        ({"deep": TWO["deep"]}, "learning_shallow", "DeepRM, Figure 6"),
        ({"shallow": TWO["shallow"]}, "learning_deep", "DeepRM2, Figure 5"),
    ],
)
def test_a_scheduler_that_nobody_plays_leaves_its_claims_open(agents: dict, figure: str, paper: str) -> None:
    found = figures([evidence(agents), OFFLINE])
    rows = PAPERS.validate(table(found))
    assert figure not in there(found)
    assert words(rows, paper) == NO_ANSWER
    assert rows.loc[rows["paper"] == paper, "found"].str.contains("no agent of a scenario").all()


def test_the_withheld_jobs_of_another_network_are_shown_where_deeprms_is_not() -> None:
    assert [shown.figure for shown in job_lengths.withheld(evidence({"deep": TWO["deep"]}))] == ["withheld_deep"]


def test_agents_for_other_objectives_only_leave_figures_out() -> None:
    found = figures([evidence({"hasty": agent("mlp", "makespan")})])
    assert there(found) == {"loads_made", "objectives_made_70", "objectives_made_130", "learning_hasty"}
    rows = PAPERS.validate(table(found))
    assert words(rows[rows["figure"] == "withheld"], "DeepRM, Figure 7") == NO_ANSWER
    assert words(rows, "DeepRM_Off") == NO_ANSWER


def test_no_scenario_with_arrivals_leaves_its_claims_open() -> None:
    found = figures([OFFLINE])
    assert there(found) == {"learning_off"}
    rows = PAPERS.validate(table(found))
    assert words(rows, "DeepRM,") | words(rows, "DeepRM2,") == NO_ANSWER
    assert "no scenario has jobs that arrive over time" in set(rows["found"])
    assert not rows["figure"].str.contains("made").any()


def test_a_scenario_without_agents_is_drawn_with_its_heuristics() -> None:
    found = figures([evidence({}), evidence({}), OFFLINE])  # twice: claims left open are told once
    assert drawn(found, "made") == {"loads_made", "objectives_made_70", "objectives_made_130", "learning_off"}
    PAPERS.validate(table(found))


def test_a_curve_without_returns_is_drawn_with_what_it_has() -> None:
    made = evidence(TWO, curves={"shallow": curve(decisions={1: 0.0}, validation={0: 2.0, 1: 2.0})})
    assert "learning_shallow" in drawn(learning.shown(made), "shallow")


def test_the_same_evidence_gives_the_same_bytes() -> None:
    one, again = (figures([evidence({"shallow": TWO["shallow"]}, loads=[90])]) for _ in range(2))
    for first, second in zip(one, again, strict=True):
        if first.drawing is not None and second.drawing is not None:
            assert png(first.drawing) == png(second.drawing)
    pd.testing.assert_frame_equal(table(one), table(again))


def test_lines_over_load_go_through_the_means() -> None:
    (shown,) = means.loads(evidence(TWO))
    assert shown.drawing is not None
    drawings = [drawing for axes in shown.drawing.axes for drawing in axes.get_lines()]
    found = {str(drawing.get_label()): list(np.asarray(drawing.get_ydata())) for drawing in drawings}
    assert set(found) == {"random", "sjf", "packer", "tetris", "shallow", "deep"}
    np.testing.assert_allclose(found["sjf"], [2.7, 2.9, 3.1, 3.3])


def test_our_strong_rules_are_in_every_figure_of_means_where_they_were_scored() -> None:
    made = evidence(TWO, slowdown={"hold_until": 1.6, "hold_long": 1.4, "wspt": 1.9})
    for draw in (means.loads, means.objectives):
        for shown in draw(made):
            assert shown.drawing is not None
            every = shown.drawing.axes
            said = {str(label.get_text()) for axes in every for label in (*axes.texts, *axes.get_yticklabels())}
            assert {"hold_until", "hold_long"} <= said
            assert "wspt" not in said


def test_a_box_leaves_five_percent_outside_at_each_end() -> None:
    found = box(pd.Series(np.arange(101.0)))
    assert found == {"whislo": 5, "q1": 25, "med": 50, "mean": 50, "q3": 75, "whishi": 95, "fliers": []}


def test_boxes_stand_beside_each_other_for_every_length() -> None:
    shown = job_lengths.durations(evidence(TWO))[0]
    assert shown.drawing is not None
    (axes,) = shown.drawing.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(steps) for steps in LENGTHS]
    assert len(axes.patches) == 3 * len(LENGTHS)
    assert len({box.get_hatch() for box in axes.patches}) == 3
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["random", "shallow_pretrained", "shallow"]


def bars(axes: Axes) -> list[list[float]]:
    """The heights of each kind of bar."""
    return [[bar.get_height() for bar in kind.patches] for kind in axes.containers if hasattr(kind, "patches")]


def test_withheld_jobs_are_shown_as_shares_of_jobs_and_of_steps() -> None:
    lengths = {1: (2.0, 0), 3: (2.0, 1), 10: (3.0, 1), 15: (4.0, 2)}
    made = evidence(TWO, by_length={"shallow": lengths}, withheld={"shallow": 0.2})
    (shown,) = job_lengths.withheld(made)
    assert shown.drawing is not None
    above, below = shown.drawing.axes
    np.testing.assert_allclose(bars(above), [[25, 25, 25, 25], [0, 100 / 3, 100 / 3, 100 / 3], [0, 25, 25, 50]])
    assert "20.0 % of steps" in above.get_title(loc="left")
    heights = [kind for kind in bars(below) if kind]
    np.testing.assert_allclose(heights[-1], [2, 2, 3, 4])
