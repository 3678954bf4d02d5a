"""`farm`: several short DVC stages at once; and, in slow tests, the small problem, killed at random moments."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from builders import REPOSITORY
from repositories import NOTHING, STAGES, Folder, begin, bytes_of, tracked

# `first` ends after `second`, although `dvc repro` runs it before: dvc.lock must list them in that order.
TOY = """stages:
  first: {cmd: sh do.sh first, deps: [seed], outs: [first.txt], plots: [{first.csv: {cache: false}}]}
  second: {cmd: sh do.sh second, deps: [seed], outs: [second.txt], plots: [{second.csv: {cache: false}}]}
  third: {cmd: sh do.sh third, deps: [first.txt, second.txt], outs: [third.txt], plots: [{third.csv: {cache: false}}]}
"""
DO = """echo "$1: 1 of 1, cost 2.5"
echo $$ >> pids
echo "$OMP_WAIT_POLICY $GOMP_SPINCOUNT" >> waits.txt
if [ "$1" = "$SLOW" ]; then sleep "$SLEEP"; fi
if [ "$1" = "$BROKEN" ]; then echo "error: no ink" >&2; exit 2; fi
case $1 in third) cat first.txt second.txt > third.txt;; *) (cat seed; echo "$1") > "$1.txt";; esac
echo "cost,$1" > "$1.csv"
"""
FARM = (sys.executable, "-m", "pipeline", "farm")
WARM_FARM = ("python", "-m", "pipeline", "farm")  # the farm and its stages are forked (tests/support/warm.py)
REFUSED = "error: farm: another one is at work here (process {}); wait for it, or end it"


class Field(Folder):
    """A repository in which a test starts and watches a farm."""

    def farm(self, *words: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*FARM, *words],
            cwd=self.root,
            env={**self._environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def results(self) -> dict[str, bytes]:
        names = [f"{stage}.{kind}" for stage in ("first", "second", "third") for kind in ("txt", "csv")]
        return {name: (self.root / name).read_bytes() for name in ("dvc.lock", *names)}


def toy_at(root: Path, environment: dict[str, str]) -> Field:
    """Three stages that take a moment, of which none has run."""
    (root / ".dvc").mkdir(parents=True)
    (root / ".dvc" / "config").write_bytes((REPOSITORY / ".dvc" / "config").read_bytes())
    (root / "params.yaml").write_bytes((REPOSITORY / "params.yaml").read_bytes())
    for name, text in (("dvc.yaml", TOY), ("do.sh", DO), ("seed", "1\n"), (".gitignore", "*.txt\npids\n.dvc/tmp\n")):
        (root / name).write_text(text)
    folder = Field(root, {**environment, "PYTHONPATH": f"{REPOSITORY}:{environment['PYTHONPATH']}"})
    folder.git("init", "--quiet", "--initial-branch", "main")
    return folder


@pytest.fixture
def toy(tmp_path: Path, environment: dict[str, str]) -> Field:
    return toy_at(tmp_path / "toy", environment)


@pytest.fixture
def warm_toy(tmp_path: Path, warm_environment: dict[str, str]) -> Field:
    return toy_at(tmp_path / "toy", warm_environment)


def gone(pids: set[int]) -> bool:
    """Do all of these processes end within some seconds?"""
    until = time.monotonic() + 20
    while alive := {pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"}:
        if time.monotonic() > until:
            return not alive
        time.sleep(0.05)
    return True


def family(pid: int) -> set[int]:
    """A process and all of its descendants."""
    with suppress(psutil.NoSuchProcess):
        return {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}
    return set()


def test_stages_side_by_side_leave_the_bytes_and_the_lock_of_one_behind_the_other(warm_toy: Field) -> None:
    said = warm_toy.run(*WARM_FARM, "--json", SLOW="first", SLEEP="3").splitlines()
    assert json.loads(said.pop()) == {"stages": {"first": "ran", "second": "ran", "third": "ran"}}
    ends = [line.split()[1] for line in said if " ran, " in line and line.startswith("farm: ")]
    assert ends == ["second", "first", "third"], said
    assert "first | first: 1 of 1, cost 2.5" in said
    assert said[0] == "farm: 3 of 3 stages are stale or depend on stale ones, 2 at a time"
    assert any(line.startswith("farm: 3 ran; ") for line in said)
    assert not [line for line in said if "Running stage" in line or "dvc.lock" in line]
    found = warm_toy.results()

    for name in found:
        (warm_toy.root / name).unlink()
    warm_toy.dvc("repro", "--force")
    assert warm_toy.results() == found
    assert warm_toy.run(*WARM_FARM).splitlines() == ["farm: no stage is stale"]
    assert json.loads(warm_toy.run(*WARM_FARM, "--json")) == {"stages": {}}


@pytest.mark.parametrize(
    ("words", "own", "met"), [((), {}, "0"), (("--workers", "1"), {}, "10000"), ((), {"GOMP_SPINCOUNT": "7"}, "7")]
)
def test_threads_that_wait_do_not_spin_beside_others(
    words: tuple[str, ...], own: dict[str, str], met: str, warm_toy: Field
) -> None:
    """A spinning thread takes the core that another stage needs."""
    warm_toy.run(*WARM_FARM, *words, **own)
    assert set((warm_toy.root / "waits.txt").read_text().splitlines()) == {f"passive {met}"}


@pytest.mark.parametrize("left", ["", '{"read": {}, "wri'])
def test_what_a_kill_has_cut_of_dvcs_own_notes_stops_no_later_farm(left: str, warm_toy: Field) -> None:
    users = warm_toy.root / ".dvc" / "tmp" / "rwlock"
    users.parent.mkdir(parents=True)
    users.write_text(left)
    said = warm_toy.run(*WARM_FARM).splitlines()
    assert said[0] == "farm: .dvc/tmp/rwlock was cut by a kill; removed"
    assert (warm_toy.root / "third.txt").exists()
    assert warm_toy.run(*WARM_FARM).splitlines() == ["farm: no stage is stale"]


@pytest.mark.slow
def test_behind_a_failure_the_others_go_on_and_the_next_farm_makes_the_rest(toy: Field) -> None:
    farm = toy.farm(BROKEN="first", SLOW="second", SLEEP="3")
    said = farm.communicate()[0].splitlines()
    assert farm.returncode == 2, said
    assert next(line for line in said if line.startswith("farm: first failed after ")).endswith(" s: no ink")
    assert said[-1] == (
        "error: farm: first failed; 1 wait for it: third; the others are kept: put it right and run again"
    )
    assert (toy.root / "second.txt").exists()
    assert not (toy.root / "third.txt").exists()

    lock = toy.root / "dvc.lock"
    lock.write_bytes(lock.read_bytes()[:-30])  # as a kill may leave it, because DVC writes it in place
    again = toy.run(*FARM).splitlines()
    assert again[0] == "farm: dvc.lock was cut by a kill; restored its state when a stage last ended"
    assert [line for line in again if line.startswith("farm: 2 ran; ")]
    assert not [line for line in again if line.startswith("second |")]
    assert toy.dvc("status").strip() == NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_killed_farm_leaves_nobody_and_another_goes_on(toy: Field, sent: signal.Signals) -> None:
    farm = toy.farm(SLOW="first", SLEEP="60")
    lock, begun = toy.root / "dvc.lock", toy.root / "pids"
    while not (lock.exists() and "second.csv" in lock.read_text() and len(begun.read_text().split()) == 2):
        assert farm.poll() is None
        time.sleep(0.05)
    other = toy.farm()
    assert other.communicate()[0].splitlines() == [REFUSED.format(farm.pid)]
    assert other.returncode == 2
    all_of_it = family(farm.pid)
    assert len(all_of_it) >= 4  # farm, sh, DVC, stage
    farm.send_signal(sent)
    said = farm.communicate()[0].splitlines()
    assert farm.returncode == (-9 if sent == signal.SIGKILL else 143)
    assert sent == signal.SIGKILL or said[-1] == "terminated; run again to resume"

    again = toy.run(*FARM).splitlines()
    assert gone(all_of_it)
    assert [line for line in again if line.startswith("farm: 2 ran; ")], again
    found = toy.results()
    for name in found:
        (toy.root / name).unlink()
    toy.dvc("repro", "--force")
    assert toy.results() == found


# The small problem


@pytest.mark.slow
def test_the_small_problem_from_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    alone, farmed = (begin(tmp_path / name, {**environment, "PIPELINE_TRACKING": ""}) for name in ("alone", "farmed"))
    begun_s = time.monotonic()
    alone.dvc("repro")
    alone_s = time.monotonic() - begun_s
    said = farmed.run(*FARM, "--workers", "2")
    sys.stdout.write(f"dvc repro {alone_s:.0f} s, farm {time.monotonic() - begun_s - alone_s:.0f} s\n{said}")
    assert f"farm: {len(STAGES)} ran; " in said
    assert bytes_of(farmed.root) == bytes_of(alone.root)
    assert (farmed.root / "dvc.lock").read_bytes() == (alone.root / "dvc.lock").read_bytes()
    assert farmed.dvc("status").strip() == NOTHING
    ((pipeline, stages),) = tracked(alone.root).items()
    assert {name: sorted(found) for name, found in tracked(farmed.root).items()} == {pipeline: sorted(stages)}


KILLS = 9
WHOM = ("farm", "worker", "stage")


@pytest.mark.slow
def test_whoever_is_killed_the_next_farm_goes_on_to_the_same_bytes(
    tmp_path: Path, environment: dict[str, str], reproduced: tuple[Folder, str]
) -> None:
    folder = begin(tmp_path / "hit", {**environment, "PIPELINE_CHECKPOINT_S": "0.1"})
    field, rng, fates = Field(folder.root, folder._environment), random.Random(20260102), list[str]()
    for number in range(10 * KILLS):
        farm = field.farm("--workers", "3")
        if len(fates) < KILLS:
            struck = strike(farm, WHOM[number % len(WHOM)], rng)
            fates += [struck] if struck else []
            sys.stdout.write(f"{struck or 'nobody'}\n")
        said = farm.communicate()[0]
        if farm.returncode == 0:
            break
        assert farm.returncode in (2, -9), said
    assert field.dvc("status").strip() == NOTHING
    assert bytes_of(field.root) == bytes_of(reproduced[0].root)
    assert (field.root / "dvc.lock").read_bytes() == (reproduced[0].root / "dvc.lock").read_bytes()
    assert len(fates) >= KILLS // 2


def strike(farm: subprocess.Popen[str], whom: str, rng: random.Random) -> str:
    """Kill the farm, DVC or a stage at some moment while stages run; return what was killed, or "" if none ran."""
    while farm.poll() is None and not at_work(farm.pid)["stage"]:
        time.sleep(0.05)
    after_s = rng.uniform(0, 4)
    time.sleep(after_s)
    pids, chosen = family(farm.pid), at_work(farm.pid)[whom]
    if not chosen or farm.poll() is not None:
        return ""
    pid = rng.choice(chosen)
    what = f"{whom} after {after_s:.1f} s: {named(pid)[-50:]}"
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).kill()
    if whom == "farm":
        farm.wait()
        assert gone(pids)
    return what


def at_work(farm: int) -> Mapping[str, list[int]]:
    """The processes of a farm, by kind."""
    words = {pid: said for pid in family(farm) - {farm} if "sh -c" not in (said := named(pid))}
    return {
        "farm": [farm],
        "worker": [pid for pid, said in words.items() if "--single-item" in said],
        "stage": [pid for pid, said in words.items() if "-m pipeline" in said],
    }


def named(pid: int) -> str:
    """The words with which a process was started."""
    with suppress(psutil.Error):
        return " ".join(psutil.Process(pid).cmdline())
    return ""
