"""A repository in which a training run of seconds is started, killed and restarted."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from repositories import Folder, begin


class Trained(Folder):
    """A repository in which tests run single stages."""

    def stage(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start a stage."""
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline", *words],
            cwd=self.root,
            env={**self._environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def checkpoints(self) -> list[Path]:
        return list((self.root / ".dvc" / "tmp" / "checkpoints").rglob("*.safetensors"))


def ready_to_train(root: Path, environment: Mapping[str, str], updates: int) -> Trained:
    """A repository ready to finetune the agent `plain`, which writes a checkpoint after each update."""
    more = {**environment, "PIPELINE_CHECKPOINT_S": "0"}
    folder = begin(root, more)
    folder.edit(threads=2, agents__plain__finetune__updates=updates, agents__plain__finetune__validate_every=7)
    for words in (("log",), ("generate", "online"), ("pretrain", "plain")):
        folder.pipeline(*words)
    return Trained(root, more)
