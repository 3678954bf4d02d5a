"""Whether the results in this working copy are the published ones, which the documents describe.

After `make repro` on another type of processor, or with other parameters, the results are the user's own.
"""

import subprocess
from functools import cache
from pathlib import Path

from builders import REPOSITORY
from ruamel.yaml import YAML

from pipeline.tracking.digests import measured

OWN = "the results here are not the published ones: other parameters, or another type of processor"


def outputs(lock: str) -> dict[str, str]:
    """Return the md5 of each output of a dvc.lock.

    >>> outputs("stages: {log: {cmd: x}, tune: {outs: [{path: a, md5: b}]}}")
    {'a': 'b'}
    """
    stages = YAML(typ="safe").load(lock)["stages"].values()
    return {out["path"]: out["md5"] for stage in stages for out in stage.get("outs", [])}


@cache
def has_own_results(root: Path = REPOSITORY) -> bool:
    """Return whether outputs of dvc.lock differ from those of the last commit."""
    command = ["git", "show", "HEAD:dvc.lock"]
    committed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return outputs(committed) != outputs((root / "dvc.lock").read_text())


def is_published(place: str, md5: str) -> bool:
    """Return whether a model or table of the working copy has its published md5."""
    return measured(REPOSITORY / place) == md5
