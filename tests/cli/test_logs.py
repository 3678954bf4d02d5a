"""`trace` on the command line: what it prints, what it writes, and what it refuses."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from pipeline.cli import app, ending

SHARED = Path(__file__).parents[3] / "shared" / "traces"
PODS, NODES = SHARED / "openb_pod_list_default.csv.gz", SHARED / "openb_node_list_all_node.csv.gz"
LOG = """; MaxProcs: 8
1 0 5 100 4 -1 -1 4 200 -1 1 3 -1 -1 -1 -1 -1 -1
2 50 0 -1 1 -1 -1 1 -1 -1 1 3 -1 -1 -1 -1 -1 -1
3 100 0 50 2 -1 -1 2 60 -1 1 4 -1 -1 -1 -1 -1 -1
"""
TABLES = ["distributions", "gaps", "load", "over_time", "overview", "quarantine", "shares", "users"]
FIGURES = ["arrivals", "demands", "load", "run_times"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.swf").write_text(LOG)
    return tmp_path


def traced(*words: str) -> str:
    result = CliRunner().invoke(app, ["trace", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setattr("sys.argv", ["pipeline", "trace", *words])
    with pytest.raises(SystemExit) as ended:
        ending.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.count("\n") == 1
    return said


def test_it_says_what_is_in_a_log() -> None:
    said = traced("small.swf")
    rows = {tuple(line.split()) for line in said.splitlines()}
    assert ("rows", "of", "the", "log", "3") in rows
    assert ("rows", "dropped", "1") in rows
    assert ("cpu", "cores", "5", "8", "0.625") in rows  # (4 * 100 + 2 * 50) / 100 of 8
    assert ("run", "time", "s", "2", "50", "75", "75", "95", "99.5", "100") in rows
    assert ("3", "1", "0.5") in rows
    assert ("dropped", "run", "time", "unknown", "1", "0.333", "3") in rows


def test_it_writes_tables_and_figures_under_the_name_of_the_log(folder: Path) -> None:
    traced("small.swf")
    written = sorted((folder / "reports/trace/small").iterdir())
    assert [path.stem for path in written if path.suffix == ".csv"] == TABLES
    assert [path.stem for path in written if path.suffix == ".png"] == FIGURES
    quarantine = pd.read_csv(folder / "reports/trace/small/quarantine.csv")
    assert quarantine[["reason", "rows", "first_line"]].to_numpy().tolist() == [["run time unknown", 1, 3]]


def test_it_writes_the_same_bytes_twice(folder: Path) -> None:
    traced("small.swf", "--out", "one")
    traced("small.swf", "--out", "two")
    one, two = ({path.name: path.read_bytes() for path in (folder / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert len(one) == len(TABLES) + len(FIGURES)


def test_it_reads_the_format_that_it_is_told(folder: Path) -> None:
    (folder / "tasks.csv").write_text("M1,1,j_1,1,Terminated,100,110,100,0.5\n")
    assert "percent of a machine" in traced("tasks.csv", "--format", "alibaba2018")


def test_what_it_refuses_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bad.swf").write_text(LOG + "4 200 soon\n")
    (folder / "taken").write_text("")
    for words, expected in {
        ("bad.swf",): "error: bad.swf:5: expected 18 numbers, found 3\n",
        ("gone.swf",): "error: gone.swf: cannot be read (No such file or directory)\n",
        ("small.swf", "--format", "pbs"): "error: format: expected one of swf, openb, alibaba2018, alibaba2017, ",
        (
            "small.swf",
            "--nodes",
            "bad.swf",
        ): "error: small.swf: a log of format 'swf' has no nodes; expected one of format openb, slurm\n",
        ("taken",): "error: taken: expected jobs, found an empty file\n",
        ("small.swf", "--out", "taken"): "error: taken/overview.csv: cannot be written (File exists)\n",
    }.items():
        assert refusal(capsys, monkeypatch, *words).startswith(expected)


def test_pods_are_shown_beside_their_nodes() -> None:
    if not PODS.exists() or not NODES.exists():
        pytest.skip(f"the trace files stand beside the project, and {PODS} is not there")
    said = traced(str(PODS), "--nodes", str(NODES))
    rows = {tuple(line.split()) for line in said.splitlines()}
    assert ("jobs", "7,255") in rows
    assert ("machines", "1,523") in rows
    assert ("dropped", "never", "scheduled", "897", "0.11", "63") in rows


def test_it_warns_of_what_is_implausible_and_says_so_in_its_tables(folder: Path) -> None:
    (folder / "small.swf").write_text(LOG.replace("MaxProcs: 8", "MaxNodes: 4"))
    result = CliRunner().invoke(app, ["trace", "small.swf"], catch_exceptions=False)
    doubt = "size: 6 cpu were in use at once, and the machines have 4: are the machines larger?"
    assert f"warning: {doubt}\n" in result.stderr
    for_programs = CliRunner().invoke(app, ["trace", "small.swf", "--json"], catch_exceptions=False)
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert for_programs.stderr.splitlines() == warnings
    quarantine = pd.read_csv(folder / "reports/trace/small/quarantine.csv")
    assert quarantine[quarantine["what"] == "doubtful"]["reason"].tolist()[0] == doubt
