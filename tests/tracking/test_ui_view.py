"""What MLflow's page opens on: a few charts first, all else folded."""

from pathlib import Path

from tracking_records import Records

from pipeline.core.config import Params
from pipeline.tracking import stage
from pipeline.tracking.identity import from_best
from pipeline.tracking.ui import CURVES, NO_SECTION, TOP, view_state

METRICS = {
    "online": {"net": {"percent_from_best": -2.5}, "old": {"percent_from_best": 3.0}, "sjf": {"slowdown": 3.0}},
    "stream": {"net": {"percent_from_best": 0.5}, "unfinished_jobs": 0},
}


def charts(section: str, metrics: list[str]) -> list[tuple[str, str, list[str]]]:
    """Kind, title and metrics of a section's charts."""
    every = view_state(metrics, [])["compareRunCharts"]
    mine = [chart for chart in every if chart["metricSectionId"] == section]
    return [(chart["type"], chart["displayName"], chart["selectedMetricKeys"]) for chart in mine]


def test_the_first_charts_are_one_a_scenario_with_all_its_agents() -> None:
    assert charts(TOP, [*from_best(METRICS), "online/sjf"]) == [
        ("BAR", "online", ["online percent from best/net", "online percent from best/old"]),
        ("BAR", "stream", ["stream percent from best/net"]),
    ]


def test_curves_of_agents_come_next_where_there_are_any() -> None:
    names = [*from_best(METRICS), "online/net", "online/sjf", "online makespan/net"]
    assert charts(CURVES, names) == [("LINE", "online", ["online/net"])]


def test_everything_else_is_folded() -> None:
    shown = view_state([*from_best(METRICS), "bursts/net", "online makespan/net", "alone"], ["seed"])
    folded = {section["name"]: section["display"] for section in shown["compareRunSections"]}
    assert folded == {
        **dict.fromkeys((TOP, CURVES), True),
        **dict.fromkeys(
            ("online percent from best", "stream percent from best", "bursts", "online makespan", NO_SECTION), False
        ),
    }


def test_params_in_which_runs_differ_are_columns() -> None:
    assert "params.`agents.net.updates`" in view_state([], ["agents.net.updates"])["selectedColumns"]


def test_compare_gives_the_pipelines_run_its_distances(root: Path, params: Params) -> None:
    with stage("compare", "", params) as run:
        run.from_best(METRICS)
    seen = Records(root)
    (parent,) = seen.parents()
    assert parent.data.metrics == {
        "online percent from best/net": -2.5,
        "online percent from best/old": 3.0,
        "stream percent from best/net": 0.5,
    }
