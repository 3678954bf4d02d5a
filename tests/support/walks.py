"""A walk through a workflow on this machine: bash runs every `run:` block, and a stated stand-in every action."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from builders import REPOSITORY
from repositories import FOREIGN
from ruamel.yaml import YAML

WORKFLOWS = REPOSITORY / ".github" / "workflows"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")

# `make setup` takes minutes and a network; the environment of these tests is what it would create.
STATED = {"make setup": f"ln -s {sys.prefix} .venv"}

# Stores its arguments, and answers the questions that a workflow asks.
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$GH_SAID"
for word in "$@"; do if [ -f "$word" ]; then cat "$word" >> "$GH_BODIES"; fi; done
if [ "$1 $2" = "pr list" ] && [[ "$*" == *"--head $GH_OPEN_HEAD "* ]]; then echo 7; fi
if [ "$1 $2" = "run list" ]; then echo "$GH_PASSED"; fi
"""

# Stores its arguments, and saves an image of one line.
DOCKER = """#!/usr/bin/env bash
printf 'docker %s\\n' "$*" >> "$GH_SAID"
if [ "$1" = save ]; then echo "image $2"; fi
if [ "$1" = login ]; then printf 'password %s\\n' "$(cat)" >> "$GH_SAID"; fi
"""


def workflow(name: str) -> dict[str, Any]:
    """A workflow of this repository, as a YAML 1.2 parser reads it."""
    loaded: dict[str, Any] = YAML(typ="safe").load(WORKFLOWS / f"{name}.yml")
    return loaded


def steps(name: str) -> Iterator[dict[str, Any]]:
    """The steps of all jobs of a workflow."""
    for job in workflow(name)["jobs"].values():
        yield from job["steps"]


def lint(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a linter from this environment."""
    tool, *rest = words
    return subprocess.run(
        [Path(sys.executable).parent / tool, *rest],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Step(NamedTuple):
    """Input of a stand-in: the step's `with`, and folders."""

    wanted: Mapping[str, str]
    here: Path  # the job's checkout
    shared: Path  # what outlives a job: origin, caches, artifacts


def check_out(step: Step) -> None:
    subprocess.run(["git", "clone", "--quiet", step.shared / "origin", step.here], check=True)
    subprocess.run(["git", "checkout", "--quiet", step.wanted["ref"]], cwd=step.here, check=True)


def restore_cache(step: Step) -> None:
    if (step.shared / "cache").is_dir():
        shutil.copytree(step.shared / "cache", step.here / step.wanted["path"])


def save_cache(step: Step) -> None:
    if (step.here / step.wanted["path"]).is_dir():
        shutil.copytree(step.here / step.wanted["path"], step.shared / "cache", dirs_exist_ok=True)


def upload(step: Step) -> None:
    """Copy as the action does: a single folder without its name, several paths with theirs."""
    paths = step.wanted["path"].split()
    kept = step.shared / "artifacts" / step.wanted["name"]
    for path in (step.here / path for path in paths):
        to = kept if len(paths) == 1 else kept / path.name
        if path.is_dir():
            shutil.copytree(path, to)
        elif path.exists():
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)


def download(step: Step) -> None:
    shutil.copytree(step.shared / "artifacts" / step.wanted["name"], step.wanted["path"])


STAND_INS: dict[str, Callable[[Step], None]] = {
    "actions/checkout": check_out,
    "actions/setup-python": lambda step: None,
    "actions/cache": lambda step: None,
    "actions/cache/restore": restore_cache,
    "actions/cache/save": save_cache,
    "actions/upload-artifact": upload,
    "actions/download-artifact": download,
}


class Walk:
    """A run of one workflow. Every expression in it needs a value, and every action a stand-in."""

    def __init__(self, name: str, shared: Path, environment: Mapping[str, str], values: Mapping[str, Any]) -> None:
        self.file = workflow(name)
        self.shared = shared
        self.values = dict(values)
        self.summary = shared / "summary.md"
        self.said = shared / "gh_said"
        self.bodies = shared / "gh_bodies"
        for path in (self.summary, self.said, self.bodies):
            path.touch()
        tools = shared / "bin"
        tools.mkdir()
        for tool, script in (("gh", GH), ("docker", DOCKER)):
            (tools / tool).write_text(script)
            (tools / tool).chmod(0o755)
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)},
            **environment,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIPELINE_TRACKING": "off",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GH_SAID": str(self.said),
            "GH_BODIES": str(self.bodies),
            "GH_OPEN_HEAD": str(self.values.get("open", "")),
            "GH_PASSED": str(self.values.get("passed", "1")),
        }

    def run(self) -> set[str]:
        """Run the jobs in order, and return the names of those that ran."""
        ran = set()
        for name, job in self.file["jobs"].items():
            needs = job.get("needs", [])
            if set([needs] if isinstance(needs, str) else needs) <= ran and self.true(job.get("if")):
                self.job(name, job)
                ran.add(name)
        return ran

    def job(self, name: str, job: Mapping[str, Any]) -> None:
        """Run the steps of a job in order, in a separate folder."""
        here, temporary = self.shared / name, self.shared / f"{name}_temp"
        temporary.mkdir()
        self.values["runner.temp"] = temporary
        paths, output = temporary / "path", temporary / "output"
        for path in (paths, output):
            path.touch()
        base = self._environment | self.named(self.file.get("env")) | self.named(job.get("env"))
        base |= {"RUNNER_TEMP": str(temporary), "GITHUB_PATH": str(paths), "GITHUB_OUTPUT": str(output)}
        for step in job["steps"]:
            if not self.true(step.get("if")):
                continue
            if "uses" in step:
                action = step["uses"].partition("@")[0]
                STAND_INS[action](Step(self.named(step.get("with")), here, self.shared))
                continue
            here.mkdir(exist_ok=True)
            path = ":".join([*paths.read_text().split(), base["PATH"]])
            self.bash(step["run"], here, base | self.named(step.get("env")) | {"PATH": path})
            self.keep(f"steps.{step.get('id')}", dict(line.split("=", 1) for line in output.read_text().splitlines()))
        self.keep(f"needs.{name}", self.named(job.get("outputs")))

    def keep(self, where: str, outputs: Mapping[str, str]) -> None:
        """Make outputs available to later expressions, as values and compared with true."""
        for key, value in outputs.items():
            self.values[f"{where}.outputs.{key}"] = value
            self.values[f"{where}.outputs.{key} == 'true'"] = value == "true"

    def bash(self, script: str, here: Path, environment: Mapping[str, str]) -> None:
        """Run a block unchanged, or its stand-in."""
        words = ["bash", "-euo", "pipefail", "-c", STATED.get(script.strip(), script)]
        done = subprocess.run(
            words, check=False, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.values["log"] = self.values.get("log", "") + done.stdout
        assert done.returncode == 0, f"{script}\n{done.stdout}"

    def named(self, rows: Mapping[str, Any] | None) -> dict[str, str]:
        """Rows of `env` or `with`, with expressions replaced by their values."""
        return {key: EXPRESSION.sub(self._value, str(text)) for key, text in (rows or {}).items()}

    def true(self, condition: str | None) -> bool:
        return condition in (None, "always()") or bool(self.values[" ".join(str(condition).split())])

    def _value(self, found: re.Match[str]) -> str:
        return str(self.values[found[1]])
