"""A training_run: what was told before a kill is told no more, and a checkpoint that does not fit costs nothing."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from forks import forked
from torch import nn

from pipeline.core.config import Params
from pipeline.core.storage import files
from pipeline.core.storage.models import read_checkpoint
from pipeline.errors import UserError
from pipeline.learning.resuming import TrainingRun, training_run
from pipeline.learning.update import Update
from pipeline.problems.pool.agents.networks.network import Network


class Counter(Network):
    """A network of one weight: how many updates it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.zeros(1))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the checkpoint goes, behind every update."""
    monkeypatch.setenv("PIPELINE_CHECKPOINT_S", "0")
    return tmp_path / "checkpoints" / "finetune@plain" / "key.safetensors"


def counting(network: Counter, training: TrainingRun, updates: int) -> Iterator[Update]:
    """An algorithm that counts."""
    for step in range(training.memory.done + 1, updates + 1):
        with torch.no_grad():
            network.seen.add_(1)
        yield Update(step, {"b": 0.1 * step, "a": float(step)})


def run(
    place: Path | None, updates: int = 5, killed_after: int | None = None
) -> tuple[TrainingRun, Counter, list[int]]:
    """Learn; return the training_run, the network and the updates that were told."""
    training, network, told = TrainingRun("finetune plain", place, updates), Counter(), []
    for update in training.checkpointed(counting(network, training, updates), network):
        if update.step == killed_after:
            break
        told.append(update.step)
    return training, network, told


@pytest.mark.parametrize("kill", [2, 3, 4, 5])
def test_a_killed_training_goes_on_behind_its_last_checkpoint(
    place: Path, kill: int, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, _, _ = run(None)
    run(place, killed_after=kill)  # while it learns update `kill` or tells of it
    capsys.readouterr()
    training, network, told = run(place)
    assert told == list(range(kill, 6))
    assert int(network.seen) == 5
    assert training.curve == whole.curve
    assert [list(update.metrics) for update in training.curve] == [["b", "a"]] * 5  # in their own order
    assert capsys.readouterr().err == f"finetune plain: resumed at update {kill - 1} of 5\n"
    training.finish()
    assert not place.exists()


def test_a_training_that_is_not_killed_says_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(place)[0].finish()
    assert capsys.readouterr() == ("", "")


def test_a_checkpoint_is_written_only_when_it_is_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIPELINE_CHECKPOINT_S")
    run(place)
    assert read_checkpoint(place) is None


@pytest.mark.parametrize("content", [b"", b"junk"])
def test_junk_costs_a_line_and_the_beginning(place: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    _, network, told = run(place)
    assert told == [1, 2, 3, 4, 5]
    assert int(network.seen) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"checkpoint {place}: not a checkpoint (")
    assert line.endswith("; starting from the beginning")


def test_a_checkpoint_of_other_parameters_costs_a_line_and_the_beginning(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(place, killed_after=3)
    other = place.with_name("other.safetensors")
    training, _, told = run(other)
    assert told == [1, 2, 3, 4, 5]
    said = f"checkpoint {place}: made with other parameters, inputs or code; starting from the beginning\n"
    assert capsys.readouterr().err == said
    training.finish()
    assert not place.exists()


def test_where_no_checkpoint_can_be_written_the_training_goes_on(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.parents[1].write_text("a file where a folder should be")
    training, _, told = run(place)
    training.finish()
    assert told == [1, 2, 3, 4, 5]
    said = f"{place}: cannot be written (Not a directory); finetune plain continues without checkpoints"
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_wrong_time_between_checkpoints_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PIPELINE_CHECKPOINT_S", value)
    with pytest.raises(UserError, match=f"^PIPELINE_CHECKPOINT_S: expected seconds, got '{value}'$"):
        TrainingRun("finetune plain", place, 5)


def test_every_number_that_a_training_reads_makes_another_checkpoint(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()

    def key(changed: Params, agent: str = "deeprm2", stage: str = "finetune") -> Path | None:
        return training_run(changed, stage, agent, getattr(changed.agent(agent), stage), ()).place

    raw = params.model_dump(mode="json")

    def edited(*way: str, value: object) -> Params:
        own = params.model_dump(mode="json")
        at = own
        for name in way[:-1]:
            at = at[name]
        assert at[way[-1]] != value
        at[way[-1]] = value
        return Params.model_validate(own)

    first = key(Params.model_validate(raw))
    assert key(params) == first
    others = [
        edited("seed", value=9),
        edited("threads", value=7),
        edited("workload", "short_share", value=0.7),
        edited("demands", "code", "other", value=[0.1, 0.3]),
        edited("scenarios", "online", "slots", value=9),
        edited("recipes", "deeprm2", "gamma", value=0.9),
        edited("agents", "deeprm2", "objective", value="makespan"),
        edited("agents", "deeprm2", "network", "hidden", value=70),
        edited("agents", "deeprm2", "finetune", "updates", value=61),
        edited("agents", "deeprm2", "finetune", "seed", value=2),
    ]
    found = [key(other) for other in others]
    assert len({first, *found}) == 1 + len(others)
    assert key(edited("evaluation", "confidence", value=0.9)) == first
    assert key(edited("agents", "deeprm", "finetune", "updates", value=7)) == first


def test_a_training_that_another_process_still_does_is_not_begun_a_second_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ENDING_S", 0.3)
    begun = place.parents[2] / "begun"

    def begin() -> None:
        held = TrainingRun("finetune plain", place, 5)
        begun.touch()
        time.sleep(60)
        held.finish()

    other = forked(begin)
    while not begun.exists():
        assert other.is_alive()
        time.sleep(0.01)
    with pytest.raises(UserError, match=rf"finetune plain: another one is at work here \(process {other.pid}\)"):
        run(place)
    other.kill()
    other.join()
    _, _, told = run(place)
    assert told == [1, 2, 3, 4, 5]
