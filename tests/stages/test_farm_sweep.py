"""`farm --set`: several DVC experiments at once, on stages of a moment; and, in slow tests, on the small problem."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from builders import REPOSITORY
from repositories import Folder, tracked

# The output of `own` depends on one key; what all points share is made once, whichever point needs it first.
TOY = """stages:
  shared: {cmd: sh do.sh shared, params: [threads], outs: [shared.txt]}
  own:
    cmd: sh do.sh own
    deps: [shared.txt]
    params: [evaluation.confidence]
    outs: [own.txt]
    metrics: [{own.json: {cache: false}}]
"""
DO = """echo "$1" >> "$DVC_ROOT/ran"
if [ "$1" = shared ]; then echo shared > shared.txt; exit; fi
if grep -q "confidence: $BROKEN$" params.yaml; then echo "error: no ink" >&2; exit 2; fi
if grep -q "confidence: $SLOW$" params.yaml; then sleep 600; fi
grep confidence: params.yaml | cat shared.txt - > own.txt
echo '{"x": 1}' > own.json
"""
SWEEP = (sys.executable, "-m", "pipeline", "farm", "--set", "evaluation.confidence=0.8,0.9")
NAME = re.compile(r"confidence-(0\.\d)-[0-9a-f]{6}")


class Toy(Folder):
    """A repository of two stages that take a moment."""

    def sweep(self, *words: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*SWEEP, *words],
            cwd=self.root,
            env={**self._environment, "BROKEN": "none", "SLOW": "none", **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def said(self, code: int, *words: str, **more: str) -> list[str]:
        """Run the sweep to its end; return its output."""
        sweep = self.sweep(*words, **more)
        said = sweep.communicate()[0]
        assert sweep.returncode == code, said
        return said.splitlines()

    def trees(self) -> dict[str, str]:
        """The files of each experiment, by the value of its parameter."""
        refs = self.git("for-each-ref", "--format=%(refname) %(tree)", "refs/exps").split("\n")
        found = (line.split() for line in refs if line and not line.startswith("refs/exps/exec"))
        return {ref.rpartition("/")[2]: tree for ref, tree in found}

    def ran(self) -> list[str]:
        """The stages that ran, in any workspace."""
        return sorted((self.root / "ran").read_text().split())


@pytest.fixture
def toy(tmp_path: Path, environment: dict[str, str]) -> Toy:
    root = tmp_path / "toy"
    (root / ".dvc").mkdir(parents=True)
    (root / ".dvc" / "config").write_bytes((REPOSITORY / ".dvc" / "config").read_bytes())
    (root / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")
    (root / "params.yaml").write_bytes((REPOSITORY / "params.yaml").read_bytes())
    for name, text in (("dvc.yaml", TOY), ("do.sh", DO), (".gitignore", "*.txt\nran\n")):
        (root / name).write_text(text)
    folder = Toy(root, {**environment, "PYTHONPATH": f"{REPOSITORY}:{environment['PYTHONPATH']}"})
    folder.git("init", "--quiet", "--initial-branch", "main")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "-m", "begun")
    return folder


@pytest.mark.slow
def test_points_are_the_experiments_that_dvc_makes_and_one_that_fails_holds_up_no_other(toy: Toy) -> None:
    (toy.root / "do.sh").write_text(DO + "# changed\n")
    said = toy.said(2, BROKEN="0.9")
    assert "farm: files are changed since the last commit; every point has them so, as with dvc exp run" in said
    assert "farm: each point has 1 stages of its own: own" in said
    assert "farm: 1 stages that all points share are stale, and are made here first" in said
    assert "farm: 2 points, 0 there already, 2 at a time" in said
    (failed,) = [line for line in said if " failed after " in line]
    assert re.fullmatch(rf"farm: {NAME.pattern} failed after \d+ s: no ink", failed)
    assert said[-1] == f"error: farm: {failed.split()[1]} failed; the others are kept: put it right and run again"
    (there,) = toy.trees()
    assert NAME.fullmatch(there)[1] == "0.8"  # type: ignore[index]
    assert toy.ran() == ["own", "own", "shared"]

    assert "farm: 2 points, 1 there already, 2 at a time" in toy.said(0)
    assert toy.ran() == ["own", "own", "own", "shared"]
    assert not list((toy.root / ".dvc/tmp/farm").glob("points/*"))
    made = toy.trees()
    values = {NAME.fullmatch(name)[1]: tree for name, tree in made.items()}  # type: ignore[index]
    assert len(set(values.values())) == 2

    *said, answer = toy.said(0, "--json")
    assert "farm: 2 points, 2 there already, 2 at a time" in said
    points = {point["name"]: point["values"] for point in json.loads(answer)["points"]}
    assert points == {name: {"evaluation.confidence": float(NAME.fullmatch(name)[1])} for name in made}  # type: ignore[index]
    toy.dvc("exp", "run", "--temp", "--name", "plain", "-S", "evaluation.confidence=0.9", BROKEN="", SLOW="")
    assert toy.trees() == {**made, "plain": values["0.9"]}
    assert toy.ran() == ["own", "own", "own", "shared"]  # from the shared cache


@pytest.mark.slow
def test_a_killed_sweep_leaves_nobody_and_goes_on_where_it_was(toy: Toy) -> None:
    sweep = toy.sweep(SLOW="0.9")
    while not toy.trees():
        assert sweep.poll() is None
        time.sleep(0.2)
    family = [sweep.pid, *(child.pid for child in psutil.Process(sweep.pid).children(recursive=True))]
    assert len(family) >= 4  # farm, sh, DVC, stage
    sweep.send_signal(signal.SIGKILL)
    sweep.communicate()
    said = toy.said(0)
    assert "farm: 2 points, 1 there already, 2 at a time" in said
    assert toy.ran() == ["own", "own", "own", "shared"]
    assert len(toy.trees()) == 2
    assert not [pid for pid in family if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


# The small problem

AFFECTED = ["compare", "evaluate@plain", "finetune@plain", "gate", "papers", "pretrain@plain"]
SEED_2 = ("agents.plain.finetune.updates=3", "++agents.plain.pretrain.seed=2", "++agents.plain.finetune.seed=2")


@pytest.mark.slow
def test_two_seeds_of_the_small_problem(folder: Folder, tmp_path: Path, environment: dict[str, str]) -> None:
    words = (sys.executable, "-m", "pipeline", "farm", "--set", "agents.plain.finetune.updates=3", "--seeds", "1..2")
    *said, answer = folder.run(*words, "--json", PIPELINE_TRACKING="").splitlines()
    assert "farm: seeds 1, 2 of pretrain and finetune of plain" in said
    assert not [line for line in said if "all points share are stale" in line]
    named = {name.rpartition("-")[0]: name for name in folder.dvc("exp", "list", "--name-only").split()}
    assert sorted(named) == ["updates-3-seed-1", "updates-3-seed-2"]

    runs = {run.rpartition("-")[0]: sorted(stages) for run, stages in tracked(folder.root).items()}
    assert {name: stages for name, stages in runs.items() if name in named.values()} == dict.fromkeys(
        named.values(), AFFECTED
    )
    (table,) = (folder.root / "reports" / "sweeps").glob("plain-*.csv")
    rows = pd.read_csv(table, dtype={"seed": str}).set_index("seed")
    assert list(rows.index) == ["1", "2", "all"]
    assert rows.loc["all", "mean"] == pytest.approx(rows.loc[["1", "2"], "mean"].mean(), rel=1e-5)
    assert rows["lowest_validation"].tolist() == [False, False, True]
    found = json.loads(answer)
    assert {point["name"]: point["seed"] for point in found["points"]} == {
        named["updates-3-seed-1"]: 1,
        named["updates-3-seed-2"]: 2,
    }
    assert [row["mean"] for row in found["tables"]["plain"]] == pytest.approx(rows["mean"].tolist(), rel=1e-5)
    assert table.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

    place = f"refs/exps/*/*/{named['updates-3-seed-2']}"
    made = folder.git("for-each-ref", "--format=%(tree)", place)
    folder.dvc("exp", "run", "--temp", "--force", "--name", "plain", *(f"-S{one}" for one in SEED_2))
    assert folder.git("for-each-ref", "--format=%(tree)", "refs/exps/*/*/plain") == made
