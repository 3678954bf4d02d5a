"""Checkpoints of training runs: the learner's state and the updates reported so far, written every few seconds."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from torch import nn

from pipeline.core import storage
from pipeline.core.config import FinetuneConfig, Params, PretrainConfig
from pipeline.core.storage import models
from pipeline.errors import UserError
from pipeline.learning.memory import Memory
from pipeline.learning.update import Update
from pipeline.progress import say

Part = PretrainConfig | FinetuneConfig

EVERY_S = 10.0  # work lost by a kill; PIPELINE_CHECKPOINT_S overrides it


class TrainingRun:
    """One training run, resumed from its last checkpoint, if any; the time of saving does not affect results."""

    def __init__(self, title: str, place: Path | None, total: int) -> None:
        self.place = place
        # Held until the run ends, even if DVC is killed: otherwise two runs could write one checkpoint.
        self._held = None
        with suppress(OSError):  # an unwritable folder: no checkpoints either
            if place is not None:
                self._held = storage.hold(place.parents[2] / "running" / place.parent.name, title, patient=True)
        self._title, self._every = title, _seconds()
        self.curve: list[Update] = []
        self.memory = self._resumed(total)

    def _resumed(self, total: int) -> Memory:
        try:
            saved = None if self.place is None else models.read_checkpoint(self.place)
        except UserError as error:
            say(f"{error}; starting from the beginning")
            saved = None
        if saved is None:
            return Memory()
        self.curve = [Update(step, dict(metrics)) for step, metrics in saved.notes]
        done = self.curve[-1].step
        say(f"{self._title}: resumed at update {done} of {total}")
        return Memory(saved.tensors, done)

    def checkpointed(self, updates: Iterable[Update], network: nn.Module) -> Iterator[Update]:
        """Yield updates, and write a checkpoint after one whenever it is due."""
        self.memory.keep(network=network)
        saved = time.monotonic()
        for update in updates:
            self.curve.append(update)
            yield update
            if self.place is not None and time.monotonic() - saved >= self._every:
                self._save(self.place)
                saved = time.monotonic()

    def _save(self, place: Path) -> None:
        notes = [(update.step, list(update.metrics.items())) for update in self.curve]
        try:
            models.write_checkpoint(place, models.Checkpoint(self.memory.state(), notes))
        except UserError as error:  # the result does not need checkpoints
            say(f"{error}; {self._title} continues without checkpoints")
            self.place = None

    def finish(self) -> None:
        """Drop the checkpoints, once all results are written."""
        if self.place is not None:
            models.drop_checkpoints(self.place)
        if self._held is not None:
            self._held.close()


def training_run(params: Params, stage: str, agent: str, part: Part, inputs: Iterable[Path]) -> TrainingRun:
    """Return the training run of an agent, resumed from its checkpoint."""
    key = models.checkpoint_key(_rows(params, agent, part), inputs)
    return TrainingRun(f"{stage} {agent}", models.checkpoint_file(f"{stage}@{agent}", key), part.budget)


def _seconds() -> float:
    said = os.environ.get("PIPELINE_CHECKPOINT_S", str(EVERY_S))
    try:
        every = float(said)
    except ValueError:
        every = -1.0
    if not every >= 0:
        raise UserError(f"PIPELINE_CHECKPOINT_S: expected seconds, got '{said}'")
    return every


def _rows(params: Params, agent: str, part: Part) -> Mapping[str, object]:
    whole, row = params.model_dump(mode="json"), params.agent(agent)
    own = {"agent": agent, "objective": row.objective, "network": row.network.model_dump(mode="json")}
    shared = {name: whole[name] for name in ("seed", "threads", "device", "workload", "demands")}
    scenario, recipe = whole["scenarios"][row.scenario], whole["recipes"][row.finetune.recipe]
    return {**own, **shared, "scenario": scenario, "recipe": recipe, "part": part.model_dump(mode="json")}
