"""DVC's comparison of two runs shows what a reader needs: names, digits, order, policies apart from revisions."""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders import REPOSITORY
from repositories import AGENTS, Folder

KNOB = "heuristics.pool.tetris_weights"
TEMPLATES = sorted(path.stem for path in (REPOSITORY / ".dvc" / "plots").iterdir())


@pytest.fixture(scope="module")
def changed(reproduced: tuple[Folder, str], tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A repository with one experiment, `early`, that changed one knob and thereby the heuristic `tetris`."""
    folder = reproduced[0].copied(tmp_path_factory.mktemp("views") / "copy")
    folder.dvc("exp", "run", "-n", "early", "-S", f"{KNOB}=[0.9]", "compare")
    return folder


def table(said: str) -> list[list[str]]:
    """Return the rows of a Markdown table, without the line below its header."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in said.splitlines() if "|" in line]
    return [row for row in rows if not set(row[0]) <= {"-", ":"} or not row[0]]


def significant(number: str) -> int:
    return len(number.lstrip("-0.").replace(".", ""))


def test_metrics_are_few_and_in_order_of_name(changed: Folder) -> None:
    shown = json.loads(changed.dvc("metrics", "show", "--json"))[""]["data"]["reports/metrics.json"]["data"]
    (scenario,) = shown.values()
    assert list(scenario) == sorted(scenario)
    numbers = {"percent_from_best", "percent_from_sjf", "slowdown"}
    own = {"cloned": {"makespan", "makespan_percent_from_sjf"}, "plain": set()}  # measures of an agent's own objective
    found = {name: set(row) for name, row in scenario.items() if name in AGENTS}
    assert found == {name: numbers | own[name] for name in AGENTS}
    assert {name for name in scenario if name not in AGENTS} == {
        "best_heuristic",
        "hold",
        "hold_long",
        "hold_until",
        "sjf",
        "tetris",
        "unfinished_jobs",
    }
    assert scenario["unfinished_jobs"] == 0


def test_metrics_diff_names_what_moved_and_nothing_else(changed: Folder) -> None:
    head, *rows = table(changed.dvc("metrics", "diff", "--md"))
    assert head == ["Path", "Metric", "HEAD", "workspace", "Change"]
    names = [row[1] for row in rows]
    assert "online.tetris.slowdown" in names
    assert not {"online.sjf.slowdown", "online.plain.slowdown", "online.unfinished_jobs"} & set(names)
    assert names == sorted(names)
    for _, name, before, after, change in rows:
        assert float(after) - float(before) == pytest.approx(float(change), abs=2e-5), name
        assert all(significant(number) <= 6 for number in (before, after)), name


def test_params_diff_shows_the_one_parameter(changed: Folder) -> None:
    head, row = table(changed.dvc("params", "diff", "--md"))
    assert head == ["Path", "Param", "HEAD", "workspace"]
    assert row == ["params.yaml", KNOB, "[0.1, 0.5]", "[0.9]"]


def test_all_experiments_side_by_side_show_only_what_differs(changed: Folder) -> None:
    head, *rows = table(changed.dvc("exp", "show", "--md", "--only-changed"))
    assert head[:2] == ["Experiment", "Created"]
    metrics = [name for name in head if name.startswith("online.")]
    assert "online.tetris.slowdown" in metrics
    assert metrics == sorted(metrics)
    assert KNOB in head
    knob, tetris = head.index(KNOB), head.index("online.tetris.slowdown")
    found = {row[0].split()[-1].strip("[]"): (row[knob], row[tetris]) for row in rows}
    assert found["early"][0].replace("'", "") == "[0.9]"
    assert found["main"][0].replace("'", "") == "[0.1, 0.5]"
    assert float(found["early"][1]) != float(found["main"][1])


def test_the_table_of_experiments_has_a_column_a_number(changed: Folder) -> None:
    columns = next(csv.reader(io.StringIO(changed.dvc("exp", "show", "--csv"))))
    metrics = [name for name in columns if name.startswith("online.")]
    # Three numbers for each agent and two of its own objective, six heuristics, unfinished jobs; no curves by load.
    assert len(metrics) == 3 * len(AGENTS) + 2 + 7
    assert metrics == sorted(metrics)


@pytest.fixture(scope="module")
def drawn(changed: Folder) -> dict[str, dict[str, Any]]:
    """What `dvc plots diff` would draw, as Vega-Lite, by file."""
    plots = json.loads(changed.dvc("plots", "diff", "HEAD", "--json"))["data"]
    shown = {name: plot[0] for name, plot in plots.items() if plot}  # an empty table is not drawn
    found = {name: plot for name, plot in shown.items() if plot["type"] == "vega"}
    for plot in found.values():
        plot["content"] = json.loads(plot["content"]) if isinstance(plot["content"], str) else plot["content"]
    return found


def channels(spec: Any) -> dict[str, set[str]]:
    """The fields by encoding channel, anywhere in a specification."""
    found: dict[str, set[str]] = {}
    nodes = [spec]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += [value for key, value in node.items() if key != "data"]
            for channel, of in (node.get("encoding") or {}).items():
                if isinstance(of, dict) and "field" in of:
                    found.setdefault(channel, set()).add(of["field"])
    return found


def test_every_plot_holds_both_revisions(drawn: dict[str, dict[str, Any]]) -> None:
    curves = {f"reports/curves/{agent}_{stage}.csv" for agent in AGENTS for stage in ("pretrain", "finetune")}
    tables = ("summary", "comparison", "objectives", "loads", "hindsight", "papers", "gate")
    names = ("slowdown.json", *(f"{table}.csv" for table in tables))
    joined = {f"reports/{name}" for name in names}
    assert set(drawn) == joined | curves
    for plot in drawn.values():
        assert plot["revisions"] == ["workspace", "HEAD"]
        assert set(Counter(point["rev"] for point in plot["content"]["data"]["values"])) == {"workspace", "HEAD"}


def test_policies_differ_by_colour_and_revisions_by_dash(drawn: dict[str, dict[str, Any]]) -> None:
    for name, y in (("slowdown.json", "slowdown"), ("summary.csv", "p99_slowdown"), ("comparison.csv", "difference")):
        found = channels(drawn[f"reports/{name}"]["content"])
        assert found["color"] == {"policy"}, name
        assert found["strokeDash"] == {"rev"}, name
        assert found["y"] == {y}, name
    assert drawn["reports/slowdown.json"]["content"]["facet"]["row"]["field"] == "scenario"


@pytest.mark.parametrize(("name", "y"), [("slowdown", "slowdown"), ("difference", "difference")])
def test_colours_are_for_five_policies_first_those_that_changed_and_others_are_grey(name: str, y: str) -> None:
    """Of p1 to p7, in ascending order, only p7 differs between the revisions."""
    vl_convert = pytest.importorskip("vl_convert")
    rows = [
        {"scenario": "online", "against": "best_heuristic", "load": load, "policy": f"p{k}", "rev": rev}
        | {y: 0.01 * k * load / 10 + (0.03 if (k, rev) == (7, "HEAD") else 0.0)}
        for k in range(1, 8)
        for load in (10, 20)
        for rev in ("HEAD", "workspace")
    ]
    text = (REPOSITORY / ".dvc" / "plots" / f"{name}.json").read_text()
    for anchor, value in (("DATA", json.dumps(rows)), ("Y", json.dumps(y)), ("X", '"load"')):
        text = text.replace(f'"<DVC_METRIC_{anchor}>"', value)
    svg = vl_convert.vegalite_to_svg(text.replace("<DVC_METRIC_Y>", y).replace("<DVC_METRIC_X>", "load"))
    assert set(re.findall(r">(p[1-7])</text>", svg)) == {"p1", "p2", "p3", "p4", "p7"}  # the legend
    assert len(re.findall(r'aria-label="[^"]*"[^>]*stroke="#D0D0D0"', svg)) == 2 * 2  # p5 and p6 of two revisions


def test_a_learning_curve_has_a_panel_a_metric(drawn: dict[str, dict[str, Any]]) -> None:
    content = drawn["reports/curves/plain_finetune.csv"]["content"]
    assert content["facet"]["field"] == "metric"
    assert {"validation", "entropy"} <= {point["metric"] for point in content["data"]["values"]}
    assert channels(content)["color"] == {"rev"}


def test_every_template_becomes_a_picture(drawn: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    for name in ("slowdown.json", "comparison.csv", "curves/plain_finetune.csv"):
        content = drawn[f"reports/{name}"]["content"]
        svg = vl_convert.vegalite_to_svg(content)
        assert not svg.count("NaN"), name
        assert svg.count('aria-roledescription="line mark"') + svg.count("line mark") > 0, name
    assert TEMPLATES == ["difference", "learning", "slowdown"]
