"""Identity: which pipeline run a stage belongs to, and the tags and params that say so.

Stages are processes of their own, and DVC hands them no id of the `dvc repro` they are part of. So the id is computed
from what makes a run what it is: experiment name, commit, uncommitted code and params. All stages of one `dvc repro`
agree on it, a resumed one joins the same parent, an edit begins a new one. dvc.lock is left out: a repro rewrites it.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipeline.config import PARAMS_FILE, Params

CODE = ("pipeline", "params.yaml", "dvc.yaml")
AGENT_STAGES = ("pretrain", "finetune", "evaluate")
OWN_SECTION = {"heuristics": "heuristics", "compare": "evaluation", "papers": "evaluation"}  # of params.yaml, by stage
NO_GIT = "nogit"
LONGEST_PARAM = 6000


class Identity(NamedTuple):
    """One pipeline run."""

    pipeline: str
    experiment: str  # DVC's name of it; "" in a plain `dvc repro`
    commit: str
    dirty: str  # true, false, or unknown without git

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags that parent and children share."""
        shared = {
            "pipeline.id": self.pipeline,
            "pipeline.kind": "experiment" if self.experiment else "repro",
            "dvc.exp.name": self.experiment,
            "git.commit": self.commit,
            "git.dirty": self.dirty,
        }
        return _said(shared)


def identify() -> Identity:
    """Return the pipeline run of this process, from its working directory and DVC's environment."""
    experiment = os.environ.get("DVC_EXP_NAME", "")
    head = _git("rev-parse", os.environ.get("DVC_EXP_BASELINE_REV") or "HEAD")
    commit = NO_GIT if head is None else head.decode().strip()
    changed = b"" if head is None else _git("diff", "--no-ext-diff", "--binary", commit, "--", *CODE) or b""
    status = None if head is None else _git("status", "--porcelain", "--", *CODE)
    values = PARAMS_FILE.read_bytes() if PARAMS_FILE.exists() else b""
    key = hashlib.md5(commit.encode() + changed + values, usedforsecurity=False).hexdigest()[:10]
    dirty = "unknown" if status is None else str(bool(status)).lower()
    return Identity(f"{experiment or 'repro'}-{key}", experiment, commit, dirty)


def stage_tags(identity: Identity, name: str, subject: str) -> dict[str, str]:
    """Return the tags of a stage's run."""
    own = {"stage": name, "subject": subject, "dvc.stage": os.environ.get("DVC_STAGE", "")}
    return {**identity.tags, **_said(own)}


def shared_params(params: Params) -> dict[str, str]:
    """Return what every stage depends on: seed, threads and workload, flat."""
    return _flat({key: value for key, value in _plain(params).items() if key in ("seed", "threads", "workload")})


def stage_params(params: Params, name: str, subject: str) -> dict[str, str]:
    """Return the rows of params.yaml that a stage is about, flat, and those that all stages share."""
    rows = _plain(params)
    chosen: dict[str, object] = {OWN_SECTION[name]: rows[OWN_SECTION[name]]} if name in OWN_SECTION else {}
    if name in AGENT_STAGES:
        recipe = params.agent(subject).finetune.recipe
        chosen["agents"] = {subject: rows["agents"][subject]}
        chosen["recipes"] = {recipe: rows["recipes"][recipe]}
    elif subject:
        chosen["scenarios"] = {subject: rows["scenarios"][subject]}
    return {**shared_params(params), **_flat(chosen)}


def _plain(params: Params) -> dict[str, dict[str, object]]:
    return params.model_dump(mode="json")


def _flat(rows: Mapping[str, object]) -> dict[str, str]:
    return dict(leaf for key, value in rows.items() for leaf in _leaves(key, value))


def _leaves(place: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{place}.{key}", item)
    else:
        yield place, (value if isinstance(value, str) else json.dumps(value))[:LONGEST_PARAM]


def _said(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if value}


def _git(*words: str) -> bytes | None:
    """Return what git prints, or nothing where there is no git, no repository or no such commit."""
    command = ["git", "--no-optional-locks", *words]
    try:
        return subprocess.run(command, capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
