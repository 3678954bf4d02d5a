"""--json: commands that answer a question print their data, with the same numbers as their text."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import Command

from pipeline import progress
from pipeline.champions.gate import Verdict
from pipeline.errors import UserError

JOBS = "jobset,job,arrival,duration,cpu,memory\n0,a,0,3,6,2\n0,b,0,1,6,2\n0,c,1,2,4,8\n"
LOG = """; MaxProcs: 8
1 0 5 100 4 -1 -1 4 200 -1 1 3 -1 -1 -1 -1 -1 -1
2 100 0 50 2 -1 -1 2 60 -1 1 4 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command here is long, unless code has to be compiled first."""
    monkeypatch.setattr(progress, "LINES_EVERY_S", 600.0)


def asked(command: Command, *words: object) -> tuple[Any, str]:
    """Return a command's data, and what it prints on stdout and stderr without --json."""
    data, text = command(*words, "--json"), command(*words)
    assert (data.code, data.out.count("\n"), data.err) == (text.code, 1, "")
    return json.loads(data.out), text.out + text.err


def test_check_lists_scenarios_and_agents(command: Command) -> None:
    found, said = asked(command, "check")
    assert f"scenarios {', '.join(found['scenarios'])}; agents {', '.join(found['agents'])}\n" in said


def test_trace_has_the_rows_of_its_tables_and_null_for_unknown_numbers(command: Command) -> None:
    Path("small.swf").write_text(LOG)
    found, said = asked(command, "trace", "small.swf")
    values = {row["what"]: row["value"] for row in found["overview"]}
    assert re.search(r"^jobs +2$", said, re.MULTILINE)
    assert (values["jobs"], values["rows of the log"]) == (2, 2)
    assert found["shares"][0].keys() == {"share", "run_s", "estimate_s", "cpu"}
    Path("small.swf").write_text(LOG.replace("4 200 -1 1 3", "4 -1 -1 1 3").replace("2 60 -1 1 4", "2 -1 -1 1 4"))
    assert json.loads(command("trace", "small.swf", "--json").out)["shares"][0]["estimate_s"] is None
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("policies", [("sjf",), ("sjf", "fcfs")])
def test_schedule_and_show_have_the_means_of_their_policies(command: Command, policies: tuple[str, ...]) -> None:
    Path("jobs.csv").write_text(JOBS)
    each = [word for policy in policies for word in ("--policy", policy)]
    found, said = asked(command, "schedule", "jobs.csv", "--scenario", "online", *each, "--out", "out.csv")
    means = {policy: float(mean) for mean, policy in re.findall(r"mean slowdown ([\d.]+) under (\w+)", said)}
    assert {policy: round(row["mean_slowdown"], 3) for policy, row in found.items()} == means
    words = ("show", "jobs.csv", "--scenario", "online", "--policy", "sjf", "--against", "fcfs", "--out", "out.png")
    drawn, said = asked(command, *words)
    assert f"out.png: {drawn['title']}\n" in said
    for policy, mean in drawn["mean_slowdown"].items():
        assert f"{policy}: mean slowdown {mean:.2f}, " in said


RESULTS = {  # command: the stage's function, and the file that the stage writes
    ("gate",): ("gate.run", "gate.json"),
    ("evaluate", "compare"): ("compare.run", "metrics.json"),
    ("hindsight", "online"): ("hindsight.run", "tables/hindsight/online/hindsight.parquet"),
    ("confirm", "online"): ("confirm.run", "confirm/online/comparison.csv"),
    ("advise", "mine"): ("advise.run", "advice/mine/evidence.json"),
    ("explain", "--policy", "models/deeprm"): ("tasks.explain", "explain/deeprm/outcomes.csv"),
}


@pytest.mark.parametrize("words", RESULTS, ids=" ".join)
def test_a_stage_prints_what_it_has_written(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The stage is replaced by a no-op: its file exists already."""
    stage, name = RESULTS[words]
    monkeypatch.setattr(f"pipeline.stages.{stage}", lambda *_: None)
    monkeypatch.setattr("pipeline.tracking.changes.report_changes", lambda _: None)
    rows, file = [{"policy": "sjf", "mean": 1.5}, {"policy": "hold", "mean": None}], Path("reports", name)
    file.parent.mkdir(parents=True)
    match file.suffix:
        case ".json":
            file.write_text(json.dumps(rows))
        case ".csv":
            pd.DataFrame(rows).to_csv(file, index=False)
        case _:
            pd.DataFrame(rows).to_parquet(file)
    found, said = asked(command, *words)
    assert found == ({"outcomes": rows} if words[0] == "explain" else rows)
    assert said == ""


ROWS = [{"policy": "sjf", "p99_wait_s": 4.0, "longest_wait_s": 5.0, "avg_bounded_slowdown": 2.0}]
TABLE = pd.DataFrame(ROWS)
NO_CHAMPION: dict[str, object] = {"champion": None, "promote": None, "stays": "sjf", "reasons": {}}
ANSWERS = {  # command: what it calls; what that returns; the JSON
    "try": ("pipeline.stages.tasks.try_it", ({"picture": "try.png"}, ["a picture"]), {"picture": "try.png"}),
    "prune": ("pipeline.stages.everything.prune", {"stages": []}, {"stages": []}),
    "export models/mine mine.onnx": ("pipeline.stages.tasks.export", {"bytes": 7}, {"bytes": 7}),
    "rollback online": ("pipeline.stages.champions.rollback", ({"champion": "sjf"}, "sjf"), {"champion": "sjf"}),
    "promote": (
        "pipeline.stages.champions.promote",
        {"online": Verdict(champion=None, stays="sjf")},
        {"online": NO_CHAMPION},
    ),
    "import slurm dump.txt": ("pipeline.accounting.slurm_import.run", ({"account": TABLE}, []), {"account": ROWS}),
    "import journal steering": ("pipeline.steering.journal_import.run", ({"jobs": 2}, ["2 jobs"]), {"jobs": 2}),
    "benchmark rlscheduler a.swf --out a.csv": ("pipeline.interactive.machines.benchmark.run", TABLE, ROWS),
    "farm": ("pipeline.stages.farm.run", {"draw": "ran"}, {"stages": {"draw": "ran"}}),
    "publish": ("pipeline.tracking.publish.publish", [("said", {"models": ["deeprm 1"]})], [{"models": ["deeprm 1"]}]),
    "farm --seeds 1": ("pipeline.stages.farm.sweep", ({"tables": {"deeprm": TABLE}}, ""), {"tables": {"deeprm": ROWS}}),
    "fidelity": ("benchmarks.fidelity.__main__.run", ({"figures": []}, ["inside"]), {"figures": []}),
}


@pytest.mark.parametrize("words", ANSWERS)
def test_a_task_prints_only_its_data(command: Command, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    function, returned, data = ANSWERS[words]
    monkeypatch.setattr(function, lambda *_: returned)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")  # restored afterwards: `try` sets it
    done = command(*words.split(), "--json")
    assert (done.code, json.loads(done.out), done.err) == (0, data, "")


def test_what_was_done_before_a_failure_is_printed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def published(*_: object) -> Iterator[tuple[str, dict[str, object]]]:
        yield "publish: skipped: v1: old", {"revision": "v1", "skipped": "old"}
        raise UserError("publish: 1 of 2 skipped: v1")

    monkeypatch.setattr("pipeline.tracking.publish.publish", published)
    done = command("publish", "--json")
    assert (done.code, done.err) == (2, "error: publish: 1 of 2 skipped: v1\n")
    assert json.loads(done.out) == [{"revision": "v1", "skipped": "old"}]
    assert command("publish").out == "publish: skipped: v1: old\n"

    monkeypatch.setattr("pipeline.stages.farm.sweep", lambda *_: ({"points": []}, "farm: a failed"))
    assert command("farm", "--seeds", 1, "--json") == (2, '{"points": []}\n', "error: farm: a failed\n")
    assert command("farm", "--seeds", 1) == (2, "", "error: farm: a failed\n")


def test_a_mistake_is_still_one_line(command: Command) -> None:
    for words in (("what-if", "mine", "nodes=+10%"), ("watch", "grown.swf"), ("trace", "no.swf")):
        done = command(*words, "--json")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith("error: ")
    assert "unknown 'mine'; there are: none" in command("what-if", "mine", "nodes=+10%").err
