"""Signals: one line, no partly written file, and the next run resumes; a few of the kills in test_kills.py."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import REPOSITORY
from repositories import bytes_of
from trained import Trained, ready_to_train

UPDATES = 25


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, warm_environment: dict[str, str]) -> Trained:
    """A repository ready to finetune the agent `plain`.

    The killed training and the undisturbed one are separate processes (`stage`, and `sys.executable`); commands before
    and after them are forked from a process that has imported its libraries (`pipeline`).
    """
    return ready_to_train(tmp_path_factory.mktemp("signals") / "ready", warm_environment, UPDATES)


@pytest.fixture(scope="module")
def undisturbed(ready: Trained) -> dict[str, bytes]:
    """All results of an undisturbed training."""
    root = ready.root.with_name("undisturbed")
    shutil.copytree(ready.root, root)
    folder = Trained(root, ready._environment)
    said = folder.run(sys.executable, "-m", "pipeline", "finetune", "plain")
    assert "resumed" not in said
    assert folder.checkpoints() == []
    return bytes_of(root)


@pytest.mark.parametrize(
    ("sent", "code", "line"),
    [
        (signal.SIGKILL, -9, None),
        (signal.SIGTERM, 143, "terminated; run again to resume"),
        (signal.SIGINT, 130, "interrupted; run again to resume"),
    ],
)
def test_a_killed_training_goes_on_to_the_same_bytes(
    ready: Trained,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    sent: signal.Signals,
    code: int,
    line: str | None,
) -> None:
    shutil.copytree(ready.root, tmp_path / "copy")
    folder = Trained(tmp_path / "copy", ready._environment)
    process = folder.stage("finetune", "plain")
    while not folder.checkpoints():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(sent)
    said = process.communicate()[0].splitlines()
    assert process.returncode == code, said
    assert not [row for row in said if "Traceback" in row]
    if line:
        assert said[-1] == line
        assert list(folder.root.rglob("*.part")) == []
    assert not (folder.root / "models" / "plain" / "policy").exists()

    again = folder.pipeline("finetune", "plain")
    (resumed,) = [row for row in again.splitlines() if "resumed" in row]
    done = int(resumed.removeprefix("finetune plain: resumed at update ").removesuffix(f" of {UPDATES}"))
    assert 0 <= done < UPDATES
    assert bytes_of(folder.root) == undisturbed
    assert folder.checkpoints() == []


@pytest.mark.slow
def test_a_checkpoint_of_other_parameters_is_said_and_not_used(
    ready: Trained, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    shutil.copytree(ready.root, tmp_path / "copy")
    folder = Trained(tmp_path / "copy", ready._environment)
    folder.edit(agents__plain__finetune__updates=UPDATES + 1)
    process = folder.stage("finetune", "plain")
    while not folder.checkpoints():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    folder.edit(agents__plain__finetune__updates=UPDATES)
    said = folder.run(sys.executable, "-m", "pipeline", "finetune", "plain").splitlines()
    assert said[0].endswith(": made with other parameters, inputs or code; starting from the beginning")
    assert bytes_of(folder.root) == undisturbed


def test_models_made_for_other_parameters_are_refused_where_a_stage_is_run_by_hand(
    ready: Trained, tmp_path: Path
) -> None:
    shutil.copytree(ready.root, tmp_path / "copy")
    folder = Trained(tmp_path / "copy", ready._environment)
    folder.edit(agents__plain__network={"name": "mlp", "hidden": 5, "clock": False})
    command = ["python", "-m", "pipeline", "finetune", "plain"]
    done = subprocess.run(
        command, check=False, cwd=folder.root, env=folder._environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line == (
        "error: models/plain/pretrained: network {'name': 'mlp', 'hidden': 4, 'clock': False}; params.yaml: "
        "agents.plain.network has {'name': 'mlp', 'hidden': 5, 'clock': False}: run 'dvc repro' first"
    )


LOSES_IT = """
import ctypes, os, signal, time
from pipeline.cli import ending

def lose():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)

def app(**settings):
    ctypes.CFUNCTYPE(None)(lose)()  # what is raised in there is printed and forgotten
    time.sleep(60)

ending.RETRY_S = 1.0
ending.main(app)
"""


CLEARS_AWAY = """
import os, signal, time
from contextlib import ExitStack, contextmanager, suppress
from pipeline.cli import ending

def clear():
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        with suppress(OSError):
            time.sleep(0.02)
        try:
            raise ValueError
        except ValueError:
            time.sleep(0.02)
    print("cleared away")

@contextmanager
def folder():
    with ExitStack() as running:
        running.callback(clear)
        yield

def app(**settings):
    with folder(), ExitStack() as both:
        both.enter_context(folder())
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

ending.RETRY_S = 0.05
ending.main(app)
"""


@pytest.mark.slow
def test_200_trainings_that_are_killed_and_resumed_half_of_them_beside_others_make_the_same_bytes(
    ready: Trained, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    shutil.copytree(ready.root, tmp_path / "copy")
    folder = Trained(tmp_path / "copy", ready._environment)
    script = REPOSITORY / "tests" / "support" / "many_trainings.py"
    here = f"{tmp_path / 'copy'}:{ready._environment['PYTHONPATH']}"
    told = folder.run(sys.executable, str(script), "200", "20261123", "plain", PYTHONPATH=here)
    found = json.loads(told.splitlines()[-1])
    assert found["found"] == {"same": 200}
    assert found["killed"] > 100  # the other runs ended before the signal
    assert bytes_of(folder.root) == undisturbed


@pytest.mark.slow
def test_300_trainings_begun_beside_others_take_the_same_first_step(ready: Trained, tmp_path: Path) -> None:
    shutil.copytree(ready.root, tmp_path / "copy")
    folder = Trained(tmp_path / "copy", ready._environment)
    script = REPOSITORY / "tests" / "support" / "first_steps.py"
    here = f"{tmp_path / 'copy'}:{ready._environment['PYTHONPATH']}"
    # Without a prior call of MKL's functions, 13 of 570 runs took a different first step: 300 starts would miss
    # that once in a thousand times.
    told = folder.run(sys.executable, str(script), "300", "plain", PYTHONPATH=here)
    assert list(json.loads(told.splitlines()[-1]).values()) == [300]


def test_whoever_clears_away_because_of_a_signal_is_not_stopped_by_the_one_that_comes_again() -> None:
    """Slurm on loopback does this: its servers take a while to end on a busy machine."""
    done = subprocess.run([sys.executable, "-c", CLEARS_AWAY], check=False, capture_output=True, text=True)
    assert done.stdout == "cleared away\ncleared away\n"
    assert (done.returncode, done.stderr) == (143, "terminated; run again to resume\n")


def test_clearing_away_that_never_ends_is_stopped_at_last() -> None:
    endless = CLEARS_AWAY.replace("+ 1.0", "+ 1000").replace(
        "ending.RETRY_S = 0.05", "ending.RETRY_S, ending.CLEANUP_S = 0.05, 1"
    )
    assert endless.count("1000") == endless.count("CLEANUP_S") == 1
    done = subprocess.run([sys.executable, "-c", endless], check=False, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (143, "")
    assert done.stderr == "terminated; run again to resume\n"


def test_a_signal_that_compiled_code_loses_comes_again() -> None:
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", LOSES_IT], check=False, capture_output=True, text=True)
    assert done.returncode == 143
    assert done.stderr.splitlines()[-1] == "terminated; run again to resume"
    assert time.monotonic() - begun < 30
