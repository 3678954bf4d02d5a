"""`why` on the command line: the example on its page, and errors in one line."""

import json
from pathlib import Path

import commands
import pytest
from builders import REPOSITORY
from commands import Command
from log_scenarios import log_scenario
from swf_lines import line

from pipeline.core.config import Params, load_params
from pipeline.core.storage.params_file import with_rows
from pipeline.stages import log

HOUR = 3_600
PAGE = REPOSITORY / "docs/how-to/see-why.md"
command, place = commands.command, commands.place  # fixtures


@pytest.fixture(autouse=True)
def ours(place: Path) -> None:
    """Five CPUs, four of them held for ten hours; a small job with a limit of 24 h, a large one with 3 h, others."""
    rows = ((0, 10, 4, 10), (1, 2, 2, 24), (2, 3, 4, 3), (2.5, 1, 1, 96), *((900 + 100 * k, 1, 1, 1) for k in range(6)))
    text = "\n".join(
        line(4708 + k, submit=at * HOUR, run=run * HOUR, allocated=size, estimate=limit * HOUR, user=1)
        for k, (at, run, size, limit) in enumerate(rows)
    )
    (place / "ours.swf").write_text(f"; MaxProcs: 5\n{text}\n")
    rows_of = {"scenarios": {"ours": log_scenario(5.0, "ours.swf")}, "sites": {"ours": {"today": "fcfs"}}}
    params = place / "params.yaml"
    params.write_text(with_rows("params.yaml", params.read_text(), rows_of)[0])
    found = load_params()
    log.run(Params.model_validate(found.model_copy(update={"scenarios": {"ours": found.scenarios["ours"]}})))


def test_the_example_of_the_page_is_what_the_command_says(command: Command) -> None:
    done = command("why", "ours", 4709, "--policy", "limit_8h")
    assert done.code == 0
    page = " ".join(PAGE.read_text().split())
    lines = " ".join(done.out.split())
    assert "job 4709 (2 CPUs, limit 24.0 h) waits 12.0 h" in lines
    assert lines in page


def test_a_job_is_explained_as_json_under_the_sites_own_order(command: Command) -> None:
    found = json.loads(command("why", "ours", "--json").out)
    assert (found["site"], found["order"], found["job"]) == ("ours", "fcfs", "job 4710 (4 CPUs, limit 3.0 h)")
    assert found["wait"] == 10 * HOUR
    assert found["started"]["rank"] == 1


@pytest.mark.parametrize(("command_of", "linked"), [("why", True), ("why", False), ("what-if", False)])
def test_a_log_or_outages_that_are_not_linked_yet_are_named(
    command: Command, place: Path, command_of: str, linked: bool
) -> None:
    """`site --outages` has named a file since the last `log`; or `log` never ran."""
    params, folder = place / "params.yaml", Path("data/logs/ours")
    if linked:
        params.write_text(params.read_text().replace("path: ours.swf", "path: ours.swf, outages: [events.txt]"))
    else:
        folder.rename(place / "elsewhere")
    done = command(command_of, "ours", *(["nodes=+20%"] if command_of == "what-if" else []))
    gone, what = (folder / "outages/0", "file of outages") if linked else (folder, "log")
    said = f"expected the {what} of ours, found none; 'python -m pipeline log' links it\n"
    assert (done.code, done.out, done.err) == (2, "", f"error: {gone}: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ours", 7), "ours: expected a job of the log, 4708 to 4717, found 7"),
        (("ours", "--policy", "limit_9h"), "ours: --policy: unknown 'limit_9h'"),
        (("theirs",), "params.yaml: sites: unknown 'theirs'"),
    ],
)
def test_a_mistake_is_one_line(command: Command, words: tuple[object, ...], said: str) -> None:
    done = command("why", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
