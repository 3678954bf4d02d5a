"""A training run on an engine leaves the bytes that it leaves here, also when killed; refusals are one line."""

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from executed import NO_TOKEN, ray_cluster, wait_until
from repositories import Folder, begin, bytes_of
from trained import Trained, ready_to_train

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import slurm, why_not
from pipeline.errors import UserError
from pipeline.execution import commands, on_slurm
from pipeline.execution import relay as module
from pipeline.execution.commands import FOLDER, KILLED, VARIABLE
from pipeline.execution.relay import RELAYED, relay
from pipeline.execution.worker import code_digest

UPDATES = 300
FIND_IT = 'until [ "$1" = /bin/sh ]; do shift; done'  # among the words that srun is given
RUN_IT = f'{FIND_IT}; exec "$@"'
FINETUNE = ["-m", "pipeline", "finetune", "plain"]


@pytest.mark.parametrize("word", ["", "serial", "processes:2", "ray:2"])
def test_without_a_cluster_it_is_carried_out_here(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, word)
    assert not relay(1, "finetune", "plain")


def test_on_the_engine_it_is_carried_out_and_not_sent_on(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv(VARIABLE, "slurm:2")
    monkeypatch.setenv(RELAYED, f"{code_digest()}@{place}")
    assert not relay(1, "finetune", "plain")


def test_a_node_with_other_code_or_another_folder_refuses(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv(RELAYED, f"0123456789abcdef@{place}")
    with pytest.raises(UserError, match=r"^executor: \S+ has another version of the code .*: expected 0123456789"):
        relay(1, "finetune", "plain")
    monkeypatch.setenv(RELAYED, f"{code_digest()}@/nowhere/@else")
    with pytest.raises(UserError, match=r"^executor: \S+ is in .*; expected /nowhere/@else, in a folder that all"):
        relay(1, "finetune", "plain")


def test_without_slurm_it_is_said(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv(VARIABLE, "slurm:2")
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(UserError, match=r"^executor: squeue: No such file or directory$"):
        relay(1, "finetune", "plain")


@pytest.mark.parametrize(
    ("srun", "command", "code"),
    [
        (RUN_IT, "true", None),
        (RUN_IT, "false", 1),
        ("exit 0", "true", KILLED),  # what srun says when the node was lost and its job cancelled
    ],
)
def test_what_srun_says_is_believed_where_the_command_noted_its_end(
    monkeypatch: pytest.MonkeyPatch, place: Path, srun: str, command: str, code: int | None
) -> None:
    pretended(monkeypatch, place, srun, [command])
    if code is None:
        assert relay(1, "finetune", "plain")
    else:
        with pytest.raises(SystemExit) as ended:
            relay(1, "finetune", "plain")
        assert ended.value.code == code
    assert list((place / FOLDER).iterdir()) == []


def test_a_job_of_which_nothing_is_heard_is_cancelled_and_begins_again(
    monkeypatch: pytest.MonkeyPatch, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one whose node was lost: the first time it dies with all that it began, and srun waits."""
    once = f'{FIND_IT}; [ -e begun ] && exec "$@"; touch begun "$4.beat"'
    pretended(monkeypatch, place, f"{once}; echo $$ >pid; trap 'exit 0' TERM; sleep 60 & wait", ["true"])
    (place / "scancel").write_text("#!/bin/sh\nkill $(cat pid)\n")
    monkeypatch.setattr(on_slurm, "SILENT_S", 0.2)
    assert relay(1, "finetune", "plain")
    said = capsys.readouterr().err
    assert re.search(r"Slurm's job pipeline-\w+-finetune-plain was silent for 0 s; it is cancelled", said)
    assert "executor: finetune plain was ended from outside; it begins again where it was" in said


def test_a_queue_that_cannot_be_read_is_not_taken_for_an_empty_one(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    """Else a job of before might still run when its work begins again."""
    pretended(monkeypatch, place, RUN_IT, ["true"])
    monkeypatch.setattr(on_slurm, "ENDED_S", 0.2)
    (place / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: Socket timed out' >&2\nexit 1\n")
    with pytest.raises(
        UserError, match=r"^executor: an earlier job of Slurm, \S+, does not end: slurm_load_jobs error: So"
    ):
        relay(1, "finetune", "plain")


def pretended(monkeypatch: pytest.MonkeyPatch, place: Path, srun: str, command: list[str]) -> None:
    """Have a Slurm cluster whose srun does what a script says."""
    for name, script in {"srun": srun, "squeue": ":", "scancel": ":"}.items():
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    monkeypatch.setenv(VARIABLE, "slurm:2")
    monkeypatch.setattr(on_slurm, "WROTE_S", 0.1)
    monkeypatch.setattr(commands, "TICK_S", 0.1)
    monkeypatch.setattr(module, "COMMAND", command)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Trained:
    """A repository ready to finetune the agent `plain`."""
    return ready_to_train(tmp_path_factory.mktemp("relay") / "ready", environment, UPDATES)


@pytest.fixture(scope="module")
def here(ready: Trained) -> dict[str, bytes]:
    """What a training run leaves here."""
    folder = copy_of(ready, ready.root.with_name("here"))
    folder.run(sys.executable, *FINETUNE)
    return bytes_of(folder.root)


def copy_of(folder: Trained, root: Path) -> Trained:
    shutil.copytree(folder.root, root)
    return Trained(root, folder._environment)


@pytest.fixture(scope="module", params=["slurm", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A cluster of an engine, as a stage is told of it."""
    if request.param == "ray":
        place = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        with place as name, ray_cluster(Path(name), **NO_TOKEN) as address:
            yield {VARIABLE: f"ray@{address}", **NO_TOKEN}
        return
    if reason := why_not():
        pytest.skip(reason)
    with slurm(Cluster(nodes=2)) as running:
        yield {VARIABLE: "slurm:2@work", "SLURM_CONF": str(running.folder / "slurm.conf")}
        ended = running.jobcomp.read_text()
        assert {"generate-online", "pretrain-cloned", "finetune-plain"} <= set(
            re.findall(r"Name=pipeline-\w+-(\S+)", ended)
        )


def there() -> list[psutil.Process]:
    """The processes that carry out the training on an engine."""
    found = []
    for one in psutil.process_iter(["cmdline", "environ"]):
        if (one.info["cmdline"] or [])[1:] == FINETUNE and RELAYED in (one.info["environ"] or {}):
            found.append(one)
    return found


def at_work(folder: Trained) -> None:
    """Wait until the run has noted where it is."""
    wait_until(lambda: bool(folder.checkpoints()) and bool(there()))


@pytest.mark.slow
def test_it_leaves_the_bytes_that_it_leaves_here(
    ready: Trained, here: dict[str, bytes], engine: dict[str, str], tmp_path: Path
) -> None:
    folder = copy_of(ready, tmp_path / "copy")
    said = folder.run(sys.executable, *FINETUNE, **engine)
    assert f"finetune plain: {UPDATES} of {UPDATES}, done" in said
    assert bytes_of(folder.root) == here


@pytest.mark.slow
def test_killed_there_it_begins_again_where_it_was(
    ready: Trained, here: dict[str, bytes], engine: dict[str, str], tmp_path: Path
) -> None:
    folder = copy_of(ready, tmp_path / "copy")
    stage = folder.stage("finetune", "plain", **engine)
    at_work(folder)
    for one in there():
        one.kill()
    said = stage.communicate()[0]
    assert stage.returncode == 0, said
    assert "executor: finetune plain was ended from outside; it begins again where it was" in said
    assert "finetune plain: resumed at update " in said
    assert bytes_of(folder.root) == here


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_ended_here_it_ends_there_and_goes_on_when_run_again(
    ready: Trained, here: dict[str, bytes], engine: dict[str, str], tmp_path: Path, sent: int, code: int
) -> None:
    """A killed stage leaves Slurm's job to itself: the next run ends it first."""
    folder = copy_of(ready, tmp_path / "copy")
    stage = folder.stage("finetune", "plain", **engine)
    at_work(folder)
    stage.send_signal(sent)
    if sent == signal.SIGTERM:
        said = stage.communicate()[0]
        assert "Traceback" not in said
        wait_until(lambda: not there(), 20)
    assert stage.wait() == code
    again = folder.run(sys.executable, *FINETUNE, **engine)
    assert "finetune plain: resumed at update " in again
    assert bytes_of(folder.root) == here


@pytest.mark.slow
def test_a_farm_on_an_engine_leaves_the_bytes_of_dvc_repro(
    reproduced: tuple[Folder, str], engine: dict[str, str], tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = begin(tmp_path / "farmed", environment)
    folder.run(sys.executable, "-m", "pipeline", "farm", "--workers", "4", **engine)
    assert bytes_of(folder.root) == bytes_of(reproduced[0].root)
