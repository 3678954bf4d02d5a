"""What MLflow's page opens on: a few charts first, all else folded."""

from pathlib import Path

from tracking_records import Records

from pipeline.core.config import Params
from pipeline.tracking import stage
from pipeline.tracking.identity import from_best
from pipeline.tracking.store import open_store
from pipeline.tracking.ui import CURVES, NO_SECTION, TOP, view_of, view_state

METRICS = {
    "online": {"net": {"percent_from_best": -2.5}, "old": {"percent_from_best": 3.0}, "sjf": {"slowdown": 3.0}},
    "stream": {"net": {"percent_from_best": 0.5}, "unfinished_jobs": 0},
}


def charts(section: str, metrics: list[str], changed: str = "") -> list[tuple[str, str, list[str]]]:
    """Kind, title and metrics of a section's charts where runs differ in one metric."""
    every = view_state({name: name == changed for name in metrics}, [], [])["compareRunCharts"]
    mine = [chart for chart in every if chart["metricSectionId"] == section]
    return [(chart["type"], chart["displayName"], chart["selectedMetricKeys"]) for chart in mine]


def test_the_first_charts_are_one_an_agent_with_its_name_in_front() -> None:
    names = {
        f"{one} from best {of}": f"{one} {of}" for one, of in (("net", "online"), ("old", "online"), ("net", "stream"))
    }
    found = charts(TOP, [*from_best(METRICS), "online/sjf"])
    assert found == [("BAR", title, [name]) for name, title in names.items()]


def test_curves_of_agents_come_next_where_there_are_any() -> None:
    names = [*from_best(METRICS), "online/net", "online/sjf", "online makespan/net"]
    assert charts(CURVES, names) == [("LINE", "online/net", ["online/net"])]


def test_an_agent_in_which_runs_differ_comes_first() -> None:
    names = [*from_best(METRICS), "online/net", "online/old", "stream/net"]
    found = {
        section: [title for _, title, _ in charts(section, names, "net from best stream")] for section in (TOP, CURVES)
    }
    assert found == {
        TOP: ["net stream", "net online", "old online"],
        CURVES: ["stream/net", "online/net", "online/old"],
    }


def test_the_last_two_runs_decide_what_changed(root: Path, params: Params) -> None:
    with stage("compare", "", params):
        pass
    seen = Records(root)
    experiment = seen.experiment.experiment_id
    values = {"net from best online": (1.0, 2.0, 2.0), "old from best online": (5.0, 5.0, 4.0)}
    for at in range(3):
        run = seen.client.create_run(experiment, start_time=1000 + at, tags={"stage": "pipeline"})
        for name, value in values.items():
            seen.client.log_metric(run.info.run_id, name, value[at])
    view = view_of(open_store())
    assert view is not None
    assert [chart["displayName"] for chart in view["compareRunCharts"]] == ["old online", "net online"]


def test_the_table_has_the_answer_and_the_agents_that_changed_in_the_last_two_runs(root: Path) -> None:
    store = open_store()
    for at, agents in enumerate((["gone"], ["old"], ["Change", "net"])):
        run = store.client.create_run(store.experiment, start_time=1000 + at, tags={"stage": "pipeline"})
        store.client.log_param(run.info.run_id, "agents.net.updates", at)
        store.client.log_param(run.info.run_id, "seed", 1)
        for name in (f"{agent}{end}" for agent in agents for end in ("", " lo", " up")):
            store.client.log_metric(run.info.run_id, name, at)
    view = view_of(store)
    assert view is not None
    every = [f"metrics.`{agent}{end}`" for agent in ("Change", "net", "old") for end in ("", " lo", " up")]
    around = ("attributes.`Description`", "params.`agents.net.updates`", "attributes.`Created`")
    assert view["selectedColumns"] == [around[0], *every, *around[1:]]


def test_everything_else_is_folded() -> None:
    names = [*from_best(METRICS), "bursts/net", "online makespan/net", "alone"]
    shown = view_state(dict.fromkeys(names, False), [], ["seed"])
    folded = {section["name"]: section["display"] for section in shown["compareRunSections"]}
    assert folded == {
        **dict.fromkeys((TOP, CURVES), True),
        **dict.fromkeys(("bursts", "online makespan", NO_SECTION), False),
    }


def test_compare_gives_the_pipelines_run_its_numbers(root: Path, params: Params) -> None:
    with stage("compare", "", params) as run:
        run.parent_numbers(from_best(METRICS))
    seen = Records(root)
    (parent,) = seen.parents()
    assert parent.data.metrics == {
        "net from best online": -2.5,
        "old from best online": 3.0,
        "net from best stream": 0.5,
    }
