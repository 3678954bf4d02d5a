"""The command line as users see it: answers, refusals, and `schedule` on their own jobs."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pandas as pd
import pytest
import typer
from builders import REPOSITORY
from commands import Command, Outcome
from golden import GOLDEN

from pipeline.cli import app
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.learning.stored import weights_of
from pipeline.problems.pool.agents.networks.networks import build, card_of
from pipeline.problems.pool.env.nouns import Cluster

SHARED = REPOSITORY.parent / "shared"
HPC2N = SHARED / "traces" / "HPC2N-2002-2.2-cln.first15000.swf.gz"
HEAVY = ("torch", "mlflow", "pandas", "matplotlib", "numba", "pyarrow", "pandera")

HEAD = "jobset,job,arrival,duration,cpu,memory"
# Ten units of each resource. Shortest first: b starts at 0; it ends at 1, when c starts, and a fits in addition.
# First come, first served: a starts at 0; b does not fit with it, c does, at 1; both end at 3, when b starts.
JOBS = f"{HEAD}\n0,a,0,3,6,2\n0,b,0,1,6,2\n0,c,1,2,4,8\n"
SHORTEST_FIRST = "jobset,job,start,finish,slowdown\n0,a,1,4,1.33333\n0,b,0,1,1\n0,c,1,3,1\n"
FIRST_COME = "jobset,job,start,finish,slowdown\n0,a,0,3,1\n0,b,3,4,4\n0,c,1,3,1\n"


NEITHER = (
    "expected a job table (.csv, .csv.gz, .parquet) or a log of format "
    "swf, openb, alibaba2018, alibaba2017, cloudsimpy, slurm, google2011"
)


def process(*words: str, folder: Path = REPOSITORY, **more: str) -> Outcome:
    """Run a command as a user does."""
    named = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(REPOSITORY), **more}
    done = subprocess.run([sys.executable, *words], check=False, cwd=folder, env=named, capture_output=True, text=True)
    return Outcome(done.returncode, done.stdout, done.stderr)


def refused(outcome: Outcome, said: str) -> None:
    """Check for one line that begins as expected, and no other output."""
    assert outcome.code == 2
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"error: {said}")


def schedule(command: Command, jobs: object, out: object = "out.csv", *more: object, policy: object = "sjf") -> Outcome:
    return command("schedule", jobs, "--scenario", "online", "--policy", policy, "--out", out, *more)


def scheduled(command: Command, jobs: object, *more: object, policy: object = "sjf") -> str:
    outcome = schedule(command, jobs, "out.csv", *more, policy=policy)
    assert outcome.code == 0, outcome.err
    return Path("out.csv").read_text()


NOWHERE_TO_KEEP = """
import sys
from numba.core import caching
def refuse(*_): raise OSError("read-only")
for name in ("UserProvidedCacheLocator", "InTreeCacheLocator", "UserWideCacheLocator"):
    getattr(caching, name).ensure_cache_path = refuse
sys.argv = ["pipeline", *sys.argv[1:]]
from pipeline.cli import main
main()
"""


def test_where_no_folder_can_hold_compiled_code_one_line_says_which_variable_to_set(tmp_path: Path) -> None:
    jobs = REPOSITORY / "pipeline" / "stages" / "trial" / "jobs.csv"
    words = ("schedule", str(jobs), "--scenario", "online", "--policy", "sjf", "--out", str(tmp_path / "out.csv"))
    refused(
        process("-c", NOWHERE_TO_KEEP, *words), "no folder for compiled code can be written to: set NUMBA_CACHE_DIR"
    )
    assert list(tmp_path.iterdir()) == []


# Help


def commands(group: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Return every command by its words, and whether it can be run (is not a group)."""
    inner = getattr(group, "commands", None)
    yield words, inner is None
    for name, below in (inner or {}).items():
        yield from commands(below, (*words, name))


COMMANDS = list(commands(typer.main.get_command(app)))


def test_there_is_a_command_for_every_stage_and_task() -> None:
    assert {" ".join(words) for words, runs in COMMANDS if runs} >= {
        "log",
        "generate",
        "pretrain",
        "finetune",
        "evaluate heuristics",
        "evaluate agent",
        "evaluate compare",
        "evaluate papers",
        "schedule",
    }


# A separate process for each would spend most of its time starting.
HELPS = """
import contextlib, io, json, sys
from pipeline.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv, code = ["pipeline", *words, "--help"], None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules}), out.getvalue()]))
"""


Helped = dict[tuple[str, ...], tuple[int | None, set[str], str]]


@pytest.fixture(scope="module")
def helped() -> Helped:
    """Return, for each command's --help, its exit code, the modules then imported, and its text; all in one process."""
    every = [words for words, _ in COMMANDS]
    outcome = process("-c", HELPS, json.dumps(every), COLUMNS="80")
    assert (outcome.code, outcome.err) == (0, "")
    told = (json.loads(line) for line in outcome.out.splitlines())
    return {words: (code, set(imported), text) for words, (code, imported, text) in zip(every, told, strict=True)}


@pytest.mark.parametrize(("words", "runs"), COMMANDS, ids=[" ".join(words) or "pipeline" for words, _ in COMMANDS])
def test_help_answers_at_once_in_80_columns_and_shows_an_example(
    words: tuple[str, ...], runs: bool, helped: Helped
) -> None:
    code, imported, text = helped[words]
    assert code == 0
    assert "pipeline" in imported
    assert imported.isdisjoint(HEAVY)
    assert "Usage:" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Example: python -m pipeline" in " ".join(text.split()) or not runs


@pytest.mark.parametrize("words", [(), ("benchmark",), ("check",)], ids=["program", "group", "command"])
def test_help_has_a_short_option(command: Command, words: tuple[str, ...]) -> None:
    outcome = command(*words, "-h")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Usage:" in outcome.out


def test_help_of_a_real_process_answers_at_once() -> None:
    outcome = process("-X", "importtime", "-m", "pipeline", "finetune", "--help")
    assert outcome.code == 0
    assert "Usage:" in outcome.out
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in outcome.err.splitlines()}
    assert "pipeline" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("evaluate he", ["heuristics"]),
        ("generate o", ["online", "offline", "overload"]),
        ("pretrain deeprm_o", ["deeprm_off"]),
    ],
)
def test_the_shell_completes_commands_and_names_of_params_yaml(typed: str, completions: list[str]) -> None:
    asked = {"_DEEPRM_COMPLETE": "complete_bash", "COMP_WORDS": f"deeprm {typed}", "COMP_CWORD": "2"}
    outcome = process("-c", "import sys; sys.argv = ['deeprm']; from pipeline.cli import app; app()", **asked)
    assert outcome.out.split() == completions


def test_completion_is_offered_for_the_program_and_not_for_python() -> None:
    assert "--install-completion" not in process("-m", "pipeline", "--help").out
    asked = "import sys; sys.argv = ['deeprm', '--help']; from pipeline.cli import app; app()"
    assert "--install-completion" in process("-c", asked).out


def test_params_are_checked_without_running_anything(command: Command) -> None:
    outcome = command("check")
    assert (outcome.code, outcome.err) == (0, "")
    there = "online, offline, unknown_load, streams, overload, machines, machines_steady, shares"
    said = f"params.yaml: valid; scenarios {there}; agents deeprm, "
    assert outcome.out.startswith(said)
    Path("params.yaml").write_text(Path("params.yaml").read_text().replace("recipe: ours", "recipe: our", 1))
    refused(command("check"), "params.yaml: agents.deeprm.finetune.recipe: unknown 'our'")


# Mistakes on the command line


def test_a_real_process_ends_a_mistake_with_one_line(tmp_path: Path) -> None:
    outcome = process("-m", "pipeline", "generate", "onlin")
    refused(outcome, "unknown scenario 'onlin'; there are: machines, machines_steady, offline, online")


def test_outside_of_the_environment_one_line_says_where_it_is() -> None:
    outcome = process("-S", "-m", "pipeline", "check")
    refused(outcome, "needs typer: pip install deeprm-pipeline; in a clone 'make setup', then 'source .venv/bin/act")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("generate onlin", "unknown scenario 'onlin'; there are: machines, machines_steady, offline, online"),
        (
            "evaluate heuristics onlin",
            "unknown scenario 'onlin'; there are: machines, machines_steady, offline, online",
        ),
        (
            "pretrain deeprn",
            "unknown agent 'deeprn'; there are: allocator, controller, deep",
        ),
        ("schedule jobs.csv --scenario onlin --policy sjf --out out.csv", "unknown scenario 'onlin'; there are: "),
        ("schedule jobs.csv --scenario online --policy sjff --out out.csv", "unknown policy 'sjff': expected a model "),
        ("evaluate compare", "data/jobsets/online/test.parquet is missing: run 'dvc repro'"),
        ("evaluate papers", "reports/tables/heuristics/online/jobsets.parquet is missing: run 'dvc repro'"),
        ("evaluate heuristics online", "data/jobsets/online/train.parquet is missing: run 'dvc repro'"),
    ],
)
def test_a_mistake_ends_with_one_line(command: Command, place: Path, words: str, said: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    before = set(place.iterdir())
    refused(command(*words.split()), said)
    assert set(place.iterdir()) == before


def test_every_command_checks_all_params_first(command: Command) -> None:
    text = Path("params.yaml").read_text()
    Path("params.yaml").write_text(text.replace("resamples: 4000", "resamples: 40"))
    refused(command("generate", "online"), "params.yaml: evaluation.resamples: ")
    Path("params.yaml").write_text(text.replace("teacher: sjf", "teacher: sjff"))
    refused(command("generate", "online"), "params.yaml: agents.deeprm2.pretrain.teacher: unknown 'sjff'; there are: ")


def test_outside_the_repository_a_command_says_where_to_run_it(command: Command) -> None:
    Path("params.yaml").unlink()
    refused(command("generate", "online"), "params.yaml: cannot be read (No such file or directory); run this at ")


# Job tables


@pytest.mark.parametrize(("policy", "expected"), [("sjf", SHORTEST_FIRST), ("fcfs", FIRST_COME)])
@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz", "jobs.parquet"])
def test_a_job_table_is_scheduled(command: Command, name: str, policy: str, expected: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    frame = pd.read_csv("jobs.csv")
    if name.endswith(".parquet"):
        frame.to_parquet(name)
    else:
        frame.to_csv(name, index=False)
    assert scheduled(command, name, policy=policy) == expected


def test_a_heuristic_plays_as_validation_tuned_it(command: Command) -> None:
    # b has to wait for a's units; c fits with a, but is held back while the shorter b waits, if c counts as long.
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,5,6,2\n0,b,1,2,6,2\n0,c,1,12,4,2\n")
    untuned = schedule(command, "jobs.csv", policy="hold")
    said = "hold: not tuned for scenario 'online'; 'dvc repro heuristics@online' tunes it"
    assert untuned.err.splitlines()[0] == said
    assert pd.read_csv("out.csv")["start"].tolist() == [0, 5, 5]
    storage.write_chosen("online", storage.Chosen(knobs={"hold": 13.0}, best={}, validation={}))
    tuned = schedule(command, "jobs.csv", policy="hold")
    assert tuned.err.startswith("out.csv: ")
    assert pd.read_csv("out.csv")["start"].tolist() == [0, 5, 1]


def test_a_real_process_schedules(place: Path) -> None:
    Path("jobs.csv").write_text(JOBS)
    words = "-m pipeline schedule jobs.csv --scenario online --policy sjf --out new/folder/out.csv"
    outcome = process(*words.split(), folder=place)
    assert outcome == Outcome(0, "", "new/folder/out.csv: 3 jobs, mean slowdown 1.111 under sjf\n")
    assert Path("new/folder/out.csv").read_text() == SHORTEST_FIRST


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_the_schedule_is_written_as_its_name_says(command: Command, name: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    assert schedule(command, "jobs.csv", name).code == 0
    found = pd.read_parquet(name) if name.endswith(".parquet") else pd.read_csv(name)
    assert found["job"].tolist() == ["a", "b", "c"]
    assert found["start"].tolist() == [1, 0, 1]
    assert found["finish"].tolist() == [4, 1, 3]
    assert found["slowdown"].tolist() == pytest.approx([4 / 3, 1, 1], rel=1e-5)


def swf(path: Path, *jobs: tuple[int, int, int, int]) -> Path:
    """Write a log of a machine with ten processors: id, arrival and run time in seconds, processors."""
    lines = [f"{id} {submit} 0 {run} {size} -1 -1 {size} -1 -1 1 1 1 1 1 -1 -1 -1" for id, submit, run, size in jobs]
    text = "\n".join(["; MaxProcs: 10", *lines, ""]).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_a_log_is_scheduled_in_steps_of_an_hour_under_its_own_ids(command: Command, name: str) -> None:
    log = swf(Path(name), (7, 0, 3 * 3600 - 5, 6), (9, 10, 3600, 6), (8, 3600, 7200, 4))
    outcome = schedule(command, log)
    assert outcome.code == 0
    assert "3 rows, 3 jobs over 0.0 days" in outcome.err
    found = pd.read_csv("out.csv")
    assert found["job"].tolist() == [7, 9, 8]
    assert found["start"].tolist() == [1, 0, 1]
    assert found["finish"].tolist() == [4, 1, 3]


def test_rows_in_any_order_keep_their_order(command: Command) -> None:
    shuffled = f"{HEAD}\n1,x,5,1,1,1\n0,c,1,2,4,8\n0,b,0,1,6,2\n1,y,0,2,1,1\n0,a,0,3,6,2\n"
    Path("jobs.csv").write_text(shuffled)
    assert scheduled(command, "jobs.csv") == (
        "jobset,job,start,finish,slowdown\n1,x,5,6,1\n0,c,1,3,1\n0,b,0,1,1\n1,y,0,2,1\n0,a,1,4,1.33333\n"
    )


def test_columns_may_stand_in_any_order(command: Command) -> None:
    Path("jobs.csv").write_text(JOBS)
    pd.read_csv("jobs.csv")[["memory", "cpu", "job", "duration", "arrival", "jobset"]].to_csv("jobs.csv", index=False)
    assert scheduled(command, "jobs.csv") == SHORTEST_FIRST


@pytest.mark.parametrize(
    ("jobset", "jobs"), [("night", ["a", "b", "c"]), ("3fc-9", ["x/1", "x/2", "é"]), (-4, [9, 5, 10**15])]
)
def test_ids_may_be_words_or_numbers(command: Command, jobset: object, jobs: list[object]) -> None:
    Path("jobs.csv").write_text(JOBS)
    frame = pd.read_csv("jobs.csv").assign(jobset=jobset, job=jobs)
    for name in ("jobs.csv", "jobs.parquet"):
        frame.to_csv(name, index=False) if name.endswith(".csv") else frame.to_parquet(name)
        assert schedule(command, name, "out.parquet").code == 0
        found = pd.read_parquet("out.parquet")
        assert found["jobset"].tolist() == [jobset] * 3
        assert found["job"].tolist() == jobs
        assert found["start"].tolist() == [1, 0, 1]


def test_ids_stay_as_they_are_written(command: Command) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\nNA,007,0,3,10,10\nNA,7,0,3,10,10\n")
    assert scheduled(command, "jobs.csv") == "jobset,job,start,finish,slowdown\nNA,007,0,3,1\nNA,7,3,6,2\n"


def test_jobs_of_different_jobsets_do_not_share_the_cluster(command: Command) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,3,10,10\n1,a,0,3,10,10\n")
    assert scheduled(command, "jobs.csv") == "jobset,job,start,finish,slowdown\n0,a,0,3,1\n1,a,0,3,1\n"


def test_a_table_may_begin_at_any_step(command: Command) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,1700000000,3,10,10\n0,b,1700000001,1,10,10\n")
    assert scheduled(command, "jobs.csv") == (
        "jobset,job,start,finish,slowdown\n0,a,1700000000,1700000003,1\n0,b,1700000003,1700000004,3\n"
    )


ROWS = [
    ("0,a,-1,3,1,2", "arrival: expected at least 0, got -1 in line 2"),
    ("0,a,0,3,1,2\n0,b,,3,1,2", "arrival: expected a whole number in line 3, got nan"),
    ("0,a,nan,3,1,2", "arrival: expected a whole number in line 2, got nan"),
    ("0,a,soon,3,1,2", "arrival: expected a whole number in line 2, got soon"),
    ("0,a,inf,3,1,2", "arrival: expected a whole number in line 2, got inf"),
    ("0,a,1e30,3,1,2", "arrival: expected a whole number in line 2, got 1e+30"),
    ("0,a,0,0,1,2", "duration: expected at least 1, got 0 in line 2"),
    ("0,a,0,2.5,1,2", "duration: expected a whole number in line 2, got 2.5"),
    ("0,a,0,21,1,2", "duration: expected at most 20, got 21 in line 2"),
    ("0,a,0,3,11,2", "cpu: expected at most 10, got 11 in line 2"),
    ("0,a,0,3,1,-2", "memory: expected at least 0, got -2 in line 2"),
    ("0,a,0,3,1", "memory: expected a whole number in line 2, got nan"),
    ("0,a,0,3,1,2\n0,b,0,3,1,2\n0,a,9,1,1,1", "expected each jobset, job once, got the one in line 2 again"),
    ("0,,0,3,1,2", "job: expected not_nullable, got nan in line 2"),
    ("0,a,0,3,1,2,7", "expected as many fields in a row as in the header, found more"),
    ("0,a,0,3,1,2\n0,b,0,3,1,2,7", "not a readable table (Error tokenizing data. "),
    ("", "expected jobs, found none"),
]


@pytest.mark.parametrize(("rows", "said"), ROWS, ids=[said for _, said in ROWS])
def test_a_bad_row_is_refused(command: Command, place: Path, rows: str, said: str) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\n{rows}\n")
    refused(schedule(command, "jobs.csv"), f"jobs.csv: {said}")
    assert sorted(path.name for path in place.iterdir()) == ["jobs.csv", "params.yaml"]


PACKED = gzip.compress(JOBS.encode(), mtime=0)
PACKED_LOG = gzip.compress(b"; MaxProcs: 10\n", mtime=0)
WANTED = "columns: expected jobset, job, arrival, duration, cpu, memory; "


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("jobs.csv", b"", "expected jobs, found an empty file"),
        ("jobs.csv", b"\n\n", "expected jobs, found an empty file"),
        ("jobs.csv", b"jobset,job,arrival,duration,cpu\n0,a,0,3,1\n", f"{WANTED}missing memory"),
        ("jobs.csv", b"jobset,job,arrival,duration,cpu,memory,gpu\n0,a,0,3,1,2,3\n", f"{WANTED}unknown gpu"),
        ("jobs.csv", JOBS.replace(",", ";").encode(), f"{WANTED}missing job, arrival, "),
        ("jobs.csv", b"\xff\xfe\x00\x01", "not a readable table ("),
        ("jobs.csv", b'jobset,job\n"a', "not a readable table ("),
        ("jobs.csv.gz", PACKED[:-9], "not a readable table (Compressed file ended before "),
        ("jobs.csv.gz", JOBS.encode(), "not a readable table (Not a gzipped file "),
        ("jobs.csv.gz", PACKED[:20] + b"\0\0\0" + PACKED[23:], "not a readable table ("),
        ("jobs.csv.gz", b"", "expected jobs, found an empty file"),
        ("jobs.parquet", b"junk", "not a readable table ("),
        ("jobs.parquet", b"", "not a readable table ("),
        ("log.swf", b"1 2 3\n", "1: expected 18 numbers, found 3"),
        ("log.swf", b"; MaxProcs: 10\n", "expected jobs, found an empty log"),
        ("log.swf.gz", PACKED_LOG[:-9], "its name ends in .gz, but it is not a whole gzip file ("),
        (
            "jobs.txt",
            JOBS.encode(),
            NEITHER,
        ),
        (
            "jobs",
            JOBS.encode(),
            NEITHER,
        ),
        (
            "jobs.gz",
            PACKED,
            NEITHER,
        ),
    ],
)
def test_a_bad_file_is_refused(command: Command, place: Path, name: str, content: bytes, said: str) -> None:
    Path(name).write_bytes(content)
    between = ":" if said.startswith("1:") else ": "
    refused(schedule(command, name), f"{name}{between}{said}")
    assert sorted(path.name for path in place.iterdir()) == [name, "params.yaml"]


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz", "jobs.parquet"])
def test_a_missing_table_is_named(command: Command, name: str) -> None:
    refused(schedule(command, name), f"{name}: no such file")


def test_a_missing_log_is_named(command: Command) -> None:
    refused(schedule(command, "log.swf"), "log.swf: cannot be read (No such file or directory)")


def test_a_folder_is_no_table(command: Command) -> None:
    Path("jobs.csv").mkdir()
    refused(schedule(command, "jobs.csv"), "jobs.csv: not a readable table (")


@pytest.mark.parametrize("out", ["out.txt", "out", "out.gz", "out.swf"])
def test_a_schedule_of_no_known_kind_is_refused_before_any_work(command: Command, out: str) -> None:
    refused(schedule(command, "missing.csv", out), f"{out}: expected a name that ends in .csv, .csv.gz or .parquet")


@pytest.mark.parametrize("out", ["jobs.csv/out.csv", "jobs.csv/out.parquet", "taken.csv"])
def test_a_schedule_that_cannot_be_written_is_said_so(command: Command, place: Path, out: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    Path("taken.csv").mkdir()
    refused(schedule(command, "jobs.csv", out), f"{out}: cannot be written (")
    assert sorted(path.name for path in place.iterdir()) == ["jobs.csv", "params.yaml", "taken.csv"]
    assert Path("jobs.csv").read_text() == JOBS


# Another cluster


def test_capacity_replaces_every_resource(command: Command) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,3,15,20\n")
    refused(schedule(command, "jobs.csv"), "jobs.csv: cpu: expected at most 10, got 15 in line 2 (and 1 more)")
    assert scheduled(command, "jobs.csv", "--capacity", 20) == "jobset,job,start,finish,slowdown\n0,a,0,3,1\n"


def test_horizon_bounds_durations(command: Command) -> None:
    Path("jobs.csv").write_text(f"{HEAD}\n0,a,0,25,1,1\n")
    refused(schedule(command, "jobs.csv"), "jobs.csv: duration: expected at most 20, got 25 in line 2")
    assert scheduled(command, "jobs.csv", "--horizon", 25) == "jobset,job,start,finish,slowdown\n0,a,0,25,1\n"


def test_one_slot_shows_one_job_at_a_time(command: Command) -> None:
    # The slot shows a, which starts; then b, which blocks it until 3; then c, which fits together with b.
    Path("jobs.csv").write_text(JOBS)
    found = scheduled(command, "jobs.csv", "--slots", 1)
    assert found == "jobset,job,start,finish,slowdown\n0,a,0,3,1\n0,b,3,4,4\n0,c,3,5,2\n"


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--slots", 0, "scenario: slots: expected greater than 0, got 0"),
        ("--horizon", 1, "scenario: horizon: expected greater than 1, got 1"),
        ("--capacity", -3, "scenario: resources.cpu: expected greater than 0, got -3 (and 1 more)"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(command: Command, flag: str, value: int, said: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    refused(schedule(command, "jobs.csv", "out.csv", flag, value), said)


# Models


@pytest.fixture
def model(place: Path, params: Params) -> Path:
    """An agent's directory with a policy of the initial weights."""
    network = build(params.agent("deeprm").network, Cluster.of(params.pool_scenario("online")), seed=3)
    folder = place / "models" / "deeprm"
    storage.write_model(folder / "policy", storage.Model(card_of(params, "deeprm"), weights_of(network)))
    return folder


def test_a_model_schedules_every_job_from_its_arrival_on(command: Command, model: Path) -> None:
    Path("jobs.csv").write_text(JOBS)
    found = scheduled(command, "jobs.csv", policy=model)
    assert found == scheduled(command, "jobs.csv", policy=model / "policy")
    frame = pd.read_csv("out.csv")
    assert (frame["finish"] - frame["start"]).tolist() == [3, 1, 2]
    assert (frame["start"].to_numpy() >= [0, 0, 1]).all()


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--slots", 5, "trained with slots 10, the scenario has 5"),
        ("--horizon", 30, "trained with horizon 20, the scenario has 30"),
        ("--capacity", 20, "trained with resources {'cpu': 10, 'memory': 10}, the scenario has {'cpu': 20, "),
    ],
)
def test_a_model_of_another_cluster_is_refused(command: Command, model: Path, flag: str, value: int, said: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    refused(schedule(command, "jobs.csv", "out.csv", flag, value, policy=model), f"model of agent 'deeprm': {said}")
    assert not Path("out.csv").exists()


def test_a_folder_without_a_model_is_refused(command: Command, place: Path) -> None:
    Path("jobs.csv").write_text(JOBS)
    Path("empty").mkdir()
    refused(schedule(command, "jobs.csv", policy="empty"), "empty: not a model directory: expected policy.json and ")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("policy.json", b"{", "policy.json: not a model card ("),
        ("policy.json", b"{}", "policy.json: not a model card ("),
        ("policy.safetensors", b"junk", "policy.safetensors: not weights ("),
        ("policy.safetensors", b"", "policy.safetensors: not weights ("),
    ],
)
def test_a_damaged_model_is_refused(command: Command, model: Path, file: str, content: bytes, said: str) -> None:
    Path("jobs.csv").write_text(JOBS)
    (model / "policy" / file).write_bytes(content)
    refused(schedule(command, "jobs.csv", policy=model), f"{model}/policy/{said}")


def test_weights_of_another_network_are_refused(command: Command, model: Path, params: Params) -> None:
    Path("jobs.csv").write_text(JOBS)
    other = build(params.agent("deeprm2").network, Cluster.of(params.pool_scenario("online")), seed=3)
    storage.write_model(model / "policy", storage.Model(card_of(params, "deeprm"), weights_of(other)))
    refused(
        schedule(command, "jobs.csv", policy=model), "model of agent 'deeprm': tensor first.bias: expected 20 float32, "
    )


# The original DeepRM, and a real log


@pytest.mark.parametrize(("policy", "name"), [("sjf", "SJF"), ("packer", "Packer"), ("fcfs", "FCFS_arrival")])
@pytest.mark.parametrize(
    ("workload", "rate", "capacity"), [("repo", 0.271003, 10), ("repo", 0.704607, 10), ("paper", 0.758808, 20)]
)
def test_jobs_start_and_finish_as_in_the_original(
    command: Command, workload: str, rate: float, capacity: int, policy: str, name: str
) -> None:
    def mine(file: str) -> pd.DataFrame:
        rows = pd.read_csv(GOLDEN / file)
        return rows[(rows["workload"] == workload) & (rows["rate"] == rate)]

    jobs = mine("jobsets.csv.gz").drop(columns=["workload", "rate"])
    jobs.to_csv("jobs.csv.gz", index=False)
    outcome = schedule(command, "jobs.csv.gz", "out.parquet", "--capacity", capacity, policy=policy)
    assert outcome.code == 0
    recorded = mine("golden_jobs.csv.gz")
    recorded = recorded[recorded["policy"] == name]
    both = pd.read_parquet("out.parquet").merge(recorded, on=["jobset", "job"], suffixes=("", "_recorded"))
    assert len(both) == len(jobs) == len(recorded) > 250
    assert both["start"].tolist() == both["start_recorded"].tolist()
    assert both["finish"].tolist() == both["finish_recorded"].tolist()


@pytest.mark.skipif(not HPC2N.is_file(), reason=f"the log is not at {HPC2N}")
def test_a_real_log_is_scheduled_under_its_own_ids(command: Command) -> None:
    outcome = schedule(command, HPC2N, "out.parquet")
    assert outcome.code == 0
    assert "15,000 rows, 15,000 jobs over " in outcome.err
    with gzip.open(HPC2N, "rt") as lines:
        ids = [int(line.split()[0]) for line in lines if not line.startswith(";")]
    assert pd.read_parquet("out.parquet")["job"].tolist() == ids


# Threads

THREADS = """
from pipeline.cli.base import read_params

threads = read_params().threads
import numba
import numpy
from threadpoolctl import threadpool_info

print(threads, numba.config.NUMBA_NUM_THREADS, *(pool["num_threads"] for pool in threadpool_info()))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stage_gives_numpy_and_numba_the_threads_of_params_yaml(tmp_path: Path, threads: int) -> None:
    text = (REPOSITORY / "params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(re.sub(r"(?m)^threads: \d+", f"threads: {threads}", text))
    named = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    named["PYTHONPATH"] = str(REPOSITORY)
    words = [sys.executable, "-c", THREADS]
    said = subprocess.check_output(words, cwd=tmp_path, env=named, text=True)
    assert said.split()[:2] == [str(threads)] * 2
    assert set(said.split()[2:]) == {str(min(threads, os.cpu_count() or 1))}
